//! One person attached to one session: a single task that handles every event in order.
//!
//! Its child modules decide what to show and what keys mean.

mod answers;
mod approvals;
mod painting;
mod silence;
mod takeover;
mod typing;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::cli::attach::Sitting;
use crate::cli::attach::client::approvals::WaitingApprovals;
use crate::cli::attach::client::takeover::TakeoverState;
use crate::cli::attach::event_notices::EventNotices;
use crate::cli::attach::layout::{VisiblePart, room_for_session};
use crate::cli::attach::notice::{Notice, NoticeReason};
use crate::cli::attach::pointer::Pointer;
use crate::cli::attach::prefix_key::Chords;
use crate::cli::attach::renderer::TerminalSize;
use crate::cli::attach::requests::{Purpose, Requests, RoomTold};
use crate::cli::attach::scrollback::Scrollback;
use crate::cli::attach::status::{Watching, named};
use crate::cli::attach::terminal::{Hint, Terminal, TerminalEvent, TerminalSignals};
use crate::cli::attach::unanswered::UnansweredInput;
use crate::cli::attach::view::SessionView;
use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::core::keys::control::ControlKey;
use crate::mcp::attach::SIZE_METHOD;
use crate::transport::client::{ClientError, DeltaStream};
use crate::wire::session::ExitWire;

/// How many bytes one read takes from the person.
const TYPED_MAX: usize = 4096;

/// The person's choices.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachOptions {
    pub view_only: bool,
    /// The first key of chords.
    pub prefix: ControlKey,
    /// Whether to use colours.
    pub coloured: bool,
    /// Whether programs may write to the clipboard of the terminal.
    pub clipboard: bool,
}

/// The state that survives a change of daemon.
#[derive(Debug, Default)]
pub struct Carried {
    pub options: AttachOptions,
    /// The id and the name of the session; both are empty until the first delta.
    pub session: String,
    pub name: String,
    chords: Chords,
    scrollback: Option<Scrollback>,
    taken_over: TakeoverState,
    unanswered: UnansweredInput,
}

impl Carried {
    /// The state before the first daemon.
    pub fn new(options: AttachOptions) -> Self {
        Self { options, chords: Chords::with_prefix(options.prefix), ..Self::default() }
    }
}

/// A person attached to a session.
#[derive(Debug)]
pub struct Desk<'a> {
    daemon: &'a DaemonClient,
    attach: DeltaStream,
    /// Signals that writing was switched on or off.
    switched: watch::Receiver<u64>,
    /// Signals that an approval was asked for or decided.
    asked_for: watch::Receiver<u64>,
    approvals: WaitingApprovals,
    terminal: Terminal,
    view: SessionView,
    window: VisiblePart,
    carried: Carried,
    pointer: Pointer,
    /// When incomplete input counts as complete.
    flush_due: Option<Instant>,
    notice: Option<Notice>,
    requests: Requests,
    room_told: RoomTold,
    name: String,
    /// The person's name for others, once the daemon has sent it.
    me: String,
    /// Why nobody can type, if so.
    read_only: Option<Watching>,
    dirty: bool,
}

impl<'a> Desk<'a> {
    pub fn new(
        daemon: &'a DaemonClient,
        attach: DeltaStream,
        terminal: Terminal,
        carried: Carried,
    ) -> Self {
        let flush_due = carried.chords.patience().map(|time| Instant::now() + time);
        let name = carried.name.clone();
        Self {
            daemon,
            attach,
            switched: daemon.client().switched(),
            asked_for: daemon.client().news(),
            approvals: WaitingApprovals::default(),
            terminal,
            view: SessionView::default(),
            window: VisiblePart::default(),
            carried,
            pointer: Pointer::default(),
            flush_due,
            notice: None,
            requests: Requests::default(),
            room_told: RoomTold::default(),
            name,
            me: String::new(),
            read_only: None,
            dirty: false,
        }
    }

