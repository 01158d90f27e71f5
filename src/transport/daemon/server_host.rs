//! How the servers of mounts run: as the daemon's user, in sandboxes as those of sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{Child, Command};
use std::sync::Arc;

use crate::mount::link::process::{BoxedWait, HostedServer, ServerHost};
use crate::session::pty::account::own_uid;
use crate::session::pty::sandbox::{SandboxPlaces, SandboxRequest, try_once};
use crate::session::pty::served::ServingProgram;

/// Runs the servers of mounts as the daemon's user.
#[derive(Debug)]
pub(super) struct OwnHost {
    pub(super) sandbox: SandboxPlaces,
    pub(super) environment: BTreeMap<OsString, OsString>,
}

impl ServerHost for OwnHost {
    fn sandbox(&self) -> Result<Vec<OsString>, String> {
        let Self { sandbox: places, environment } = self;
        let request = SandboxRequest { places, readable: &[], uid: own_uid(), environment };
        let words = request.words().map_err(|error| error.to_string())?;
        try_once(&words).map_err(|error| error.to_string())?;
        Ok(words)
    }

    fn start(&self, command: &mut Command) -> io::Result<(Child, Arc<dyn HostedServer>)> {
        let (child, program) = ServingProgram::start(command)?;
        Ok((child, Arc::new(program)))
    }
}

impl HostedServer for ServingProgram {
    fn ended(&self) -> BoxedWait<'_> {
        Box::pin(self.ended())
    }

    fn end(&self) -> BoxedWait<'_> {
        Box::pin(self.end_all())
    }
}
