//! What the program wrote, on its way into the screen.

use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;

use crate::core::frame::Exit;
use crate::core::screen::Screen;
use crate::core::screen::report::Report;
use crate::session::actor::Actor;
use crate::session::facts::{Fact, What};
use crate::session::opening::CANCEL;
use crate::session::pty::surroundings::host_name;
use crate::session::pty::{Output, Pty};
use crate::session::records::gaps::Gap;

impl<P: Pty> Actor<P> {
    pub(super) async fn on_output(&mut self, output: std::io::Result<Output>) {
        self.take_output(output).await;
        if self.exit.is_some() || self.outlets.live.catches_up(self.offset) {
            self.publish_output();
            self.outlets.live.set_caught_up();
        }
    }

    async fn take_output(&mut self, output: std::io::Result<Output>) {
        match output {
            Ok(Output::Bytes(count)) => {
                self.outlets.live.output_bytes.add(count as u64);
                self.outlets.counters.output_bytes.add(count as u64);
                let bytes = std::mem::take(&mut self.buffer);
                self.feed_all(&bytes).await;
                self.note_output();
                self.buffer = bytes;
                self.buffer.clear();
            }
            Ok(Output::End) => {
                let exit = self.pty.exited().await;
                if exit == Exit::Lost && self.pty.is_superseded() {
                    self.make_way().await;
                }
                self.on_exit(exit);
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput && self.skip_lost() => {}
            Err(error) => {
                tracing::warn!(session = %self.identity.id, %error, "the terminal cannot be read");
                let _ = self.pty.kill().await;
                let exit = self.pty.exited().await;
                self.on_exit(exit);
            }
        }
    }

    /// Tells that another daemon has the session, and answers nobody any more: whoever asks here is to ask
    /// there, and finds that daemon once this one has ended.
    async fn make_way(&mut self) {
        let (session, tenant) = (self.identity.id, self.identity.tenant.clone());
        tracing::error!(%session, "another daemon has its terminal");
        let told = self.outlets.facts.send(Fact { session, tenant, what: What::Superseded }).await;
        if told.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    /// Goes on behind output that is not there any more, and says whether there was any: whoever keeps
    /// the terminal may have taken this daemon for gone while neither heard the other.
    fn skip_lost(&mut self) -> bool {
        let oldest = self.pty.oldest();
        let bytes = oldest.saturating_sub(self.offset);
        if bytes == 0 {
            return false;
        }
        tracing::warn!(session = %self.identity.id, bytes, "output was lost");
        self.feed(CANCEL, false);
        self.screen.on_lost_output();
        self.offset = oldest;
        self.outlets.live.output_bytes.add(bytes);
        let row = self.screen.cursor_row();
        self.remember_gap(Gap { row, bytes: Some(bytes), since: None });
        true
    }

    async fn feed_all(&mut self, bytes: &[u8]) {
        // What a daemon before has answered is not answered again.
        let answered = usize::try_from(self.answered.saturating_sub(self.offset));
        let answered = answered.unwrap_or(usize::MAX).min(bytes.len());
        let (known, new) = bytes.split_at(answered);
        for (part, answers) in [(known, false), (new, true)] {
            for (index, slice) in part.chunks(self.screen.slice_bytes()).enumerate() {
                if index > 0 {
                    // One flooding session must not keep the others from their turn.
                    tokio::task::yield_now().await;
                }
                self.feed(slice, answers);
            }
        }
        self.offset += bytes.len() as u64;
    }

    /// Gives output to the emulator. Should it panic, the screen starts anew below its history.
    fn feed(&mut self, bytes: &[u8], answers: bool) {
        let now = self.clock.now();
        let fed = std::panic::catch_unwind(AssertUnwindSafe(|| self.screen.feed(now, bytes)));
        if fed.is_err() {
            tracing::error!(session = %self.identity.id, "the emulator failed and starts anew");
            self.screen = Screen::after_failure(&self.frames.borrow(), self.rules.screen);
            self.screen.set_nonce(self.records.nonce());
            self.screen.set_host(host_name());
        }
        for report in self.screen.take_reports() {
            if let Report::Directory(directory) = report {
                self.outlets.live.set_directory(&directory);
            }
        }
        let answer = self.screen.take_answers();
        if answers && !answer.is_empty() {
            self.input.answer(&answer);
        }
        self.looks.stir(now);
        self.dirty = true;
    }
}
