//! How the servers of mounts run: as the daemon's user, in sandboxes as those of sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::mount::link::process::{BoxedWait, HostedServer, ServerHost};
use crate::session::pty::account::own_uid;
use crate::session::pty::sandbox::{SandboxPlaces, SandboxRequest, try_once};
use crate::session::pty::served::{ServingMarks, ServingProgram};

/// Runs the servers of mounts as the daemon's user.
#[derive(Debug)]
pub(super) struct OwnHost {
    sandbox: SandboxPlaces,
    environment: BTreeMap<OsString, OsString>,
    marks: Option<ServingMarks>,
    /// Ends what an earlier daemon has left.
    _ending: JoinSet<()>,
}

impl OwnHost {
    /// Keeps the marks of servers in the directory `servers`, and begins to end what those have left whose marks are
    /// there already. The daemon of this directory must be no other, and is inside its runtime.
    pub(super) fn new(
        sandbox: SandboxPlaces,
        environment: BTreeMap<OsString, OsString>,
        servers: Option<PathBuf>,
    ) -> Self {
        let marks = servers.map(ServingMarks::at);
        let mut ending = JoinSet::new();
        if let Some(marks) = &marks {
            for left in marks.left() {
                ending.spawn(marks.clone().end_left(left));
            }
        }
        Self { sandbox, environment, marks, _ending: ending }
    }
}

impl ServerHost for OwnHost {
    fn sandbox(&self) -> Result<Vec<OsString>, String> {
        let Self { sandbox: places, environment, .. } = self;
        let request = SandboxRequest { places, readable: &[], uid: own_uid(), environment };
        let words = request.words().map_err(|error| error.to_string())?;
        try_once(&words).map_err(|error| error.to_string())?;
        Ok(words)
    }

    fn start(&self, command: &mut Command) -> io::Result<(Child, Arc<dyn HostedServer>)> {
        let (child, program) = ServingProgram::start(command, self.marks.clone())?;
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
