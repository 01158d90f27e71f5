//! One call on its way through a tool: who asks, what it may change, and the means to do it.
//!
//! The gateway settles the rights; a tool takes from the call what it needs.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::config::Toolsets;
use crate::core::caller::{Caller, PrincipalName};
use crate::core::ids::{LeaseId, PrincipalId, SessionId, TenantId};
use crate::core::lease::request::{OnDisconnect, TakeRule};
use crate::core::moment::Moment;
use crate::core::nearest::nearest_of;
use crate::core::policy::decision::DecisionId;
use crate::core::policy::roles::GoneSession;
use crate::core::policy::{Door, Permit, Standing};
use crate::mount::handle::CallChannels;
use crate::mount::registry::Mounts;
use crate::mount::shares::MountClient;
use crate::session::command::Accepted;
use crate::session::drain::Departure;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::session::registry::silent::{Known, KnownAs};
use crate::session::stats::EventCounter;
use crate::store::index::writer::SearchIndex;
use crate::store::journal::writer::Journal;
use crate::surface::error::SurfaceError;
use crate::surface::judge::Judge;
use crate::surface::mount_lease::MountLease;
use crate::surface::mount_leases::MountLeases;
use crate::surface::person::ClientPerson;
use crate::surface::switchboard::Switchboard;
use crate::surface::turns::{Share, Turns};

/// What the daemon's tools work with.
#[derive(Debug)]
pub struct Daemon {
    pub sessions: Registry,
    pub switchboard: Switchboard,
    /// The sets of tools that clients have.
    pub toolsets: Toolsets,
    /// Whether a write takes a free lease by itself and keeps it.
    pub lease_auto: AtomicBool,
    /// Who is connected now.
    pub principals: Principals,
    /// Whether it leaves its sessions to the next one.
    pub departure: Departure,
    /// What was on screens before.
    pub index: SearchIndex,
    /// The rules, and the calls that wait for an approval.
    pub judge: Judge,
    /// The servers of others whose tools it offers.
    pub mounts: Mounts,
    pub mount_leases: Arc<MountLeases>,
    /// Turns for work whose size callers choose.
    pub turns: Turns,
    pub journal: Journal,
    /// When the daemon started.
    pub started: Moment,
}

/// Those who are connected, each with its tenant.
#[derive(Debug, Default)]
pub struct Principals {
    here: Mutex<HashMap<PrincipalId, Connected>>,
    entered: EventCounter,
}

/// How somebody is connected.
#[derive(Debug)]
struct Connected {
    tenant: TenantId,
    connections: usize,
    /// What others see it called.
    labels: Vec<Arc<str>>,
    /// The newest sessions that it made for one command each.
    made: VecDeque<SessionId>,
}

/// So many sessions for one command are known of one principal; older ones are like all others.
const MADE_MAX: usize = 16;

impl Principals {
    /// Notes that somebody is connected, on one more connection.
    pub fn enter(&self, caller: &Caller) {
        self.entered.add(1);
        let mut here = self.lock();
        let (tenant, labels) = (caller.tenant.clone(), vec![Arc::clone(&caller.label)]);
        let fresh = || Connected { tenant, connections: 0, labels, made: VecDeque::new() };
        here.entry(caller.principal).or_insert_with(fresh).connections += 1;
    }

    /// Notes what a client calls itself, which is its name from then on.
    pub fn rename(&self, principal: PrincipalId, label: &Arc<str>) {
        if let Some(found) = self.lock().get_mut(&principal) {
            found.labels = vec![Arc::clone(label)];
        }
    }

    /// Notes what somebody is called at a session besides.
    pub fn call_also(&self, name: PrincipalName) {
        if let Some(found) = self.lock().get_mut(&name.principal)
            && !found.labels.contains(&name.label)
        {
            found.labels.push(name.label);
        }
    }

    /// Notes that somebody made a session for one command.
    pub fn note_made(&self, principal: PrincipalId, session: SessionId) {
        if let Some(found) = self.lock().get_mut(&principal) {
            found.made.truncate(MADE_MAX - 1);
            found.made.push_front(session);
        }
    }

    /// Whether somebody made this session for one command, and is connected since then.
    pub fn has_made(&self, principal: PrincipalId, session: SessionId) -> bool {
        self.lock().get(&principal).is_some_and(|found| found.made.contains(&session))
    }

    /// Notes that a connection of somebody's has closed. Returns whether it was the last one.
    pub fn leave(&self, principal: PrincipalId) -> bool {
        let mut here = self.lock();
        let Some(found) = here.get_mut(&principal) else { return false };
        found.connections -= 1;
        let is_gone = found.connections == 0;
        if is_gone {
            here.remove(&principal);
        }
        is_gone
    }

