//! What the program wrote, on its way into the screen.

use std::io::ErrorKind;

use tokio::time::timeout;

use crate::core::frame::Exit;
use crate::core::screen::report::Report;
use crate::session::actor::Actor;
use crate::session::actor::ending::END_TOLD_MAX;
use crate::session::pty::{Output, Pty};
use crate::session::records::gaps::Gap;
use crate::session::restore::CANCEL;

impl<P: Pty> Actor<P> {
    pub(super) async fn on_output(&mut self, output: std::io::Result<Output>) {
        match output {
            Ok(Output::Bytes(count)) => {
                self.count_output(self.unfed.offset + count as u64);
                self.unfed.on_read(self.clock.now());
                self.feed_slice();
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
                let exit = timeout(END_TOLD_MAX, self.pty.exited()).await;
                self.on_exit(exit.unwrap_or(Exit::Unknown));
            }
        }
        self.catch_up();
    }

    /// Publishes what was there when the session was found, once all of that is on the screen.
    pub(super) fn catch_up(&mut self) {
        if self.ending.exit.is_some() || self.outlets.live.catches_up(self.unfed.offset) {
            self.publish_output();
            self.outlets.live.set_caught_up();
        }
    }

    /// Tells that another daemon has the session, and answers nobody any more: whoever asks here is to ask
    /// there, and finds that daemon once this one has ended.
    async fn make_way(&mut self) {
        tracing::error!(session = %self.identity.id, "another daemon has its terminal");
        self.outlets.facts.tell_superseded();
        std::future::pending::<()>().await;
    }

    /// Goes on behind output that is not there any more, and says whether there was any: whoever keeps
    /// the terminal may have taken this daemon for gone while neither heard the other.
    pub(super) fn skip_lost(&mut self) -> bool {
        let oldest = self.pty.oldest();
        let bytes = oldest.saturating_sub(self.unfed.offset);
        if bytes == 0 {
            return false;
        }
        tracing::warn!(session = %self.identity.id, bytes, "output was lost");
        // It is no output, and counts as none.
        let now = self.clock.now();
        self.screen.feed(now, CANCEL);
        self.screen.on_lost_output();
        self.shell.on_output(now);
        self.pace.dirty = true;
        self.unfed.offset = oldest;
        self.reserve.seen = self.reserve.seen.max(oldest);
        let uncounted = oldest.saturating_sub(self.reserve.counted);
        self.reserve.counted += uncounted;
        self.outlets.live.output_bytes.add(uncounted);
        let row = self.screen.cursor_row();
        self.remember_gap(Gap { row, bytes: Some(bytes), since: None });
        true
    }

    /// Counts the output before this offset, unless that was done.
    fn count_output(&mut self, end: u64) {
        let more = end.saturating_sub(self.reserve.counted);
        self.reserve.counted += more;
        self.outlets.live.output_bytes.add(more);
        self.outlets.counters.output_bytes.add(more);
    }

    /// Puts all that was read on the screen: one read at most.
    pub(super) fn feed_rest(&mut self) {
        while !self.unfed.is_empty() {
            self.feed_slice();
        }
    }

    /// Puts the next slice of what was read on the screen.
    pub(super) fn feed_slice(&mut self) {
        // What was answered before is not answered again.
        let answered = usize::try_from(self.unfed.answered.saturating_sub(self.unfed.offset));
        let answered = answered.unwrap_or(usize::MAX);
        let most = if answered > 0 { answered } else { usize::MAX };
        let most = most.min(self.screen.slice_bytes());
        let slice = self.unfed.take(most);
        let begun = self.clock.now();
        self.feed(slice.bytes(), answered == 0);
        self.unfed.put_back(slice, self.clock.now().since(begun));
        self.note_output();
    }

    /// Gives the output from here on to the emulator.
    fn feed(&mut self, bytes: &[u8], answers: bool) {
        let now = self.clock.now();
        let end = self.unfed.offset + bytes.len() as u64;
        self.reserve.seen = self.reserve.seen.max(end);
        self.screen.feed(now, bytes);
        self.unfed.offset = end;
        for report in self.screen.take_reports() {
            if let Report::Directory(directory) = report {
                self.outlets.live.set_directory(&directory);
            }
        }
        let answer = self.screen.take_answers();
        if answers && !answer.is_empty() {
            self.input.answer(&answer);
        }
        self.shell.on_output(now);
        self.pace.dirty = true;
    }
}
