//! Where the sockets and the lock of a daemon live.
//!
//! It reads no environment and touches no file: values in, paths out, so that every rule can be
//! tested and a path that the kernel would not take is told before anything is made.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::core::ids::SessionId;

/// Longest path of a socket, in bytes; the kernel keeps one more for the end.
pub const SOCKET_PATH_MAX: usize = 107;

/// The variable that names the runtime directory itself.
pub const RUNTIME_DIR: &str = "TERMGATE_RUNTIME_DIR";

/// Says why there is no usable place for sockets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error(
        "the socket path {path} has {length} bytes, {SOCKET_PATH_MAX} is the most; \
         set {setting} to a shorter path"
    )]
    TooLong { path: PathBuf, length: usize, setting: &'static str },
    #[error("{setting} must be an absolute path, not {path:?}")]
    NotAbsolute { path: PathBuf, setting: &'static str },
    #[error("there is no place for sockets; set HOME, XDG_RUNTIME_DIR or {RUNTIME_DIR}")]
    NoPlace,
}

/// The paths of one daemon, all absolute and short enough for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimePaths {
    root: PathBuf,
    gateway: PathBuf,
}

impl RuntimePaths {
    /// Chooses the directory from the environment, asked for by name.
    ///
    /// `$TERMGATE_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/termgate`, else
    /// `$XDG_STATE_HOME/termgate/run`, else `$HOME/.local/state/termgate/run`. An empty value counts
    /// as none, and so does a relative one of the `XDG` variables, as their specification says.
    ///
    /// # Errors
    /// When none of them can be used, or the chosen one is too long.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, PathError> {
        let given = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name| given(name).filter(|path| path.is_absolute());
        if let Some(root) = given(RUNTIME_DIR) {
            return Self::at(root);
        }
        if let Some(runtime) = absolute("XDG_RUNTIME_DIR") {
            return Self::at(runtime.join("termgate"));
        }
        Self::at(state_directory(variable).ok_or(PathError::NoPlace)?.join("run"))
    }

    /// Takes this directory.
    ///
    /// # Errors
    /// When it is relative, or too long for the sockets in it.
    pub fn at(root: PathBuf) -> Result<Self, PathError> {
        let gateway = root.join("gateway.sock");
        check_absolute(&root, RUNTIME_DIR)?;
        let paths = Self { root, gateway };
        // Every session's name has the same length, and none of the other names is longer.
        let longest = format!("{}.ro.sock", "0".repeat(SessionId::DIGITS));
        check_length(&paths.sessions().join(longest), RUNTIME_DIR)?;
        Ok(paths)
    }

    /// Takes another path for the gateway's socket only; the one that never writes stays.
    ///
    /// # Errors
    /// When it is relative or too long.
    pub fn with_gateway(self, gateway: PathBuf) -> Result<Self, PathError> {
        check_absolute(&gateway, "--socket")?;
        check_length(&gateway, "--socket")?;
        Ok(Self { gateway, ..self })
    }

    /// The directory of everything but a gateway that was put elsewhere.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the sessions' sockets.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("s")
    }

    /// The directory of the sockets at which terminals are held.
    pub fn shims(&self) -> PathBuf {
        self.root.join("h")
    }

    /// The directory of the scripts that shells of sessions read at their start.
    pub fn shell(&self) -> PathBuf {
        self.root.join("shell")
    }

    /// The door to all sessions that a caller may see.
    pub fn gateway(&self) -> &Path {
        &self.gateway
    }

    /// The door to the same sessions that never writes.
    pub fn gateway_read_only(&self) -> PathBuf {
        self.root.join("gateway.ro.sock")
    }

    /// The door of people and operators.
    pub fn operator(&self) -> PathBuf {
        self.root.join("operator.sock")
    }

    /// The door to one session.
    pub fn session(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}.sock"))
    }

    /// The door to one session that never writes.
    pub fn session_read_only(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}.ro.sock"))
    }

    /// The file in which write switches outlive a daemon that was killed.
    pub fn switches(&self) -> PathBuf {
        self.root.join("switches.json")
    }

    /// The file whose lock makes a process the daemon of this directory.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }
}

/// Where what outlives a daemon is kept: `$XDG_STATE_HOME/termgate`, else
/// `$HOME/.local/state/termgate`; none when neither is an absolute path.
pub fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("termgate"))
}

fn check_absolute(path: &Path, setting: &'static str) -> Result<(), PathError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(PathError::NotAbsolute { path: path.to_owned(), setting })
}

fn check_length(path: &Path, setting: &'static str) -> Result<(), PathError> {
    let length = path.as_os_str().as_bytes().len();
    if length <= SOCKET_PATH_MAX {
        return Ok(());
    }
    Err(PathError::TooLong { path: path.to_owned(), length, setting })
}

#[cfg(test)]
mod tests;
