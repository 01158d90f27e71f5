//! Paints what the person sees: the session or its history, the status line, and what covers the session.

use tokio::time::Instant;

use crate::cli::attach::asked_call::{CallExtent, CallPage};
use crate::cli::attach::client::takeover::TakeoverState;
use crate::cli::attach::client::{AttachOptions, Desk};
use crate::cli::attach::layout::{cover, has_status, history};
use crate::cli::attach::notice::Now;
use crate::cli::attach::renderer::Picture;
use crate::cli::attach::scrollback::Scrollback;
use crate::cli::attach::status::{Status, Watching};
use crate::core::frame::ClipboardWrite;

impl Desk<'_> {
    pub(super) fn paint(&mut self) {
        self.dirty = false;
        self.drop_notice_unless_it_holds();
        let page = self.turned_page();
        let room = self.terminal.room();
        let AttachOptions { prefix, coloured, .. } = self.carried.options;
        let status = Status {
            name: &self.name,
            me: &self.me,
            watching: self.watching(),
            news: self.notice.as_ref(),
            history: self.carried.scrollback.as_ref().map(Scrollback::place),
            asks: self.waiting_here(),
            page: page.as_ref().map(|page| page.number),
            taken_over: self.carried.taken_over != TakeoverState::No,
            prefix,
            coloured,
        };
        let is_readable = page.is_some() || has_status(room);
        let shows_call = is_readable && status.shows_call(&self.view, room.cols);
        let status = status.bar(&self.view, room.cols);
        let mut picture = match &self.carried.scrollback {
            Some(back) => history(back.lines(), &self.view, room, &status),
            None => self.window.picture(&self.view, room, &status),
        };
        self.cover(&mut picture, page.as_ref());
        if !self.carried.options.clipboard {
            picture.clipboard = ClipboardWrite::default();
        }
        self.terminal.paint(&picture);
        let page = self.carried.chords.call_page();
        self.note_drawn(CallExtent { page, whole: shows_call }, Instant::now());
    }

    /// Covers the session with the call that waits, or with the list of keys.
    fn cover(&mut self, picture: &mut Picture, call: Option<&CallPage>) {
        let room = self.terminal.room();
        if let Some(call) = call {
            cover(picture, &call.rows, room);
        }
        let Some(list) = self.carried.chords.key_list() else { return };
        let AttachOptions { prefix, view_only, .. } = self.carried.options;
        match list.rows(prefix, view_only, self.room()) {
            Some(rows) => cover(picture, &rows, room),
            None => self.carried.chords.uncover(),
        }
    }

    fn watching(&self) -> Option<Watching> {
        if self.carried.options.view_only { Some(Watching::Only) } else { self.read_only }
    }

    fn drop_notice_unless_it_holds(&mut self) {
        let now = Now {
            lease: &self.view.lease,
            mine: self.view.is_held_by(&self.me),
            read_only: self.read_only.is_some(),
            in_history: self.carried.scrollback.is_some(),
            silent: self.requests.is_stuck(),
        };
        self.notice.take_if(|notice| !notice.holds(now));
    }
}
