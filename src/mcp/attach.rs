//! `termgate/attach`: a person at a session, who sees every change and types. Only operators may attach.
//!
//! Screen updates go the way of all observers. Input is the raw bytes of the person's terminal; the session decides
//! who may write.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

use crate::core::caller::{Caller, Kind};
use crate::core::event::Event;
use crate::core::frame::Size;
use crate::core::ids::{PrincipalId, SessionId};
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::wire::attach::AttachRequest;

/// The name of the extension that declares these methods.
pub const EXTENSION: &str = "dev.termgate/attach";
/// The request that attaches. It stays open until the person is detached.
pub const ATTACH_METHOD: &str = "termgate/attach";
/// The request that carries typed input.
pub const INPUT_METHOD: &str = "termgate/attach/input";
/// The request that reports the size of the person's terminal.
pub const SIZE_METHOD: &str = "termgate/attach/size";
/// The request that takes the keyboard without typing.
pub const TAKE_OVER_METHOD: &str = "termgate/attach/take_over";
/// The request that gives the keyboard back.
pub const HAND_BACK_METHOD: &str = "termgate/attach/hand_back";

/// The maximum input of one request, in bytes. Larger pastes take several requests.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub struct AttachedPerson {
    pub session: Session,
    pub person: Caller,
    pub view_only: bool,
    room: Mutex<Size>,
    sessions: Registry,
    /// Reserves the person's name at this session.
    _name: Name,
}

impl AttachedPerson {
    /// Attaches `caller`, named by login, with a terminal of the requested size.
    pub fn new(
        (sessions, session): (Registry, Session),
        caller: &Caller,
        names: &Names,
        open: &AttachRequest,
    ) -> Self {
        let name = names.call(session.id(), &caller.label);
        let label = Arc::clone(&name.label);
        let person = Caller { kind: Kind::Human, label, ..caller.clone() };
        let room = Mutex::new(Size::nearest(open.rows, open.cols));
        Self { session, person, view_only: open.view_only, room, sessions, _name: name }
    }

    /// The size that the session should have for this person.
    pub fn room(&self) -> Size {
        *self.lock()
    }

    /// Sets the size of the person's terminal.
    pub fn set_room(&self, rows: u16, cols: u16) {
        *self.lock() = Size::nearest(rows, cols);
    }

    fn lock(&self) -> MutexGuard<'_, Size> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs and records that the person attached.
    pub fn note_attached(&self) {
        self.log("attached");
        self.tell(Event::Attached { person: self.person.clone() }, "attached");
    }

    fn note_detached(&self) {
        self.log("detached");
        self.tell(Event::Detached { person: self.person.clone() }, "detached");
    }

    fn log(&self, did: &'static str) {
        let (session, by) = (self.session.id(), self.person.name());
        tracing::info!(%session, %by, tenant = %self.person.tenant, "{did}");
    }

    fn tell(&self, event: Event, did: &str) {
        self.session.mark_recording(format!("{} {did}", self.person.name()));
        self.sessions.tell_event(Some(&self.session), event);
    }
}

/// The people of one connection by their attach requests, bounded by the requests that may stay open.
#[derive(Clone, Debug, Default)]
pub struct People(Arc<Mutex<HashMap<RequestId, Arc<AttachedPerson>>>>);

impl People {
    /// Adds a person until the seat is dropped.
    pub fn sit(&self, request: RequestId, attached: Arc<AttachedPerson>) -> Seat {
        self.lock().insert(request.clone(), attached);
        Seat { people: self.clone(), request }
    }

    /// Whether this connection is attached to the session already.
    pub fn is_at(&self, session: SessionId) -> bool {
        self.lock().values().any(|attached| attached.session.id() == session)
    }

    /// The name by which this principal is attached.
    pub fn label_of(&self, principal: PrincipalId) -> Option<Arc<str>> {
        let people = self.lock();
        let attached = people.values().find(|attached| attached.person.principal == principal)?;
        Some(Arc::clone(&attached.person.label))
    }

    /// The person attached by this request.
    pub fn find(&self, request: &RequestId) -> Option<Arc<AttachedPerson>> {
        self.lock().get(request).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<AttachedPerson>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one person; dropping it detaches.
#[derive(Debug)]
pub struct Seat {
    people: People,
    request: RequestId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let attached = self.people.lock().remove(&self.request);
        if let Some(attached) = attached {
            attached.note_detached();
            attached.session.detached(attached.person.principal);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<HashSet<Taken>>>);

type Taken = (SessionId, Arc<str>);

impl Names {
    /// Reserves a name at a session, such as `anna`, or `anna (2)` if `anna` is taken.
    pub fn call(&self, session: SessionId, login: &str) -> Name {
        let mut taken = self.lock();
        let mut number = 1_u32;
        loop {
            let label: Arc<str> = match number {
                1 => Arc::from(login),
                _ => Arc::from(format!("{login} ({number})")),
            };
            if taken.insert((session, Arc::clone(&label))) {
                return Name { names: self.clone(), session, label };
            }
            number += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name at a session, released on drop.
#[derive(Debug)]
pub struct Name {
    names: Names,
    session: SessionId,
    label: Arc<str>,
}

impl Drop for Name {
    fn drop(&mut self) {
        self.names.lock().remove(&(self.session, Arc::clone(&self.label)));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn people_of_one_name_at_one_session_get_numbers() {
        let names = Names::default();
        let session = |number| SessionId::from_random(Uuid::from_u128(number));
        let (here, there) = (session(1 << 100 | 1), session(2 << 100 | 2));
        let first = names.call(here, "anna");
        let second = names.call(here, "anna");
        assert_eq!((&*first.label, &*second.label), ("anna", "anna (2)"));
        assert_eq!(&*names.call(there, "anna").label, "anna");
        assert_eq!(&*names.call(here, "ben").label, "ben");
        drop(first);
        assert_eq!(&*names.call(here, "anna").label, "anna");
    }
}
