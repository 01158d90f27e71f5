//! People at the keyboard of a session: what they type comes before what agents ask.
//!
//! Who may type is the core's to say; here the bytes become keys, and the terminal takes the size of
//! the view of whoever has the keyboard.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::mpsc;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{ConnectionId, LeaseId, PrincipalId};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::request::{Typing, WriteId};
use crate::core::input::typing::TypedBefore;
use crate::core::journal::ActContent;
use crate::core::keys::Unit;
use crate::core::keys::tokens::TypedBytes;
use crate::core::lease::request::Grant;
use crate::core::moment::Moment;
use crate::core::policy::Door;
use crate::session::actor::Actor;
use crate::session::command::{
    Ask, PEOPLE_COMMANDS_MAX, PersonCommand, Reply, TypedInput, Written,
};
use crate::session::error::SessionError;
use crate::session::pty::Pty;

#[derive(Debug, Default)]
pub(super) struct Typists {
    /// Those in the middle of a paste or a sequence.
    pub(super) unfinished: HashMap<PrincipalId, (ConnectionId, TypedBytes)>,
    /// Those who have left, and are let go after all that they typed.
    pub(super) left: BTreeSet<PrincipalId>,
}

impl Typists {
    /// Forgets what was begun on a connection that has ended.
    pub(super) fn on_closed(&mut self, connection: ConnectionId) {
        self.unfinished.retain(|_, (of, _)| *of != connection);
    }
}

enum Keyed {
    New(WriteId, Grant),
    /// It was asked for before, and waits for the terminal.
    Waits(WriteId),
    Typed,
}

impl<P: Pty> Actor<P> {
    /// Does what people have asked for so far, and then lets those go who have left: whoever left
    /// has asked for everything before that.
    pub(super) fn serve_people(&mut self, people: &mut mpsc::Receiver<PersonCommand>) {
        self.drain_urgent();
        for _ in 0..PEOPLE_COMMANDS_MAX {
            let Ok(command) = people.try_recv() else {
                self.let_leavers_go();
                return;
            };
            self.on_person(command);
        }
    }

    fn let_leavers_go(&mut self) {
        let now = self.clock.now();
        for person in std::mem::take(&mut self.typists.left) {
            self.typists.unfinished.remove(&person);
            self.input.on_person_left(now, person);
        }
    }

    pub(super) fn on_person(&mut self, command: PersonCommand) {
        self.drain_urgent();
        let PersonCommand { caller, fresh, ask } = command;
        if ask.is_abandoned() || self.callers.has_left(caller.connection) {
            return;
        }
        if let Some(exit) = self.ending.exit {
            ask.refuse(SessionError::Exited(exit));
            return;
        }
        if self.returning.is_some() {
            ask.refuse(SessionError::Silent);
            return;
        }
        match ask {
            Ask::TypeIn(typed, reply) => self.on_typed(&caller, fresh, typed, reply),
            Ask::TakeOver(view, reply) => {
                let taken = self.take_over(&caller, fresh, view);
                self.settle();
                let _ = reply.send(taken);
            }
            Ask::HandBack(reply) => {
                let had = self.hand_back(&caller);
                self.settle();
                let _ = reply.send(had);
            }
            Ask::Resize(view, reply) => {
                let has_keyboard = self.input.has_keyboard(self.clock.now(), &caller);
                let resized = if has_keyboard { self.resize_for(&caller, view) } else { Ok(()) };
                self.settle();
                let _ = reply.send(resized.map(|()| has_keyboard));
            }
        }
    }

