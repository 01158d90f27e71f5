//! Rights: who may see which session, and the permit without which nothing can be changed.
//!
//! Policy decides and acts on nothing. A [`Permit`] can be built here alone, and every method that
//! changes a session asks for one, so that no path to a terminal can forget to ask.

pub mod approvals;
pub mod bound;
pub mod decision;
pub mod denial;
pub mod roles;
pub mod rules;
pub mod switches;
pub mod tenants;

use std::sync::Arc;

use crate::core::caller::{Caller, Kind};
use crate::core::ids::{PrincipalId, SessionId, TenantId};
use crate::core::moment::Moment;
use crate::core::policy::bound::PermitBound;
use crate::core::policy::decision::DecisionId;
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::{Rights, RightsSubject, Role, Roles};
use crate::core::policy::rules::patterns::Patterns;
use crate::core::policy::switches::Switches;
use crate::core::token::TokenScope;

/// The door through which a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    Gateway,
    /// All sessions of the tenant, and never able to write.
    ObserverGateway,
    /// One session, the others invisible.
    Session(SessionId),
    /// One session, and never able to write.
    Observer(SessionId),
    /// The command line of people and operators.
    Operator,
}

impl Door {
    /// The word for it in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::ObserverGateway => "observer_gateway",
            Self::Session(_) => "session",
            Self::Observer(_) => "observer",
            Self::Operator => "operator",
        }
    }

    /// Whether nobody who came in here ever writes, whatever the switches say.
    pub fn only_watches(self) -> bool {
        match self {
            Self::Observer(_) | Self::ObserverGateway => true,
            Self::Gateway | Self::Session(_) | Self::Operator => false,
        }
    }
}

/// What a connection may reach at all, before any switch is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Every session of the caller's tenant.
    Tenant,
    /// This one alone.
    Session(SessionId),
    /// This one alone, and to view it whatever its tenant: whoever may open the socket may watch.
    Watched(SessionId),
    /// None: a program inside a managed session that hides which one it lives in.
    Nothing,
}

/// A caller together with what its door gives it.
#[derive(Clone, Debug)]
pub struct Standing {
    pub caller: Caller,
    /// The user of its process.
    pub uid: u32,
    pub door: Door,
    pub reach: Reach,
    /// What the configuration and its token give it.
    pub rights: Rights,
    /// The names of the tools that exist for it; all without.
    pub tools: Option<Arc<Patterns>>,
    /// Whether there are sessions for it. Where clients have mounts alone, there are none.
    pub sessions: bool,
    /// What the token that was shown allows at most, if one was.
    pub token: Option<TokenScope>,
    /// The caller runs inside a session of this daemon and gains nothing through it.
    pub managed: bool,
}

impl Standing {
    /// The standing of a member of a tenant without further rights, outside of all sessions and without a token.
    pub fn of_member(caller: Caller, uid: u32, door: Door, reach: Reach) -> Self {
        let (rights, tools, sessions) = (Rights::default(), None, true);
        Self { caller, uid, door, reach, rights, tools, sessions, token: None, managed: false }
    }

    /// Whether the caller may know what a session is and shows.
    pub fn sees(&self, session: &impl RightsSubject) -> bool {
        self.roles_at(session).has(Role::View)
    }

    /// Whether the caller may know what happens in a tenant apart from its sessions.
    pub fn sees_tenant(&self, tenant: &TenantId) -> bool {
        self.reach == Reach::Tenant && self.roles_in(tenant).has(Role::View)
    }

    /// What the caller may do at a session, whatever the switches say.
    pub fn roles_at(&self, session: &impl RightsSubject) -> Roles {
        if !self.sessions {
            return Roles::NONE;
        }
        match self.reach {
            Reach::Tenant => {}
            Reach::Session(only) | Reach::Watched(only) if only == session.id() => {}
            Reach::Session(_) | Reach::Watched(_) | Reach::Nothing => return Roles::NONE,
        }
        if self.is_operator() {
            return Roles::ALL;
        }
        let tenant = &self.caller.tenant;
        let private = session.tenant().is_private().then(|| self.private_tenant());
        let opened = match self.reach {
            Reach::Watched(_) if !session.tenant().is_private() => Role::View.into(),
            Reach::Watched(_) | Reach::Tenant | Reach::Session(_) | Reach::Nothing => Roles::NONE,
        };
        self.rights.at(session, tenant, private.as_ref()).and(opened)
    }

