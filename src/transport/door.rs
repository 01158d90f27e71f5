//! Doors: listening sockets and the standing they give to their clients.
//!
//! A connection gets its principal here, unless it shows a token. Other modules decide its rights.

mod visit;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::sockets::SocketAudience;
use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::policy::tenants::Identity;
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::Server;
use crate::mcp::shared::ServerShared;
use crate::transport::authentication::{Authority, Pass};
use crate::transport::connection::link::ClientLink;
use crate::transport::connection::serve;
use crate::transport::door::visit::Visit;
use crate::transport::framing::lines::LineReader;
use crate::transport::idle_shutdown::ConnectionCount;
use crate::transport::limits::Limits;
use crate::transport::membership::Membership;
use crate::transport::refusal::Refusals;
use crate::transport::unix::listener::{BindError, Listener};
use crate::transport::unix::peer::{Peer, Place, Source};
use crate::transport::unix::quota::{ConnectionQuota, Most, Party, Ticket};
use crate::transport::unix::reception::{Arrival, OpenDoor, Reception};

/// The time between two attempts to make a removed socket again.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of the next client.
#[derive(Clone, Debug)]
pub struct DoorLimits {
    pub users: Most,
    pub connection: Limits,
    /// Who may watch a session of any tenant at its read-only socket.
    pub observers: SocketAudience,
}

/// A client before it has said anything.
struct NewClient {
    standing: Standing,
    source: Source,
    groups: Arc<[u32]>,
}

/// The state that all doors of a daemon share.
#[derive(Clone, Debug)]
pub struct Doors {
    pub shared: Arc<ServerShared>,
    pub authority: Authority,
    pub limits: watch::Receiver<DoorLimits>,
    pub quota: Arc<ConnectionQuota>,
    /// Operators have their own reception, so other clients cannot delay them.
    pub operators: Reception,
    pub others: Reception,
    pub presence: ConnectionCount,
    pub refusals: Refusals,
    pub numbers: Arc<AtomicU64>,
    /// The tasks of all connections, so that the daemon can wait for them.
    pub tasks: TaskTracker,
    /// Cancelled when no more clients are admitted.
    pub closing: CancellationToken,
    /// Cancelled when connected clients must go.
    pub hanging_up: CancellationToken,
}

