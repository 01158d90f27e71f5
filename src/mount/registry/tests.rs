//! Mounts whose server is a socket of the test.

use std::time::Duration;

use tokio::net::UnixListener;

use super::*;
use crate::core::mount::server::MountedServer;
use crate::mount::definitions::ToolSet;
use crate::mount::error::MountError;
use crate::mount::handle::{CallChannels, STOPPING};
use crate::mount::protocol::{ServerParams, TOOL_CALL};

fn settings(socket: &str) -> MountSettings {
    MountSettings {
        server: MountedServer::Socket(socket.to_owned()),
        trust: MountTrust::Trusted,
        mode: MountMode::Shared,
        idle_stop: Duration::ZERO,
        initialize_timeout: Duration::from_secs(600),
        call_timeout: Duration::from_secs(600),
        tools: None,
        reads: None,
    }
}

/// The mount `web` of this mode. Its tools are known, so that it starts with the first call.
fn mounted(directory: &tempfile::TempDir, mode: MountMode) -> (Mounts, UnixListener) {
    let [socket, accepted] = ["socket", "accepted"].map(|it| directory.path().join(it));
    let (listener, name) = (UnixListener::bind(&socket).unwrap(), "web".parse().unwrap());
    AcceptedTools::at(accepted.clone()).keep(&name, &ToolSet::default(), None).unwrap();
    let mounts = Mounts::new(MountPlaces { accepted, ..MountPlaces::default() });
    let settings = MountSettings { mode, ..settings(socket.to_str().unwrap()) };
    mounts.set(&BTreeMap::from([(name, settings)]));
    (mounts, listener)
}

/// What a call is told that a removed mount refuses.
fn unavailable() -> MountError {
    let (mount, problem) = ("web".parse().unwrap(), STOPPING.to_owned());
    MountError::Unavailable { mount, problem, retry_after: None }
}

#[tokio::test]
async fn calls_that_wait_for_a_start_had_no_effect_when_the_mount_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (mounts, listener) = mounted(&directory, MountMode::Shared);
    let server = mounts.find("web").unwrap().server_for(PrincipalId::Connection(1)).unwrap();
    let call = || server.request(TOOL_CALL, ServerParams::default(), CallChannels::default(), None);
    let removed = async {
        // It never answers its greeting.
        let _greeted = listener.accept().await.unwrap();
        while server.calls() < 2 {
            tokio::task::yield_now().await;
        }
        mounts.set(&BTreeMap::new());
    };
    let (one, two, ()) = tokio::join!(call(), call(), removed);
    assert_eq!((one.unwrap_err(), two.unwrap_err()), (unavailable(), unavailable()));
}

#[tokio::test]
async fn a_mount_that_was_removed_starts_no_further_server() {
    for mode in [MountMode::PerClient, MountMode::Pool(2)] {
        let directory = tempfile::tempdir().unwrap();
        let (mounts, listener) = mounted(&directory, mode);
        let mount = mounts.find("web").unwrap();
        mounts.set(&BTreeMap::new());
        // A call that has waited for an approval meanwhile; in a pool, with another one.
        let one = mount.server_for(PrincipalId::Connection(1)).unwrap();
        let two = mount.server_for(PrincipalId::Connection(2)).unwrap();
        let call = |server: MountServer| async move {
            let (params, channels) = (ServerParams::default(), CallChannels::default());
            server.request(TOOL_CALL, params, channels, None).await
        };
        let refused = tokio::select! {
            refused = async { tokio::join!(call(one), call(two)) } => refused,
            _ = listener.accept() => panic!("a server of {mode:?} was started"),
        };
        let refused = (refused.0.unwrap_err(), refused.1.unwrap_err());
        assert_eq!(refused, (unavailable(), unavailable()));
    }
}
