//! A call together with its terminal as it was at one moment: what is judged, what approvers are shown and what an approval is
//! bound to are all of that moment.

use std::sync::Arc;

use crate::core::frame::Frame;
use crate::core::policy::approvals::Witness;
use crate::core::policy::bound::LineMoment;
use crate::core::shell::commands::EndsBy;
use crate::core::shell::line_so_far::LineSoFar;
use crate::gateway::judging::JudgedCall;
use crate::session::handle::Session;
use crate::session::pty::processes::directory_in_front;
use crate::surface::call::Call;
use crate::surface::tool::ToolRuns;

/// A terminal at one moment.
#[derive(Debug)]
pub(super) struct SeenTerminal {
    pub(super) frame: Arc<Frame>,
    /// What was typed until then, as the session compares again.
    pub(super) line: LineSoFar,
    /// Where the program in front works.
    pub(super) directory: Option<String>,
}

impl SeenTerminal {
    pub(super) fn of(session: &Session) -> Self {
        // In this order: an old line does not count any more when the call takes effect, but an old frame would.
        let line = session.live().typed();
        let frame = session.frame();
        Self { directory: directory_in_front(&frame), frame, line }
    }

    /// Until when a line that is judged by it counts.
    pub(super) fn line_moment(&self) -> LineMoment {
        LineMoment { turns: self.line.turns(), prompts: self.frame.commands.value.prompts() }
    }

    /// The name of the program in front.
    pub(super) fn program(&self) -> Option<&str> {
        self.frame.activity.value.foreground.as_ref()?.program.as_deref()
    }
}

/// A call, and its terminal at the moment at which it is judged.
#[derive(Clone, Copy)]
pub(super) struct SeenCall<'a> {
    pub(super) judged: JudgedCall<'a>,
    /// `None` for a call that is about no session.
    pub(super) terminal: Option<&'a SeenTerminal>,
}

impl SeenCall<'_> {
    /// The state of the terminal, or of the lease of a mount, on which it depends what the call does.
    pub(super) fn witness(self, call: &Call) -> Witness {
        let Some(SeenTerminal { frame, line, directory }) = self.terminal else {
            return self.witness_of_mount(call);
        };
        // Without marks, nothing else tells that something was typed.
        let is_marked = frame.shell.readiness.ends_by() == Some(EndsBy::Marks);
        let reads_screen =
            matches!(self.judged.entry.runs, ToolRuns::Input | ToolRuns::Text(_)) || !is_marked;
        let typed = reads_screen.then(|| line.turns());
        Witness::of(frame, call.standing.caller.principal, directory.clone(), typed)
    }

    /// The state of a mount on which it depends what a call does: whose turn it is there.
    fn witness_of_mount(self, call: &Call) -> Witness {
        let mounted = self.judged.entry.mount().map(|tool| tool.mount.name());
        let lease = match (&call.mount_lease, mounted) {
            (Some(lease), _) => Some(Arc::clone(lease)),
            (None, Some(mount)) => call.daemon.mount_leases.of(mount),
            (None, None) => None,
        };
        let holding = lease.and_then(|lease| lease.view().0.holding);
        Witness { others_epoch: holding.map(|held| held.epoch), ..Witness::default() }
    }
}