    /// What the caller may do in a whole tenant.
    pub fn roles_in(&self, tenant: &TenantId) -> Roles {
        match self.reach {
            Reach::Nothing => Roles::NONE,
            _ if self.is_operator() => Roles::ALL,
            Reach::Tenant | Reach::Session(_) | Reach::Watched(_) => {
                let roles = self.rights.in_tenant(&tenant.of_all(), &self.caller.tenant);
                let sees = !tenant.is_private() || self.is_private_tenant(tenant);
                if sees || roles.has(Role::Operate) { roles } else { Roles::NONE }
            }
        }
    }

    /// The user who calls, where no token says who that is.
    pub fn user(&self) -> Option<u32> {
        match self.caller.principal {
            PrincipalId::Token(_) => None,
            PrincipalId::Connection(_) => Some(self.uid),
        }
    }

    /// The tenant of the sessions that are private to the caller.
    pub fn private_tenant(&self) -> TenantId {
        let token = self.user().is_none().then(|| self.caller.principal.number());
        self.caller.tenant.private_to(token, self.uid)
    }

    /// Whether it is that tenant.
    pub fn is_private_tenant(&self, tenant: &TenantId) -> bool {
        // Few are private, and making its name costs more than to look.
        tenant.is_private() && *tenant == self.private_tenant()
    }

    /// Whether the caller may approve some calls of others.
    pub fn approves(&self) -> bool {
        self.is_operator() || (self.acts() && self.rights.ever(Role::Approve))
    }

    /// Whether the caller may operate some sessions.
    pub fn operates_some(&self) -> bool {
        self.is_operator() || (self.acts() && self.rights.ever(Role::Operate))
    }

    /// Whether its place and its door let the caller do more than watch.
    fn acts(&self) -> bool {
        !self.managed && !self.door.only_watches()
    }

    /// The session that calls mean when they name none.
    pub fn bound_session(&self) -> Option<SessionId> {
        match self.door {
            Door::Session(session) | Door::Observer(session) => Some(session),
            Door::Gateway | Door::ObserverGateway | Door::Operator => None,
        }
    }

    /// Whether a tool of this name exists for the caller.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.matches(name))
    }

    /// Whether the caller came in as an operator, also as a person at a session then.
    pub fn is_operator(&self) -> bool {
        let is_person = matches!(self.caller.kind, Kind::Operator | Kind::Human);
        self.door == Door::Operator && is_person && !self.managed
    }

    /// Whether the door, the token and the place the caller lives in could ever let it write.
    pub fn could_write(&self) -> bool {
        self.check_could_write().is_ok()
    }

    fn check_could_write(&self) -> Result<(), Denial> {
        if self.managed {
            return Err(Denial::InsideSession);
        }
        if self.door.only_watches() {
            return Err(Denial::ObserverDoor);
        }
        if self.token == Some(TokenScope::ReadOnly) {
            return Err(Denial::ReadOnlyToken);
        }
        if !self.is_operator() && !self.rights.ever(Role::Write) {
            return Err(Denial::NoRole);
        }
        Ok(())
    }
}

/// What a permit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermittedAct {
    Create,
    /// Write, and interrupt the command that was written.
    Type,
    Resize,
    /// Acquire, renew and release the lease.
    Lease,
    /// Kill, rename, signal or clear a session, or send people away from it.
    Manage,
    CallMount,
    /// Approve or deny calls.
    Approve,
    /// What is kept for operators: at one session, or at all and the daemon itself.
    Operate,
}