    /// Whether somebody of this tenant is connected who has this whole name: the number alone may be
    /// somebody else's since the daemon started anew.
    pub fn is_here(&self, name: &PrincipalName, tenant: &TenantId) -> bool {
        let is = |here: &Connected| here.tenant == *tenant && here.labels.contains(&name.label);
        self.lock().get(&name.principal).is_some_and(is)
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.lock().values().map(|here| here.connections).sum()
    }

    /// How many connections there ever were.
    pub fn total(&self) -> u64 {
        self.entered.get()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PrincipalId, Connected>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    /// The moment it is.
    pub fn now(&self) -> Moment {
        self.sessions.clock().now()
    }

    /// Whose share of the places of a mount a caller has.
    pub fn mount_client(&self, caller: &Caller) -> MountClient {
        if caller.tenant == *self.sessions.own_tenant() {
            MountClient::One(caller.principal)
        } else {
            MountClient::Tenant(caller.tenant.clone())
        }
    }
}

/// One call.
#[derive(Debug)]
pub struct Call {
    pub daemon: Arc<Daemon>,
    pub standing: Standing,
    /// Lets the connection's next call go on; dropped once this one has taken effect.
    pub accepted: Accepted,
    /// The session that the call changes, with the right to do so.
    pub target: Option<Target>,
    /// The mount whose lease the call is about.
    pub mount_lease: Option<Arc<MountLease>>,
    /// The right to what is no session: to create one, to operate, or to a mount.
    pub permit: Option<Permit>,
    /// The sessions that the caller's connection has a stake in.
    pub touched: Touched,
    /// The session that the call creates.
    pub creates: Option<SessionId>,
    /// Who can be asked whether it may pass.
    pub person: ClientPerson,
    /// Whether what it types may be a secret; none unless rules did not let it pass at once.
    pub may_be_secret: Option<bool>,
    /// How long it may wait for an approval, if its client says more about that than the arguments do.
    pub approval_wait: Option<Duration>,
    /// What the server of a mounted tool may tell and ask the caller.
    pub channels: CallChannels,
}

/// The sessions that a connection has a stake in, to be told when it closes.
pub type Touched = Arc<Mutex<BTreeSet<SessionId>>>;

/// The session a call changes.
#[derive(Debug)]
pub struct Target {
    pub session: Session,
    pub permit: Permit,
}

impl Call {
    /// A call without any right, whose client can be neither asked nor told.
    pub fn new(daemon: Arc<Daemon>, standing: Standing, touched: Touched) -> Self {
        Self {
            daemon,
            standing,
            accepted: Accepted::nothing(),
            target: None,
            permit: None,
            touched,
            mount_lease: None,
            creates: None,
            person: ClientPerson::Absent,
            may_be_secret: None,
            approval_wait: None,
            channels: CallChannels::default(),
        }
    }

    /// The session named by a parameter, or the one the door is bound to.
    ///
    /// # Errors
    /// [`SurfaceError::SessionNotFound`] when the caller sees none of that name,
    /// [`SessionError::Silent`] when nobody answers for its terminal yet, and
    /// [`SurfaceError::Argument`] when none is named at all or a prefix fits several.
    pub fn session(&self, given: Option<&str>) -> Result<Session, SurfaceError> {
        find_session(&self.daemon.sessions, &self.standing, given)
    }

    /// Takes the session to change out of the call.
    pub fn take_target(&mut self) -> Result<Target, SurfaceError> {
        let missing = || SurfaceError::Internal("the tool has no session to change".to_owned());
        self.target.take().ok_or_else(missing)
    }

    /// The right by which the call changes something.
    pub fn permit_mut(&mut self) -> Option<&mut Permit> {
        let permit = self.target.as_mut().map(|target| &mut target.permit);
        permit.or(self.permit.as_mut())
    }

    /// Notes the decision of the rules by which the call passes.
    pub fn decided(&mut self, decision: DecisionId) {
        if let Some(permit) = self.permit_mut() {
            permit.decided(decision);
        }
    }

    /// The decision of the rules by which the call passes.
    pub fn decision(&self) -> Option<DecisionId> {
        let permit = self.target.as_ref().map(|target| &target.permit);
        permit.or(self.permit.as_ref())?.decision()
    }

    /// Lets the connection's next call go on.
    pub fn accept(&mut self) {
        self.accepted = Accepted::nothing();
    }

    /// Takes the right to create or operate out of the call.
    pub fn take_permit(&mut self) -> Result<Permit, SurfaceError> {
        let missing = || SurfaceError::Internal("the tool has no permit".to_owned());
        self.permit.take().ok_or_else(missing)
    }
}

impl Call {
    /// What becomes of a lease when this caller's connection closes: the command line is many short
    /// connections and keeps it.
    pub fn on_disconnect(&self) -> Option<OnDisconnect> {
        (self.standing.door == Door::Operator).then_some(OnDisconnect::Keep)
    }

