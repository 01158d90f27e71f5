//! What is waited for at a terminal that a shim keeps: room for input, answers, and a sign of life.
//! These waits belong to one task, which shares the bell among them: each looks again after it rang.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::core::frame::Exit;
use crate::session::pty::Pty;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::link::{LinkState, ShimLink, ShimPresence};
use crate::shim::readiness::{self, READABLE};

/// How long a shim may take to end after its connection was closed.
const SHIM_END_MAX: Duration = Duration::from_millis(500);

impl HeldPty {
    /// Waits until the program has ended; it is lost if the shim has gone before it told how.
    pub(super) async fn wait_for_exit(&self) -> Exit {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            self.mind_successor(&link);
            let known = *standing.borrow_and_update();
            match known.exit {
                Some((exit, _)) => return exit,
                None if known.presence == ShimPresence::Gone => break,
                None => {}
            }
            tokio::select! {
                heard = link.hear(&mut standing) => if heard.is_err() { break },
                ended = self.shim_ended.readable() => match ended {
                    Ok(mut ended) => {
                        ended.retain_ready();
                        self.on_shim_ended(&link);
                    }
                    Err(_) => break,
                },
            }
        }
        Exit::Lost
    }

    pub(super) async fn shim_ends(&self) -> Result<(), Elapsed> {
        timeout(SHIM_END_MAX, self.shim_ended.readable()).await.map(drop)
    }

    pub(super) fn shim_lives(&self) -> bool {
        readiness::look(self.shim_ended.get_ref().as_fd(), READABLE) == Ok(0)
    }

    /// If the shim now serves another daemon, treats this connection as gone.
    pub(super) fn mind_successor(&self, link: &ShimLink) {
        if link.presence() == ShimPresence::Silent && self.has_successor(link) {
            link.lose(ShimPresence::Gone);
        }
    }

    /// Whether the shim has hung up, runs, and this daemon has lost its lock.
    pub(super) fn has_successor(&self, link: &ShimLink) -> bool {
        link.has_hung_up() && self.is_superseded()
    }

    /// Reads the last frames of a shim that has ended.
    pub(super) fn on_shim_ended(&self, link: &ShimLink) {
        link.hear_all();
        link.lose(ShimPresence::Gone);
    }

    /// Waits until input is taken, or refused because the terminal has ended.
    pub(super) async fn wait_for_room(&self) -> io::Result<()> {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            let known = *standing.borrow_and_update();
            // The next write then reports the end.
            if known.exit.is_some() || known.presence == ShimPresence::Gone {
                return Ok(());
            }
            if known.presence == ShimPresence::Silent {
                link.hear(&mut standing).await?;
                continue;
            }
            link.input.wait_for_room();
            if link.input.has_room() {
                return Ok(());
            }
            tokio::select! {
                rang = self.bell.readable() => rang?.clear_ready(),
                heard = link.hear(&mut standing) => heard?,
            }
        }
    }

    /// Waits for the answer to a question, and returns where the output ends, if all of it is in the ring.
    pub(super) async fn wait_for_answer(&self, question: u64) -> io::Result<Option<u64>> {
        let link = self.link();
        let mut standing = link.standing();
        loop {
            let known = *standing.borrow_and_update();
            if let Some(answer) = self.answer_to(question, &link, known) {
                return answer;
            }
            tokio::select! {
                rang = self.bell.readable() => rang?.clear_ready(),
                heard = link.hear(&mut standing) => heard?,
            }
        }
    }

    /// The answer to a question, if it is there, or if there will be none.
    pub(super) fn answer_to(
        &self,
        question: u64,
        link: &ShimLink,
        known: LinkState,
    ) -> Option<io::Result<Option<u64>>> {
        let answered = link.input.answered();
        if answered.question >= question || known.exit.is_some() {
            let all_is_there = answered.all_is_there || known.exit.is_some();
            return Some(Ok(all_is_there.then(|| self.ring.head())));
        }
        (known.presence != ShimPresence::There).then(|| Err(link.absence().into()))
    }

    /// Waits until the shim has not done for too long what it was given to do by now.
    pub(super) async fn wait_for_silence(&self) {
        let link = self.link();
        let mut standing = link.standing();
        while standing.borrow_and_update().presence != ShimPresence::Silent {
            let now = readiness::now();
            let Some(deadline) = link.input.deadline(now) else {
                // `link` keeps the sender alive, so this ends only with another state.
                let _ = standing.changed().await;
                continue;
            };
            let waited = timeout(deadline.saturating_sub(now), standing.changed()).await;
            if waited.is_err()
                && link.presence() == ShimPresence::There
                && link.input.stands_still(readiness::now())
            {
                link.lose(ShimPresence::Silent);
            }
        }
    }
}