/// Allows one act of one principal on one session; only policy can build one.
#[derive(Debug)]
#[must_use = "a permit that is not used allows nothing"]
pub struct Permit {
    principal: PrincipalId,
    session: Option<SessionId>,
    act: PermittedAct,
    /// When the switch closes that allows it.
    until: Option<Moment>,
    /// The decision of the rules that lets it pass, if there are rules.
    decision: Option<DecisionId>,
    /// What it allows no more than.
    bound: Option<Box<PermitBound>>,
}

impl Permit {
    /// The decision of the rules that lets the act pass.
    pub fn decision(&self) -> Option<DecisionId> {
        self.decision
    }

    fn unlimited(standing: &Standing, act: PermittedAct, session: Option<SessionId>) -> Self {
        let principal = standing.caller.principal;
        Self { principal, session, act, until: None, decision: None, bound: None }
    }

    /// What the act is limited to, if it is.
    pub fn bound(&self) -> Option<&PermitBound> {
        self.bound.as_deref()
    }

    /// Has the act pass only within this.
    pub fn bind(&mut self, bound: PermitBound) {
        self.bound = Some(Box::new(bound));
    }

    /// Notes the decision of the rules that lets the act pass.
    pub fn decided(&mut self, decision: DecisionId) {
        self.decision = Some(decision);
    }

