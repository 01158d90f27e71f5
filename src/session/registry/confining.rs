//! As whom and in which sandbox the program of a new session runs, and where its shell finds files.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use tokio::task::spawn_blocking;

use crate::core::ids::SessionId;
use crate::session::error::CreateError;
use crate::session::handle::Session;
use crate::session::pty::account::{Account, own_uid};
use crate::session::pty::command::{CommandError, SpawnSpec};
use crate::session::pty::environment::clean_environment;
use crate::session::pty::sandbox::{SandboxError, SandboxRequest, try_once};
use crate::session::pty::shell::SCRIPTS;
use crate::session::pty::shell::shared::{self, SHARED};
use crate::session::records::identity::Confinement;
use crate::session::registry::Registry;
use crate::session::registry::creating::Creation;

/// Where a file may lie for a moment that the shell of a session reads, and whose it has to be then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchPlace {
    pub directory: PathBuf,
    /// `None` for the daemon's user.
    pub owner: Option<u32>,
}

impl Registry {
    /// Resolves the program, directory, environment, user and sandbox of a new session.
    pub(in crate::session) async fn resolve(
        &self,
        creation: &Creation,
    ) -> Result<SpawnSpec, CreateError> {
        let confinement = self.confinement_of(creation);
        if confinement == Confinement::default() {
            return self.resolve_program(creation);
        }
        // It asks the user database, and tries a sandbox.
        let (registry, creation) = (self.clone(), creation.clone());
        let resolving = spawn_blocking(move || {
            let mut spec = registry.resolve_program(&creation)?;
            if confinement.sandbox {
                spec.sandbox = registry.sandbox_of(&creation)?;
            }
            Ok(spec)
        });
        resolving.await.unwrap_or(Err(CreateError::Ending))
    }

    pub(in crate::session) fn confinement_of(&self, creation: &Creation) -> Confinement {
        let user = creation.run_as.as_ref().map(|account| account.uid);
        Confinement { user, sandbox: creation.sandbox || self.limits().sandbox }
    }

    fn resolve_program(&self, creation: &Creation) -> Result<SpawnSpec, CreateError> {
        let (client, own, id, size) = (&creation.client, &creation.env, creation.id, creation.size);
        let launch = creation.launch.clone();
        let Some(account) = &creation.run_as else {
            let environment = clean_environment(&self.0.environment, client, own)?;
            let cwd = creation.cwd.clone().unwrap_or_else(|| self.0.default_cwd.clone());
            return Ok(SpawnSpec::resolve(launch, id, cwd, environment, size)?);
        };
        account.check()?;
        let environment =
            clean_environment(&account.environment(&self.0.environment), client, own)?;
        let cwd = creation.cwd.clone().unwrap_or_else(|| account.home.clone());
        let looked = account.look(|| SpawnSpec::resolve(launch, id, cwd, environment, size))?;
        let mut spec = looked.map_err(|error| as_user(error, account))?;
        spec.user = account.program_user();
        Ok(spec)
    }

    /// The command line that makes the sandbox of a new session.
    fn sandbox_of(&self, creation: &Creation) -> Result<Vec<OsString>, CreateError> {
        if self.hold_options().is_none() {
            return Err(SandboxError::NoShim.into());
        }
        let other = creation.run_as.as_ref().filter(|account| !account.is_own());
        let readable = match other {
            Some(_) => Vec::new(),
            None => self.make_readable(creation.id)?,
        };
        let uid = other.map_or_else(own_uid, |account| account.uid);
        let (places, environment) = (&self.0.sandbox, &self.0.environment);
        let request = SandboxRequest { places, readable: &readable, uid, environment };
        let words = match other {
            Some(account) => account.look(|| request.words())?,
            None => request.words(),
        }?;
        try_once(&words)?;
        Ok(words)
    }

    /// What a sandbox may read of the directory of scripts: these, and a place for the files of its session.
    fn make_readable(&self, session: SessionId) -> Result<Vec<PathBuf>, SandboxError> {
        let Some(scripts) = self.0.scripts.as_deref() else { return Ok(Vec::new()) };
        let own = scripts.join(session.to_string());
        match DirBuilder::new().mode(0o700).create(&own) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(SandboxError::Place { path: own, source });
            }
            Ok(()) | Err(_) => {}
        }
        Ok(SCRIPTS.iter().map(|(path, _)| scripts.join(path)).chain([own]).collect())
    }

    /// Removes what only a sandboxed session had.
    pub(in crate::session) fn remove_scratch(&self, session: &Session) {
        if session.about().confinement.sandbox
            && let Some(scripts) = self.0.scripts.as_deref()
        {
            // There is none where the program ran as another user.
            let _ = fs::remove_dir_all(scripts.join(session.id().to_string()));
        }
    }

    /// Where files may lie for a moment that the shell of a session reads, if there is such a place.
    pub fn scratch(&self, session: &Session) -> Option<ScratchPlace> {
        let scripts = self.0.scripts.as_deref()?;
        let Confinement { user, sandbox } = session.about().confinement;
        let owner = user.filter(|user| *user != own_uid());
        let directory = match (owner, sandbox) {
            (Some(_), _) => PathBuf::from(SHARED),
            (None, true) => scripts.join(session.id().to_string()),
            (None, false) => scripts.to_owned(),
        };
        Some(ScratchPlace { directory, owner })
    }

    /// Where the scripts are that the shell of a new session reads; none where it reads none.
    pub(in crate::session) fn scripts(&self, creation: &Creation) -> Option<PathBuf> {
        let own = self.0.scripts.as_deref().filter(|_| self.limits().shell_marks)?;
        match creation.run_as.as_ref().filter(|account| !account.is_own()) {
            None => Some(own.to_owned()),
            Some(_) => shared::place()
                .inspect_err(|error| {
                    tracing::warn!(%error, path = SHARED, "cannot write the shell scripts for other users");
                })
                .ok(),
        }
    }
}

fn as_user(error: CommandError, account: &Account) -> CreateError {
    match error {
        CommandError::BadDirectory { path } => {
            CommandError::BadDirectoryOf { path, user: account.name.clone() }.into()
        }
        error @ (CommandError::NoCommand
        | CommandError::NotFound { .. }
        | CommandError::NotExecutable { .. }
        | CommandError::BadDirectoryOf { .. }
        | CommandError::NulByte) => error.into(),
    }
}

#[cfg(test)]
mod tests;
