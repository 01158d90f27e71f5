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

#[tokio::test]
async fn calls_that_wait_for_a_start_had_no_effect_when_the_mount_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let accepted = directory.path().join("accepted");
    let name: MountName = "web".parse().unwrap();
    // Its tools are known, so that it starts with the first call.
    AcceptedTools::at(accepted.clone()).keep(&name, &ToolSet::default(), None).unwrap();
    let mounts = Mounts::new(MountPlaces { accepted, ..MountPlaces::default() });
    mounts.set(&BTreeMap::from([(name.clone(), settings(socket.to_str().unwrap()))]));
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
    let problem = STOPPING.to_owned();
    let unavailable = MountError::Unavailable { mount: name, problem, retry_after: None };
    assert_eq!(one.unwrap_err(), unavailable);
    assert_eq!(two.unwrap_err(), unavailable);
}

#[tokio::test]
async fn a_mount_that_was_removed_starts_no_further_server() {
    for mode in [MountMode::PerClient, MountMode::Pool(2)] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let accepted = directory.path().join("accepted");
        let name: MountName = "web".parse().unwrap();
        AcceptedTools::at(accepted.clone()).keep(&name, &ToolSet::default(), None).unwrap();
        let mounts = Mounts::new(MountPlaces { accepted, ..MountPlaces::default() });
        let settings = MountSettings { mode, ..settings(socket.to_str().unwrap()) };
        mounts.set(&BTreeMap::from([(name.clone(), settings)]));
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
        let problem = STOPPING.to_owned();
        let error = MountError::Unavailable { mount: name, problem, retry_after: None };
        assert_eq!((refused.0.unwrap_err(), refused.1.unwrap_err()), (error.clone(), error));
    }
}