    /// Checks that it was given for this act on this session.
    ///
    /// # Errors
    /// [`Denial::OtherPermit`] when it was not, [`Denial::SwitchedOff`] when it is over.
    pub fn check(
        &self,
        act: PermittedAct,
        session: Option<SessionId>,
        now: Moment,
    ) -> Result<(), Denial> {
        if (self.act, self.session) != (act, session) {
            return Err(Denial::OtherPermit);
        }
        match self.until {
            Some(until) if until <= now => Err(Denial::SwitchedOff),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that it was given to operate a session, or everything.
    ///
    /// # Errors
    /// [`Denial::OtherPermit`] when it was not.
    pub fn check_operates(&self, session: Option<SessionId>) -> Result<(), Denial> {
        let covers = self.session.is_none() || self.session == session;
        let operates = self.act == PermittedAct::Operate && covers;
        if operates { Ok(()) } else { Err(Denial::OtherPermit) }
    }

    /// Checks that it was given to this principal.
    ///
    /// # Errors
    /// [`Denial::OtherPermit`] when it was not.
    pub fn check_principal(&self, principal: PrincipalId) -> Result<(), Denial> {
        if self.principal == principal { Ok(()) } else { Err(Denial::OtherPermit) }
    }
}

/// Decides whether a caller may do this to a session, or create one where none is named.
///
/// # Errors
/// The reason, when it may not.
pub fn decide_write<S: RightsSubject>(
    standing: &Standing,
    switches: &Switches,
    act: PermittedAct,
    session: Option<&S>,
    now: Moment,
) -> Result<Permit, Denial> {
    standing.check_could_write()?;
    let own = &standing.caller.tenant;
    let roles = session.map_or_else(|| standing.roles_in(own), |it| standing.roles_at(it));
    if !roles.has(Role::Write) {
        return Err(Denial::NoRole);
    }
    let tenant = session.map_or(own, RightsSubject::tenant);
    let session = session.map(RightsSubject::id);
    let window = switches.window(tenant, session);
    if !window.is_open(now) {
        let protected = session.is_some_and(|id| switches.is_protected(tenant, id));
        return Err(if protected { Denial::Protected } else { Denial::SwitchedOff });
    }
    let principal = standing.caller.principal;
    let until = window.closes_at();
    Ok(Permit { principal, session, act, until, decision: None, bound: None })
}

/// Decides whether a caller may do what is kept for the daemon's operators.
///
/// # Errors
/// [`Denial::NotOperator`] for everybody else.
pub fn decide_operate(standing: &Standing) -> Result<Permit, Denial> {
    let permit = Permit::unlimited(standing, PermittedAct::Operate, None);
    if standing.is_operator() { Ok(permit) } else { Err(Denial::NotOperator) }
}

/// Decides whether a caller may operate one session.
///
/// # Errors
/// [`Denial::NotOperator`] for everybody who lacks that role there.
pub fn decide_operate_at(
    standing: &Standing,
    session: &impl RightsSubject,
) -> Result<Permit, Denial> {
    let permit = Permit::unlimited(standing, PermittedAct::Operate, Some(session.id()));
    let may = standing.acts() && standing.roles_at(session).has(Role::Operate);
    if may { Ok(permit) } else { Err(Denial::NotOperator) }
}

/// Decides whether a caller may approve calls at all; at which sessions, its roles say.
///
/// # Errors
/// [`Denial::NoRole`] for everybody else.
pub fn decide_approve(standing: &Standing) -> Result<Permit, Denial> {
    let permit = Permit::unlimited(standing, PermittedAct::Approve, None);
    if standing.approves() { Ok(permit) } else { Err(Denial::NoRole) }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use uuid::Uuid;

    use super::*;
    use crate::core::ids::{ConnectionId, PrincipalId};
    use crate::core::input::WriteWindow;
    use crate::core::policy::roles::GoneSession;
    use crate::core::policy::switches::Scope;

    const NOW: Moment = Moment::from_boot(std::time::Duration::from_secs(100));

    fn session(n: u128) -> SessionId {
        SessionId::from_random(Uuid::from_u128(n << 80))
    }

    /// A session of the tenant of [`standing`], or none.
    fn at(id: SessionId) -> GoneSession<'static> {
        static OWN: LazyLock<TenantId> = LazyLock::new(|| TenantId::of_uid(1_000));
        GoneSession { id, tenant: &OWN }
    }

    const NO_SESSION: Option<&GoneSession<'static>> = None;

    fn standing(door: Door) -> Standing {
        let kind = if door == Door::Operator { Kind::Operator } else { Kind::Agent };
        let caller = Caller {
            principal: PrincipalId::Connection(1),
            connection: ConnectionId(1),
            tenant: TenantId::of_uid(1000),
            kind,
            label: Arc::from("agent"),
        };
        let reach = match door {
            Door::Session(id) | Door::Observer(id) => Reach::Session(id),
            Door::Gateway | Door::ObserverGateway | Door::Operator => Reach::Tenant,
        };
        Standing::of_member(caller, 1_000, door, reach)
    }

    fn all_open() -> Switches {
        let mut switches = Switches::default();
        switches.set(Scope::Everything, WriteWindow::Open);
        switches
    }

    #[test]
    fn nothing_may_be_written_until_a_switch_is_on() {
        let denied = decide_write(
            &standing(Door::Gateway),
            &Switches::default(),
            PermittedAct::Type,
            NO_SESSION,
            NOW,
        );
        assert_eq!(denied.expect_err("read-only"), Denial::SwitchedOff);
        assert!(
            decide_write(
                &standing(Door::Gateway),
                &all_open(),
                PermittedAct::Type,
                NO_SESSION,
                NOW
            )
            .is_ok()
        );
    }

    #[test]
    fn a_protected_session_is_refused_by_another_reason_than_a_read_only_daemon() {
        let mut switches = all_open();
        switches.set(Scope::Session(session(1)), WriteWindow::Closed);
        let decide = |id| {
            let act = PermittedAct::Type;
            decide_write(&standing(Door::Gateway), &switches, act, Some(&at(session(id))), NOW)
        };
        assert_eq!(decide(1).expect_err("protected"), Denial::Protected);
        assert!(decide(2).is_ok());
    }

    #[test]
    fn a_permit_is_for_one_act_of_one_principal_on_one_session_until_the_switch_closes() {
        let (mut switches, end) = (Switches::default(), NOW + std::time::Duration::from_secs(5));
        switches.set(Scope::Everything, WriteWindow::Until(end));
        let (own, act) = (Some(session(1)), PermittedAct::Type);
        let permit =
            decide_write(&standing(Door::Gateway), &switches, act, Some(&at(session(1))), NOW)
                .unwrap();
        assert_eq!(permit.check(act, own, NOW), Ok(()));
        assert_eq!(permit.check(act, own, end), Err(Denial::SwitchedOff));
        let others = [(PermittedAct::Resize, own), (act, Some(session(2))), (act, None)];
        for (act, session) in others {
            assert_eq!(permit.check(act, session, NOW), Err(Denial::OtherPermit));
        }
        assert_eq!(permit.check_principal(PrincipalId::Connection(1)), Ok(()));
        let other = permit.check_principal(PrincipalId::Connection(2));
        assert_eq!(other, Err(Denial::OtherPermit));
    }

    #[test]
    fn an_observer_door_never_writes_whatever_the_switches_say() {
        for door in [Door::Observer(session(1)), Door::ObserverGateway] {
            let denied = decide_write(
                &standing(door),
                &all_open(),
                PermittedAct::Type,
                Some(&at(session(1))),
                NOW,
            );
            assert_eq!(denied.expect_err("observer"), Denial::ObserverDoor);
            assert!(!standing(door).could_write());
        }
    }

    #[test]
    fn a_token_for_watching_never_writes_whatever_the_switches_say() {
        let mut watching = standing(Door::Gateway);
        watching.token = Some(TokenScope::ReadOnly);
        let denied =
            decide_write(&watching, &all_open(), PermittedAct::Type, Some(&at(session(1))), NOW);
        assert_eq!(denied.expect_err("watching"), Denial::ReadOnlyToken);
        assert!(!watching.could_write());
    }

    #[test]
    fn a_token_for_writing_writes_where_a_switch_is_on_and_nowhere_else() {
        let mut writing = standing(Door::Gateway);
        writing.token = Some(TokenScope::Write);
        assert!(decide_write(&writing, &all_open(), PermittedAct::Type, NO_SESSION, NOW).is_ok());
        let denied =
            decide_write(&writing, &Switches::default(), PermittedAct::Type, NO_SESSION, NOW);
        assert_eq!(denied.expect_err("read-only"), Denial::SwitchedOff);
        let mut watching = standing(Door::ObserverGateway);
        watching.token = Some(TokenScope::Write);
        assert!(!watching.could_write());
    }

    #[test]
    fn a_token_gives_a_program_inside_a_session_no_right() {
        let mut inside = standing(Door::Gateway);
        (inside.managed, inside.token) = (true, Some(TokenScope::Write));
        let denied = decide_write(&inside, &all_open(), PermittedAct::Type, NO_SESSION, NOW);
        assert_eq!(denied.expect_err("inside"), Denial::InsideSession);
    }

    #[test]
    fn a_program_inside_a_session_never_writes_nor_operates() {
        let mut inside = standing(Door::Operator);
        inside.managed = true;
        let denied = decide_write(&inside, &all_open(), PermittedAct::Type, NO_SESSION, NOW);
        assert_eq!(denied.expect_err("inside"), Denial::InsideSession);
        assert_eq!(decide_operate(&inside).expect_err("inside"), Denial::NotOperator);
    }

    #[test]
    fn only_the_operators_door_operates() {
        assert!(decide_operate(&standing(Door::Operator)).is_ok());
        let denied = decide_operate(&standing(Door::Gateway));
        assert_eq!(denied.expect_err("agent"), Denial::NotOperator);
    }

    #[test]
    fn a_session_of_another_tenant_or_behind_another_door_is_not_seen() {
        let (one, two) = (at(session(1)), at(session(2)));
        let tenant = &TenantId::of_uid(1_001);
        assert!(standing(Door::Gateway).sees(&one));
        assert!(!standing(Door::Gateway).sees(&GoneSession { tenant, ..one }));
        assert!(standing(Door::Session(session(1))).sees(&one));
        assert!(!standing(Door::Session(session(1))).sees(&two));
    }
}
