//! `termgate/attach`: a person at a session, who sees every change and types.
//!
//! It stands at the operators' door alone. What is shown goes the way of all observers; what is typed
//! is bytes as the person's terminal sent them, and the session decides whose turn it is.

pub mod names;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

use crate::core::caller::{Caller, Kind};
use crate::core::frame::Size;
use crate::core::ids::SessionId;
use crate::mcp::attach::names::{Name, Names};
use crate::session::handle::Session;
use crate::wire::attach::AttachRequest;

/// The name of the extension under which it is declared.
pub const EXTENSION: &str = "dev.termgate/attach";
/// The request that attaches; it stays open until the person is detached.
pub const ATTACH_METHOD: &str = "termgate/attach";
/// The request that carries what the person typed.
pub const INPUT_METHOD: &str = "termgate/attach/input";
/// The request that says how much room the person has.
pub const SIZE_METHOD: &str = "termgate/attach/size";
/// The request that takes the keyboard without a key.
pub const TAKE_OVER_METHOD: &str = "termgate/attach/take_over";
/// The request that gives the keyboard back.
pub const HAND_BACK_METHOD: &str = "termgate/attach/hand_back";

/// How many bytes one request may carry as typed; a larger paste comes in several.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// One person at one session.
#[derive(Debug)]
pub struct Attached {
    pub session: Session,
    pub person: Caller,
    pub view_only: bool,
    room: Mutex<Size>,
    /// Keeps the person's name from others at this session.
    _name: Name,
}

impl Attached {
    /// A person who came in as `caller`, labelled with its login name, and has room for so many cells.
    pub fn new(session: Session, caller: &Caller, names: &Names, open: &AttachRequest) -> Self {
        let name = names.call(session.id(), &caller.label);
        let label = Arc::clone(name.label());
        let person = Caller { kind: Kind::Human, label, ..caller.clone() };
        let room = Mutex::new(Size::nearest(open.rows, open.cols));
        Self { session, person, view_only: open.view_only, room, _name: name }
    }

    /// How large the session should be for this person.
    pub fn room(&self) -> Size {
        *self.lock()
    }

    /// Notes how much room the person has now.
    pub fn set_room(&self, rows: u16, cols: u16) {
        *self.lock() = Size::nearest(rows, cols);
    }

    fn lock(&self) -> MutexGuard<'_, Size> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes down what a person did at a session: it attached, took over, handed back, detached.
pub fn note(attached: &Attached, did: &'static str) {
    let (session, by) = (attached.session.id(), attached.person.name());
    tracing::info!(%session, %by, tenant = %attached.person.tenant, "{did}");
}

/// The people of one connection, by the requests that attached them; bounded by the requests that
/// may stay open.
#[derive(Clone, Debug, Default)]
pub struct People(Arc<Mutex<HashMap<RequestId, Arc<Attached>>>>);

impl People {
    /// Notes a person for as long as the seat is kept.
    pub fn sit(&self, request: RequestId, attached: Arc<Attached>) -> Seat {
        self.lock().insert(request.clone(), attached);
        Seat { people: self.clone(), request }
    }

    /// Whether somebody of this connection sits at a session already.
    pub fn is_at(&self, session: SessionId) -> bool {
        self.lock().values().any(|attached| attached.session.id() == session)
    }

    /// The person whom this request attached.
    pub fn find(&self, request: &RequestId) -> Option<Arc<Attached>> {
        self.lock().get(request).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<Attached>>> {
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
            note(&attached, "detached");
            attached.session.detached(attached.person.principal);
        }
    }
}