impl Doors {
    /// Admits clients until the daemon ends or `closed` completes.
    pub async fn keep_open(self, listener: Listener, door: Door, closed: impl Future<Output = ()>) {
        let Some(open) = self.open(listener, door).await else { return };
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = closed => {}
        }
        open.close().await;
    }

    /// Admits clients until the daemon ends or another one has its place. If the socket is removed, it is made again.
    pub async fn keep_open_always(self, mut listener: Listener, door: Door) {
        let is_always_open = listener.is_always_open();
        while let Some(open) = self.open(listener, door).await {
            let again = tokio::select! {
                () = self.closing.cancelled() => None,
                again = again(&open) => again,
            };
            open.close().await;
            let Some(again) = again else { return };
            tracing::warn!(path = %again.path().display(), "a socket was removed, and is made again");
            listener = if is_always_open { again.always_open() } else { again };
        }
    }

    /// Admits clients until the result is closed or dropped. `None` if that cannot be.
    async fn open(&self, listener: Listener, door: Door) -> Option<OpenDoor> {
        let reception = if door == Door::Operator { &self.operators } else { &self.others };
        let doors = self.clone();
        let opened = reception.open(listener, move |arrival| doors.receive(arrival, door)).await;
        opened.inspect_err(|error| tracing::error!(%error, ?door, "cannot accept connections")).ok()
    }

    /// Serves an admitted client in its own task.
    fn receive(&self, Arrival { link, peer }: Arrival, door: Door) {
        let DoorLimits { users, connection: limits, observers } = self.limits.borrow().clone();
        let ticket = match self.admit(&peer, door, users) {
            Ok(ticket) => ticket,
            Err(NotAdmitted::Full) => return self.tell_full(link.in_lines(&limits.refusing())),
            Err(NotAdmitted::Unwelcome) => return,
        };
        let limits = Limits { incoming: ticket.incoming(), ..limits };
        let limits = if door.only_watches() { limits.observing() } else { limits };
        let limits = if peer.lives_inside() { limits.inside() } else { limits };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (present, doors) = (self.presence.enter(), self.clone());
        self.tasks.spawn(async move {
            let groups: Arc<[u32]> = peer.groups.iter().copied().chain([peer.gid]).collect();
            let mut standing = standing(&peer, door, ticket.party(), number);
            if let (Reach::Session(session), Door::Observer(_)) = (standing.reach, door)
                && observers.includes(&groups)
            {
                standing.reach = Reach::Watched(session);
            }
            let client = NewClient { standing, source: peer.source(), groups };
            let serving = doors.serve(link.in_lines(&limits), client, &limits);
            // An ending daemon disconnects its remaining clients.
            doors.hanging_up.run_until_cancelled(serving).await;
            drop((ticket, present));
        });
    }

    /// Tells a client in its own task that there is no room for it.
    fn tell_full<R, W, G>(&self, mut link: ClientLink<LineReader<R>, W, G>)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
        G: Send + 'static,
    {
        let (refusals, hanging_up) = (self.refusals.clone(), self.hanging_up.clone());
        self.tasks.spawn(async move {
            hanging_up.run_until_cancelled(refusals.tell(&mut link)).await;
        });
    }

    /// Returns a ticket if the client may connect here and its quota allows it.
    fn admit(&self, peer: &Peer, door: Door, users: Most) -> Result<Ticket, NotAdmitted> {
        if self.closing.is_cancelled() {
            return Err(NotAdmitted::Unwelcome);
        }
        let Some(party) = party(peer, door) else {
            tracing::warn!(peer = %peer.source(), "a program inside an unknown session connected");
            return Err(NotAdmitted::Unwelcome);
        };
        if peer.lives_inside() && door == Door::Operator {
            tracing::warn!(
                pid = peer.pid,
                ?party,
                "a program inside a session connected to the operator socket"
            );
            return Err(NotAdmitted::Unwelcome);
        }
        let ticket = self.quota.enter(party.clone(), &users);
        if ticket.is_none() {
            tracing::warn!(?party, "too many connections of one user or session");
        }
        ticket.ok_or(NotAdmitted::Full)
    }

    /// Determines the client's principal and serves it until it leaves, its token ends, or the configuration gives it
    /// other rights.
    async fn serve<R, W, G>(
        &self,
        mut link: ClientLink<LineReader<R>, W, G>,
        client: NewClient,
        limits: &Limits,
    ) where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin + 'static,
        G: Future<Output = ()> + Send,
    {
        let NewClient { standing, source, groups } = client;
        let introduced = self.authority.introduce(&mut link, standing, source, limits).await;
        let Some((standing, pass)) = introduced else { return };
        let membership = self.membership(&standing, groups, pass.as_ref());
        let standing = match &membership {
            Some(membership) => membership.standing(standing),
            None => standing,
        };
        let Ok(_place) = self.tenant_place(&standing, membership.as_ref()) else {
            return self.refusals.tell(&mut link).await;
        };
        let right = Arc::new(ConnectionRight { pass, membership });
        let connection = Connection::new(standing.caller.connection, limits.unsent);
        let its = Arc::clone(&right);
        let connection = Arc::new(connection.with_right(move || its.holds()));
        let (shared, caller) = (Arc::clone(&self.shared), standing.caller.clone());
        shared.gateway.daemon().principals.enter(&caller);
        let server = Server::new(Arc::clone(&shared), Arc::clone(&connection), standing);
        let hanging_up = self.hanging_up.clone();
        let (touched, its) = (server.touched(), Arc::clone(&connection));
        let visit = Visit { touched, shared, caller, hanging_up, connection: its };
        let leaving = connection.ended.clone();
        let farewell = async {
            leaving.cancelled().await;
            // The last answers are still being written. Waiting principals need not wait for that.
            visit.tell_sessions();
            std::future::pending().await
        };
        tokio::select! {
            () = serve(server, link, connection, limits) => {}
            () = right.ended() => {}
            () = farewell => {}
        }
    }
}

impl Doors {
    /// Where a client belongs. `None` for those with no rights but what their place gives them.
    fn membership(
        &self,
        standing: &Standing,
        groups: Arc<[u32]>,
        pass: Option<&Pass>,
    ) -> Option<Membership> {
        if standing.managed || standing.door == Door::Operator {
            return None;
        }
        let who = Identity { uid: standing.uid, groups, token: pass.map(Pass::name_and_scope) };
        let sessions = self.shared.gateway.daemon().sessions.clone();
        Some(Membership::new(sessions, who))
    }

