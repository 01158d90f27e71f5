//! Publishing frames: at once after a quiet time, then at most once per interval.

use crate::core::lease::view::LeaseView;
use crate::core::moment::Moment;
use crate::core::screen::Facts;
use crate::core::shell::ShellView;
use crate::core::shell::activity::Activity;
use crate::session::actor::Actor;
use crate::session::pty::Pty;

use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct FramePace {
    /// Output came that no frame shows yet.
    pub(super) dirty: bool,
    /// When output was published last. A frame without output, of a lease or a program, delays none.
    pub(super) published_at: Option<Moment>,
}

impl<P: Pty> Actor<P> {
    /// When the output that no frame shows yet is to be published.
    pub(super) fn frame_due(&self) -> Option<Moment> {
        if !self.pace.dirty {
            return None;
        }
        let interval = self.pace.published_at.map(|at| at + self.rules.frame_interval);
        let due = interval.unwrap_or_default().max(self.all_fed_by().unwrap_or_default());
        Some(self.screen.hold_until().map_or(due, |hold| due.max(hold)))
    }

    /// Until when the rest of what was read is waited for: what was read at once is shown at once, unless it is
    /// more than can be fed meanwhile.
    fn all_fed_by(&self) -> Option<Moment> {
        self.unfed.since().map(|since| since + self.rules.frame_interval)
    }

    /// Publishes when it is time, and at once when the lease or the exit is another.
    pub(super) fn publish_if_due(&mut self) {
        self.look_at_prompt();
        self.remember_lease();
        let now = self.clock.now();
        self.outlets.live.set_lease_expires_at(self.input.lease().expires_at(now));
        let view = self.input.lease().view();
        let judged = self.judge();
        let frame = self.frames.borrow();
        let told = *frame.lease.value == view && frame.exit.value == self.ending.exit;
        // What a shell marks is what callers wait for.
        let same = (&frame.activity.value, &frame.shell) == (&judged.0, &judged.1)
            && Arc::ptr_eq(&frame.commands.value, self.screen.commands());
        let told = told && (same || self.all_fed_by().is_some_and(|by| now < by));
        drop(frame);
        if !told || self.frame_due().is_some_and(|due| due <= now) {
            self.publish_now(now, view, judged);
        } else if same {
            self.tell_line();
        }
    }

    /// Tells what was typed, once the newest frame shows what that makes of the shell: who judges a call reads the line
    /// first and then the frame, and must not take an old frame for one of the newest line.
    fn tell_line(&self) {
        self.outlets.live.set_typed(self.shell.line());
    }

    /// Publishes all output so far, so that what comes after can be told from it.
    pub(super) fn publish_output(&mut self) {
        if self.pace.dirty {
            let now = self.clock.now();
            let judged = self.judge();
            self.publish_now(now, self.input.lease().view(), judged);
        }
    }

    fn publish_now(
        &mut self,
        now: Moment,
        view: LeaseView,
        (activity, shell): (Arc<Activity>, Arc<ShellView>),
    ) {
        self.remember_lease();
        self.checkpoint_for_frame();
        let has_output = std::mem::take(&mut self.pace.dirty);
        let (state, before, lease) = {
            let frame = self.frames.borrow();
            let known = (*frame.lease.value == view).then(|| Arc::clone(&frame.lease.value));
            (frame.activity.value.state, frame.watermark, known)
        };
        let lease = lease.unwrap_or_else(|| Arc::new(view));
        let facts = Facts { lease, exit: self.ending.exit, activity, shell };
        if let Some(frame) = self.screen.publish(now, &facts) {
            if has_output {
                self.pace.published_at = Some(now);
                self.looks.make_way = true;
            }
            self.input.mark_resumed(frame.watermark);
            // A command that ran since the frame before was another state, though a short one.
            let ran = frame.commands.value.ended_after(before).is_some();
            if frame.activity.value.state != state || ran {
                self.outlets.live.on_state_change(now, &frame);
            }
            self.outlets.counters.frames_published.add(1);
            self.outlets.live.set_invisible(self.screen.invisible());
            let (scrolled, ended) = (frame.history.end(), frame.exit.value.is_some());
            self.frames.send_replace(frame);
            self.tell_line();
            self.outlets.live.scrolled_rows.note(scrolled, ended);
            self.note_told(now);
            // A command comes after the lease that it was sent under.
            self.tell_events();
            self.tell_events_of_frame(now);
        } else {
            self.tell_line();
        }
    }
}
