//! The paths of a daemon's sockets, lock and other runtime files.
//! It reads no environment and touches no file, so a path that the kernel would reject is reported before
//! anything is created.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::core::ids::SessionId;

/// The longest socket path, in bytes. The kernel needs one more for the final NUL.
pub const SOCKET_PATH_MAX: usize = 107;

/// The variable that sets the runtime directory.
pub const RUNTIME_DIR: &str = "TERMGATE_RUNTIME_DIR";

/// Why no directory for sockets is usable.
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

/// The paths of one daemon. All are absolute and short enough for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimePaths {
    root: PathBuf,
    gateway: PathBuf,
}

impl RuntimePaths {
    /// Chooses the runtime directory from environment variables.
    ///
    /// `$TERMGATE_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/termgate`, else `$XDG_STATE_HOME/termgate/run`, else
    /// `$HOME/.local/state/termgate/run`. An empty value counts as unset. So does a relative `XDG` path, as
    /// the XDG specification requires.
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

    /// Uses this directory.
    pub fn at(root: PathBuf) -> Result<Self, PathError> {
        let gateway = root.join("gateway.sock");
        check_absolute(&root, RUNTIME_DIR)?;
        let paths = Self { root, gateway };
        // All session names have the same length, and no other name is longer.
        let longest = format!("{}.ro.sock", "0".repeat(SessionId::DIGITS));
        check_length(&paths.sessions().join(longest), RUNTIME_DIR)?;
        Ok(paths)
    }

    /// Replaces the path of the gateway's socket. The read-only socket keeps its path.
    pub fn with_gateway(self, gateway: PathBuf) -> Result<Self, PathError> {
        check_absolute(&gateway, "--socket")?;
        check_length(&gateway, "--socket")?;
        Ok(Self { gateway, ..self })
    }

    /// The runtime directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the sessions' sockets.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("s")
    }

    /// The directory of the shims' sockets.
    pub fn shims(&self) -> PathBuf {
        self.root.join("h")
    }

    /// The directory of the marks of mounted servers that run.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// The directory of the shell integration scripts.
    pub fn shell(&self) -> PathBuf {
        self.root.join("shell")
    }

    /// The socket for all sessions that a caller may see.
    pub fn gateway(&self) -> &Path {
        &self.gateway
    }

    /// The read-only socket for the same sessions.
    pub fn gateway_read_only(&self) -> PathBuf {
        self.root.join("gateway.ro.sock")
    }

    /// The socket for people and operators.
    pub fn operator(&self) -> PathBuf {
        self.root.join("operator.sock")
    }

    /// The socket for one session.
    pub fn session(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}.sock"))
    }

    /// The read-only socket for one session.
    pub fn session_read_only(&self, id: SessionId) -> PathBuf {
        self.sessions().join(format!("{id}.ro.sock"))
    }

    /// The file that keeps the write switches if the daemon is killed.
    pub fn switches(&self) -> PathBuf {
        self.root.join("switches.json")
    }

    /// The directory of the journal: in the state directory, named after the runtime directory.
    pub fn journal(&self, state: Option<&Path>) -> PathBuf {
        self.kept_in(state, "journal")
    }

    /// The directory of the search index, likewise.
    pub fn index(&self, state: Option<&Path>) -> PathBuf {
        self.kept_in(state, "index")
    }

    /// The directory of the recordings, likewise.
    pub fn recordings(&self, state: Option<&Path>) -> PathBuf {
        self.kept_in(state, "recordings")
    }

    /// The directory of what was accepted of mounts, likewise.
    pub fn mounts(&self, state: Option<&Path>) -> PathBuf {
        self.kept_in(state, "mounts")
    }

    fn kept_in(&self, state: Option<&Path>, kind: &str) -> PathBuf {
        let Some(state) = state else { return self.root.join(kind) };
        let root = self.root.to_string_lossy();
        let name = root.trim_matches('/').replace('-', "--").replace('/', "-");
        state.join(kind).join(name)
    }

    /// The lock file. The process that has the lock is the daemon of this directory.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }
}

/// The directory for persistent state: `$XDG_STATE_HOME/termgate`, else `$HOME/.local/state/termgate`. `None`
/// if neither is an absolute path.
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