    /// Counts a connection for its tenant, if that has a name; others are counted for their user.
    fn tenant_place(
        &self,
        standing: &Standing,
        membership: Option<&Membership>,
    ) -> Result<Option<Ticket>, NotAdmitted> {
        let Some(tenant) = membership.and_then(Membership::named_tenant) else { return Ok(None) };
        let most = self.limits.borrow().users.clone();
        let ticket = self.quota.enter(Party::Tenant(tenant.clone()), &most).or_else(|| {
            let approvers = Party::Approvers(tenant.clone());
            standing.approves().then(|| self.quota.enter(approvers, &most)).flatten()
        });
        if ticket.is_none() {
            tracing::warn!(%tenant, "too many connections of one tenant");
        }
        ticket.map(Some).ok_or(NotAdmitted::Full)
    }
}

/// Why a client is not served.
#[derive(Clone, Copy, Debug)]
enum NotAdmitted {
    /// Its user, session or tenant has as many connections as it may have.
    Full,
    /// It may not connect here, or nobody may any more.
    Unwelcome,
}

/// The right of a connection to continue: its token, and its place in the configuration.
#[derive(Debug)]
struct ConnectionRight {
    pass: Option<Pass>,
    membership: Option<Membership>,
}

impl ConnectionRight {
    fn holds(&self) -> bool {
        self.pass.as_ref().is_none_or(Pass::holds)
            && self.membership.as_ref().is_none_or(Membership::holds)
    }

    /// Completes when the connection must end.
    async fn ended(&self) {
        let pass = async {
            match &self.pass {
                Some(pass) => pass.ended().await,
                None => std::future::pending().await,
            }
        };
        let membership = async {
            match &self.membership {
                Some(membership) => membership.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pass => {}
            () = membership => {}
        }
    }
}

/// Waits until a door's socket is removed, and listens at its path again. `None` if another daemon has its place, or the
/// socket is not ours to remove.
async fn again(open: &OpenDoor) -> Option<Listener> {
    let file = open.file()?;
    file.lost().await;
    let mut told = false;
    loop {
        match file.bind_again() {
            Ok(listener) => return Some(listener),
            Err(BindError::Replaced { .. }) => return None,
            Err(error) if !told => tracing::warn!(%error, "a socket was removed"),
            Err(_) => {}
        }
        told = true;
        sleep(AGAIN_INTERVAL).await;
    }
}

/// The party whose quota a client uses. `None` when it cannot be determined.
fn party(peer: &Peer, door: Door) -> Option<Party> {
    Some(match (peer.place, door) {
        (Place::Outside, Door::Operator) => Party::Operators(peer.uid),
        (
            Place::Outside,
            Door::Gateway | Door::ObserverGateway | Door::Session(_) | Door::Observer(_),
        ) => Party::User(peer.uid),
        (Place::Inside { shim: Some(shim) }, _) => Party::Session(shim),
        (Place::Inside { shim: None } | Place::Unknown, _) => return None,
    })
}

fn standing(peer: &Peer, door: Door, party: Party, number: u64) -> Standing {
    let managed = peer.lives_inside();
    let (kind, label) = match door {
        // A person is named by login; an agent names itself later.
        Door::Operator => (Kind::Operator, Caller::clean_label(&peer.login_name())),
        Door::Gateway | Door::ObserverGateway | Door::Session(_) | Door::Observer(_) => {
            (Kind::Agent, Arc::from(Kind::Agent.as_str()))
        }
    };
    let caller = Caller {
        principal: PrincipalId::Connection(number),
        connection: ConnectionId(number),
        tenant: match party {
            Party::Operators(uid) | Party::User(uid) => TenantId::of_uid(uid),
            Party::Session(shim) => TenantId::inside(shim),
            Party::Tenant(tenant) | Party::Approvers(tenant) => tenant,
        },
        kind,
        label,
    };
    let reach = match door {
        // A program inside a session cannot prove its place there, so it sees nothing.
        _ if managed => Reach::Nothing,
        Door::Session(session) | Door::Observer(session) => Reach::Session(session),
        Door::Gateway | Door::ObserverGateway | Door::Operator => Reach::Tenant,
    };
    Standing { managed, ..Standing::of_member(caller, peer.uid, door, reach) }
}

#[cfg(test)]
mod tests;
