//! Sessions of a registry over terminals in memory, for tests of what is built upon sessions.

use std::sync::Arc;

use crate::core::frame::Size;
use crate::core::ids::Epoch;
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::LeaseManager;
use crate::session::actor::Setup;
use crate::session::handle::Session;
use crate::session::pty::shell::Nonces;
use crate::session::pty::tests::fake::{FakeTerminal, pair};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::Registry;
use crate::session::registry::creating::make;
use crate::session::restore::OpeningState;

/// Lists a session whose shell marks what it does with this nonce. Its program is played by the test.
pub(crate) fn list_session(
    registry: &Registry,
    size: Size,
    nonce: &str,
) -> (Session, FakeTerminal) {
    let (pty, terminal) = pair();
    let (tenant, limits) = (registry.own_tenant().clone(), registry.limits());
    let lease = LeaseManager::new(Epoch::default(), limits.lease.clone());
    let own = Some(nonce.parse().unwrap());
    let unknown = SessionRecord::unknown(registry.fresh_id(), tenant, registry.clock().now());
    let setup = Setup {
        record: SessionRecord {
            name: Arc::from("shell"),
            command: "bash".to_owned(),
            nonces: Nonces { own, nested: None },
            size: Some(size),
            ..unknown
        },
        commands: CommandsRecord::default(),
        opening: OpeningState::empty(size, limits.screen),
        told: None,
        recording: None,
        input: Input::new(lease, WriteWindow::Open),
        pty,
    };
    let (session, task) = make(registry, 1, setup);
    registry.list(&session, None);
    registry.look_after(session.clone(), tokio::spawn(task));
    (session, terminal)
}

/// Has a program answer all input with output, until the session ends.
pub(crate) async fn play(terminal: FakeTerminal, mut program: impl FnMut(&[u8]) -> Vec<u8>) {
    loop {
        terminal.until_written(1).await;
        terminal.push(program(&terminal.take_written()));
    }
}
