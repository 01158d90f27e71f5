//! Where a daemon and its sessions have their files, and the environment that they start from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Config;
use crate::config::paths::RuntimePaths;
use crate::mount::epochs::EpochFiles;
use crate::mount::registry::{MountPlaces, Mounts};
use crate::session::pty::held::shims::ShimSetup;
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::registry::Registry;
use crate::store::index::writer::SearchIndex;
use crate::surface::mount_leases::MountLeases;
use crate::transport::daemon::server_host::OwnHost;

/// The environment and directories of sessions.
#[derive(Debug, Default)]
pub(in crate::transport) struct Places {
    pub(in crate::transport) index: SearchIndex,
    pub(in crate::transport) environment: BTreeMap<OsString, OsString>,
    pub(in crate::transport) default_cwd: PathBuf,
    /// `None` when sessions end with the daemon.
    pub(in crate::transport) holding: Option<ShimSetup>,
    /// The directory of the shell integration scripts, if there is one.
    pub(in crate::transport) scripts: Option<PathBuf>,
    /// What sandboxed programs may not see or change.
    pub(in crate::transport) sandbox: SandboxPlaces,
    /// The directory of the tokens. `None` when tokens are not used.
    pub(in crate::transport) state: Option<PathBuf>,
    /// The directory of the recordings.
    pub(in crate::transport) recordings: PathBuf,
    /// The directory of what was accepted of mounts.
    pub(in crate::transport) accepted: PathBuf,
    /// The directory of the marks of mounted servers, if another daemon may look there.
    pub(in crate::transport) servers: Option<PathBuf>,
}

impl Places {
    /// The directories of a daemon at these paths, with nothing else.
    pub(super) fn kept(paths: &RuntimePaths, state: Option<PathBuf>) -> Self {
        let recordings = paths.recordings(state.as_deref());
        let accepted = paths.mounts(state.as_deref());
        let servers = Some(paths.servers());
        Self { state, recordings, accepted, servers, ..Self::default() }
    }

    /// The mounts of the configuration, which start here.
    pub(super) fn mounts(&self, config: &Config) -> Mounts {
        let mounts = Mounts::new(MountPlaces {
            environment: self.environment.clone(),
            default_cwd: self.default_cwd.clone(),
            accepted: self.accepted.clone(),
            host: Some(Arc::new(OwnHost::new(
                self.sandbox.clone(),
                self.environment.clone(),
                self.servers.clone(),
            ))),
        });
        mounts.set(&config.mounts);
        mounts
    }
}

/// The leases of these mounts.
pub(super) fn mount_leases(
    sessions: &Registry,
    directory: PathBuf,
    mounts: &Mounts,
) -> Arc<MountLeases> {
    let leases = MountLeases::new(sessions.clone(), EpochFiles::at(directory));
    leases.follow(mounts);
    Arc::new(leases)
}