    /// What a write of this caller does about a lease it does not hold: the command line takes a
    /// free one for the call, agents need to hold one unless the configuration says otherwise.
    pub fn take_rule(&self) -> TakeRule {
        let fresh = || LeaseId(Uuid::new_v4());
        if self.standing.door == Door::Operator {
            TakeRule::ForThisCall(fresh())
        } else if self.daemon.lease_auto.load(Ordering::Relaxed) {
            TakeRule::AndKeep(fresh(), self.daemon.sessions.limits().lease.ttl_default)
        } else {
            TakeRule::HeldOnly
        }
    }

    /// What the caller's tenant has for work of whatever size.
    pub fn share(&self) -> Share {
        self.daemon.turns.share_of(&self.standing.caller.tenant)
    }

    /// How many cells a terminal may have.
    pub fn cells_max(&self) -> u32 {
        self.daemon.sessions.limits().cells_max
    }

    /// Notes that the caller's connection has a stake in a session, which is told when it closes.
    pub fn touched(&self, session: &Session) {
        note_touched(&self.touched, session);
    }
}

/// Notes that a connection has a stake in a session.
pub fn note_touched(touched: &Touched, session: &Session) {
    touched.lock().unwrap_or_else(PoisonError::into_inner).insert(session.id());
}

/// Finds a session by id, unique prefix of an id, or name, among those the caller sees.
pub fn find_session(
    sessions: &Registry,
    standing: &Standing,
    given: Option<&str>,
) -> Result<Session, SurfaceError> {
    match find_known(sessions, standing, given)?.as_is {
        KnownAs::Here(session) => Ok(session),
        KnownAs::Silent(_) => Err(SessionError::Silent.into()),
    }
}

/// The same, also where nobody answers for the terminal yet.
pub fn find_known(
    sessions: &Registry,
    standing: &Standing,
    given: Option<&str>,
) -> Result<Known, SurfaceError> {
    let bound = standing.bound_session();
    let sees = |known: &Known| standing.sees(known);
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        let id = bound.ok_or_else(|| {
            let problem = if given.is_some() { "is empty" } else { "missing" };
            let problem = format!("{problem}: give an id, a unique prefix or a name");
            SurfaceError::argument("session", problem)
        })?;
        let found = sessions.known_by_id(id).filter(sees);
        return found.ok_or_else(|| SurfaceError::no_session(id));
    };
    let by_id = given.parse().ok().and_then(|id| sessions.known_by_id(id)).filter(sees);
    let by_name = || {
        let private = sessions.known_among(|tenant| standing.is_private_tenant(tenant), given);
        let own = || sessions.known_by_name(&standing.caller.tenant, given);
        private.or_else(own).filter(sees)
    };
    if let Some(known) = by_id.or_else(by_name) {
        return Ok(known);
    }
    let seen = seen_known(sessions, standing);
    let mut namesakes = seen.iter().filter(|known| *known.name() == *given);
    match (namesakes.next(), namesakes.next()) {
        (Some(known), None) => return Ok(known.clone()),
        (Some(_), Some(_)) => {
            let problem = format!("`{given}` is the name of sessions of several tenants");
            return Err(SurfaceError::argument("session", problem));
        }
        (None, _) => {}
    }
    let starts = |known: &Known| known.id().to_string().starts_with(given);
    let (mut by_prefix, others): (Vec<_>, Vec<_>) = seen.into_iter().partition(starts);
    if by_prefix.len() > 1 {
        let problem = format!("`{given}` is the start of {} session ids", by_prefix.len());
        return Err(SurfaceError::argument("session", problem));
    }
    by_prefix.pop().ok_or_else(|| {
        let names: Vec<Arc<str>> = others.iter().map(Known::name).collect();
        let near = nearest_of(given, names.iter().map(|name| &**name), 1).pop().map(str::to_owned);
        SurfaceError::SessionNotFound { given: given.to_owned(), near }
    })
}

/// Every session that the caller sees, by name and then by id. Includes those whose shims do not answer yet.
pub fn seen_known(sessions: &Registry, standing: &Standing) -> Vec<Known> {
    sessions.known().iter().filter(|known| standing.sees(*known)).cloned().collect()
}

/// Whether a caller may know of a session of which perhaps only records are left.
pub fn sees_id(sessions: &Registry, standing: &Standing, id: SessionId, tenant: &TenantId) -> bool {
    match sessions.known_by_id(id) {
        Some(known) => standing.sees(&known),
        None => standing.sees(&GoneSession { id, tenant }),
    }
}