    /// Ends the attachment with this result. If the daemon is gone, it paints a notice; the terminal keeps
    /// the last picture.
    pub async fn rise(mut self, left: Result<Leaving, CliFailure>) -> Sitting {
        if let Some(name) = self.attach.result()["name"].as_str() {
            name.clone_into(&mut self.name);
        }
        if matches!(left, Err(CliFailure::Request(ClientError::Closed))) {
            self.on_daemon_gone().await;
        }
        let Self { view, name, terminal, mut carried, .. } = self;
        if !view.session.is_empty() {
            carried.name = if name.is_empty() { view.session.clone() } else { name };
            carried.session = view.session;
        }
        Sitting { left, terminal, carried }
    }

    async fn on_daemon_gone(&mut self) {
        // Answers that arrived before the end still count.
        while let Some(answered) = self.requests.next().await {
            let _ = self.on_answer(answered);
        }
        if let Some(back) = &mut self.carried.scrollback {
            back.on_no_answer();
        }
        // Without a view, the earlier picture already shows the notice.
        if !self.view.session.is_empty() {
            self.tell("the daemon is gone; looking for it", NoticeReason::News);
            self.paint();
        }
    }

    /// Shows the session and forwards input until the session or the person ends it.
    pub async fn sit(
        &mut self,
        signals: &mut TerminalSignals,
        events: &mut EventNotices,
    ) -> Result<Leaving, CliFailure> {
        let mut typed = [0; TYPED_MAX];
        self.say_room()?;
        self.follow_approvals()?;
        self.go_on()?;
        loop {
            if self.dirty && !self.terminal.is_behind() {
                self.paint();
            }
            let due = self.due();
            let reading = !self.requests.is_full();
            tokio::select! {
                signal = signals.next() => match signal {
                    Hint::Leave => return Ok(Leaving::Detached),
                    Hint::Resized => self.on_resized()?,
                    Hint::Stop => self.stop_for_a_while()?,
                    Hint::GoesOn => self.take_terminal_again()?,
                },
                turn = self.terminal.turn(&mut typed, reading) => match turn {
                    Ok(TerminalEvent::Typed(count)) => {
                        if let Some(leaving) = self.on_typed(&typed[..count])? {
                            return Ok(leaving);
                        }
                    }
                    Ok(TerminalEvent::Flushed) => {}
                    // The person closed the window.
                    Ok(TerminalEvent::Gone) | Err(_) => return Ok(Leaving::Detached),
                },
                delta = self.attach.next() => match delta? {
                    Some(delta) => self.on_delta(delta)?,
                    None => return Ok(Leaving::of_end(self.attach.result(), self.view.exit.as_ref())?),
                },
                Some(answered) = self.requests.next() => self.on_answer(answered)?,
                notice = events.next(), if !self.terminal.is_behind() => self.terminal.notify(&notice),
                // Without a session, the first delta triggers the request.
                Ok(()) = self.switched.changed() => if !self.view.session.is_empty() {
                    self.ask_about()?;
                },
                Ok(()) = self.asked_for.changed() => self.ask_for_approvals()?,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some(leaving) = self.on_time()? {
                        return Ok(leaving);
                    }
                }
            }
        }
    }

    fn on_delta(&mut self, delta: Value) -> Result<(), CliFailure> {
        let first = self.view.session.is_empty();
        let before = self.view.lease.clone();
        if !self.view.apply(delta) {
            return Err(ClientError::Malformed.into());
        }
        self.dirty = true;
        if !self.me.is_empty() {
            let mine = self.view.is_held_by(&self.me);
            self.carried.taken_over.on_lease(mine);
            if let (Some(by), Some(kind), true) = (before.by, before.kind, mine)
                && by != self.me
                && self.view.lease.suspended.is_none()
            {
                let text = format!("you took the keyboard from {}", named(&by, kind));
                self.tell(text, NoticeReason::Keyboard { mine: true });
            }
        }
        // Right after a restart the history may be empty for a moment.
        if first || self.carried.scrollback.as_ref().is_some_and(|back| back.lines().is_empty()) {
            self.ask_for_history()?;
        }
        if first {
            self.ask_about()?;
        }
        Ok(())
    }

    /// Requests what deltas do not contain: the session's name, and whether writing is allowed.
    fn ask_about(&mut self) -> Result<(), CliFailure> {
        let about = json!({"name": "list_sessions", "arguments": {"session": self.view.session}});
        self.ask(Purpose::About, "tools/call", &about)
    }

    fn on_resized(&mut self) -> Result<(), CliFailure> {
        self.terminal.resize();
        self.close_call();
        self.dirty = true;
        self.say_room()?;
        let room = self.room();
        match &mut self.carried.scrollback {
            Some(back) => {
                back.resize(room.rows);
                self.ask_for_history()
            }
            None => Ok(()),
        }
    }

    /// The size available for the session.
    fn room(&self) -> TerminalSize {
        room_for_session(self.terminal.room())
    }

    /// Sends the size available for the session. The answer contains the person's name.
    fn say_room(&mut self) -> Result<(), CliFailure> {
        let news = self.room_told.on_room(self.room());
        self.tell_room(news)
    }

    fn tell_room(&mut self, room: Option<TerminalSize>) -> Result<(), CliFailure> {
        let Some(TerminalSize { rows, cols }) = room else { return Ok(()) };
        let params = json!({"attach": self.attach.id(), "cols": cols, "rows": rows});
        self.ask(Purpose::Room, SIZE_METHOD, &params)
    }

    fn stop_for_a_while(&mut self) -> Result<(), CliFailure> {
        self.terminal.stop_for_a_while().map_err(terminal_failed)?;
        self.on_resized()
    }

    fn take_terminal_again(&mut self) -> Result<(), CliFailure> {
        self.terminal.enter().map_err(terminal_failed)?;
        self.on_resized()
    }

    fn tell(&mut self, text: impl Into<String>, ground: NoticeReason) {
        self.notice = Some(Notice::new(text.into(), ground, Instant::now()));
        self.dirty = true;
    }

    fn due(&self) -> Option<Instant> {
        let notice = self.notice.as_ref().map(Notice::until);
        let flush = self.flush_due.filter(|_| !self.requests.is_full());
        [flush, notice, self.requests.deadline(), self.approvals.due()].into_iter().flatten().min()
    }

    fn on_time(&mut self) -> Result<Option<Leaving>, CliFailure> {
        let now = Instant::now();
        if self.notice.take_if(|notice| notice.until() <= now).is_some() {
            self.dirty = true;
        }
        self.requests.on_time(now);
        if self.approvals.are_old(now) {
            self.ask_for_approvals()?;
        }
        if self.requests.is_full() || self.flush_due.is_none_or(|due| due > now) {
            return Ok(None);
        }
        self.flush_due = None;
        // Escape leaves history and closes the list of keys, also where nothing follows it.
        self.dirty = true;
        let typed = self.carried.chords.flush();
        self.obey(typed)
    }
}

pub fn terminal_failed(error: std::io::Error) -> CliFailure {
    CliFailure::Other(anyhow::Error::new(error).context("the terminal failed"))
}

/// How an attachment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    Detached,
    /// Another client detached all attached people.
    SentAway,
    Exited(ExitWire),
}

impl Leaving {
    /// Derives it from the attachment's result and the program's exit.
    pub fn of_end(result: &Value, exit: Option<&ExitWire>) -> Result<Self, ClientError> {
        match (result["ended"].as_str(), exit) {
            (Some("exited"), Some(exit)) => Ok(Self::Exited(*exit)),
            (Some("detached"), _) => Ok(Self::SentAway),
            (_, _) => Err(ClientError::Closed),
        }
    }
}