    fn on_typed(
        &mut self,
        caller: &Caller,
        fresh: LeaseId,
        typed: TypedInput,
        reply: Reply<Written>,
    ) {
        // Output that came before the keys must not look like their effect.
        self.publish_output();
        match self.type_in(caller, fresh, &typed) {
            Ok(Keyed::Typed) => {
                self.settle();
                self.answer_made(caller, typed.bytes.len(), reply);
            }
            Ok(Keyed::Waits(write)) => {
                self.join_write(write, caller, reply);
                self.settle();
            }
            Ok(Keyed::New(write, grant)) => {
                self.screen.set_typist(caller.name());
                self.begin_typing();
                let pending = self.queued(caller, grant, reply);
                self.follow_write(write, pending);
                self.settle();
            }
            Err(error) => {
                self.settle();
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Types what was not typed before under its key.
    fn type_in(
        &mut self,
        caller: &Caller,
        fresh: LeaseId,
        typed: &TypedInput,
    ) -> Result<Keyed, SessionError> {
        let now = self.clock.now();
        let stamp = typed.key.as_ref().map(|key| WriteStamp::of_person(&caller.tenant, key));
        let length = typed.bytes.len();
        let before = match &stamp {
            None => 0,
            Some(stamp) => match self.input.typed_before(now, stamp, length)? {
                TypedBefore::Waits(write) => return Ok(Keyed::Waits(write)),
                TypedBefore::Bytes(bytes) if bytes == length => return Ok(Keyed::Typed),
                TypedBefore::Bytes(bytes) => bytes,
            },
        };
        self.begin_keys(now, caller);
        let known = self.typists.unfinished.remove(&caller.principal);
        let mut keys = known.map(|(_, keys)| keys).unwrap_or_default();
        let unit = Unit { pieces: keys.pieces(&typed.bytes[before..]) };
        let checked = self.input.check_type_in(now, caller, &unit).map_err(SessionError::from);
        let recorded = checked.and_then(|()| self.record_typing(caller, &unit));
        let write = self.callers.next_write();
        let line = self.shell.line_with(&unit, self.screen.commands());
        let typing = Typing { unit, write, stamp, fresh };
        let granted = recorded.and_then(|()| Ok(self.input.type_in(now, caller, typing)?));
        if granted.is_ok() {
            self.shell.on_queued(line);
            keys.on_queued();
        }
        if !keys.is_blank() {
            self.typists.unfinished.insert(caller.principal, (caller.connection, keys));
        }
        let grant = granted?;
        self.follow_typing(write, caller, grant.epoch);
        self.take_size(caller, typed.view);
        Ok(Keyed::New(write, grant))
    }

    /// Keeps a person who comes to the keyboard from going on in the middle of a key or a paste.
    fn begin_keys(&mut self, now: Moment, caller: &Caller) {
        if !self.input.has_keyboard(now, caller)
            && let Some((_, keys)) = self.typists.unfinished.get_mut(&caller.principal)
        {
            keys.begin_again();
        }
    }

    fn take_over(
        &mut self,
        caller: &Caller,
        fresh: LeaseId,
        view: Option<Size>,
    ) -> Result<(), SessionError> {
        let now = self.clock.now();
        self.input.check_take_over(now)?;
        self.begin_keys(now, caller);
        self.end_burst();
        let door = Some(Door::Operator);
        self.recorded(caller, door, "take_over", ActContent::Nothing, |actor| {
            Ok(actor.input.take_over(now, caller, fresh).map(drop)?)
        })?;
        self.note(caller, "took over");
        self.take_size(caller, view);
        Ok(())
    }

    /// Tells the log what a person did, also one that does not stay to hear of it.
    fn note(&self, person: &Caller, did: &'static str) {
        let (session, by) = (self.id, person.name());
        tracing::info!(%session, %by, tenant = %person.tenant, "{did}");
    }

    fn hand_back(&mut self, caller: &Caller) -> bool {
        if !self.input.has_keyboard(self.clock.now(), caller) {
            return self.input.hand_back(self.clock.now(), caller);
        }
        self.end_burst();
        let door = Some(Door::Operator);
        let had = self.recorded_anyway(caller, door, "hand_back", |actor| {
            Ok(actor.input.hand_back(actor.clock.now(), caller))
        });
        let had = had.unwrap_or_default();
        if had {
            self.note(caller, "handed back");
        }
        had
    }

    fn resize_for(&mut self, person: &Caller, view: Size) -> Result<(), SessionError> {
        if self.frames.borrow().size.value == view {
            return Ok(());
        }
        let arguments = format!(r#"{{"rows":{},"cols":{}}}"#, view.rows, view.cols);
        let (door, content) = (Some(Door::Operator), ActContent::Arguments(&arguments));
        self.recorded(person, door, "resize", content, |actor| actor.resize(view))
    }

    /// Gives the terminal the size of the view of whoever has the keyboard.
    fn take_size(&mut self, person: &Caller, view: Option<Size>) {
        let Some(Err(error)) = view.map(|view| self.resize_for(person, view)) else { return };
        tracing::warn!(session = %self.id, %error, "cannot resize the terminal");
    }
}
