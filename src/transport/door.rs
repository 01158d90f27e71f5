//! Doors: a listening socket, and the standing it gives to whoever comes in through it.
//!
//! Here connections get their principal, unless they show a token; what it may do is decided
//! elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::{Server, Shared};
use crate::session::pty::ProcessId;
use crate::surface::call::Touched;
use crate::transport::authentication::Authority;
use crate::transport::connection::link::Link;
use crate::transport::connection::serve;
use crate::transport::framing::lines::Lines;
use crate::transport::idle_shutdown::Presence;
use crate::transport::limits::Limits;
use crate::transport::unix::listener::Listener;
use crate::transport::unix::peer::{Peer, Place, Source};
use crate::transport::unix::quota::{ConnectionQuota, Most, Party, Ticket};
use crate::transport::unix::reception::{Arrival, Reception};

/// What whoever comes in next may have.
#[derive(Clone, Debug)]
pub struct DoorLimits {
    /// What each user may have.
    pub users: Most,
    pub connection: Limits,
}

/// Where clients come in: those at the operators' door wait behind nobody else.
#[derive(Clone, Debug)]
pub struct Receptions {
    operators: Reception,
    others: Reception,
}

impl Receptions {
    /// For the clients of `daemon`, which is our own process.
    pub fn new(daemon: ProcessId) -> Self {
        Self { operators: Reception::new(daemon), others: Reception::new(daemon) }
    }

    fn of(&self, door: Door) -> &Reception {
        match door {
            Door::Operator => &self.operators,
            Door::Gateway | Door::ObserverGateway | Door::Session(_) | Door::Observer(_) => {
                &self.others
            }
        }
    }
}

/// What all doors of a daemon share.
#[derive(Clone, Debug)]
pub struct Doors {
    pub shared: Arc<Shared>,
    /// Knows the tokens.
    pub authority: Authority,
    pub limits: watch::Receiver<DoorLimits>,
    pub quota: Arc<ConnectionQuota>,
    pub receptions: Receptions,
    /// Who is inside.
    pub presence: Presence,
    pub numbers: Arc<AtomicU64>,
    /// Every connection's task, so that the daemon can wait for them.
    pub tasks: TaskTracker,
    /// Cancelled when nobody else is let in.
    pub closing: CancellationToken,
    /// Cancelled when those inside must go.
    pub hanging_up: CancellationToken,
}

impl Doors {
    /// Lets clients in until the daemon ends or `closed` does.
    pub async fn keep_open(self, listener: Listener, door: Door, closed: impl Future<Output = ()>) {
        let (closing, reception) = (self.closing.clone(), self.receptions.of(door).clone());
        let opened = reception.open(listener, move |arrival| self.receive(arrival, door)).await;
        match opened {
            Ok(open) => {
                tokio::select! {
                    () = closing.cancelled() => {}
                    () = closed => {}
                }
                open.close().await;
            }
            Err(error) => tracing::error!(%error, ?door, "nobody can be let in"),
        }
    }

    /// Serves a client in a task of its own until it goes, if it may come in.
    fn receive(&self, Arrival { link, peer }: Arrival, door: Door) {
        let DoorLimits { users, connection: limits } = self.limits.borrow().clone();
        let Some(ticket) = self.admit(&peer, door, users) else { return };
        let limits = Limits { incoming: ticket.incoming(), ..limits };
        let limits = if door.only_watches() { limits.observing() } else { limits };
        let limits = if peer.lives_inside() { limits.inside() } else { limits };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (present, doors) = (self.presence.enter(), self.clone());
        self.tasks.spawn(async move {
            let standing = standing(&peer, door, ticket.party(), number);
            let serving = doors.serve(link.in_lines(&limits), standing, peer.source(), &limits);
            // A daemon that ends hangs up on whoever is still there.
            doors.hanging_up.run_until_cancelled(serving).await;
            drop((ticket, present));
        });
    }

    /// Room for a client, if there is some and it may come in here.
    fn admit(&self, peer: &Peer, door: Door, users: Most) -> Option<Ticket> {
        if self.closing.is_cancelled() {
            return None;
        }
        let Some(party) = party(peer, door) else {
            tracing::warn!(peer = %peer.source(), "a program inside a session that cannot be named came");
            return None;
        };
        if peer.lives_inside() && door == Door::Operator {
            tracing::warn!(
                pid = peer.pid,
                ?party,
                "a program inside a session came to the operators' door"
            );
            return None;
        }
        let ticket = self.quota.enter(party, users);
        if ticket.is_none() {
            tracing::warn!(?party, "too many connections of one user or session");
        }
        ticket
    }

    /// Serves a client as whoever it turns out to be, for as long as it may stay.
    async fn serve<R, W, G>(
        &self,
        mut link: Link<Lines<R>, W, G>,
        standing: Standing,
        source: Source,
        limits: &Limits,
    ) where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin,
        G: Future<Output = ()> + Send,
    {
        let introduced = self.authority.introduce(&mut link, standing, source, limits).await;
        let Some((standing, pass)) = introduced else { return };
        let pass = pass.map(Arc::new);
        let connection = Connection::new(standing.caller.connection, limits.unsent);
        let connection = Arc::new(match pass.clone() {
            Some(pass) => connection.with_right(move || pass.holds()),
            None => connection,
        });
        let (shared, caller) = (Arc::clone(&self.shared), standing.caller.clone());
        shared.gateway.daemon().principals.enter(&caller);
        let server = Server::new(Arc::clone(&shared), Arc::clone(&connection), standing);
        let hanging_up = self.hanging_up.clone();
        let (touched, its) = (server.touched(), Arc::clone(&connection));
        let visit = Visit { touched, shared, caller, hanging_up, connection: its };
        let leaving = connection.ended.clone();
        let expiry = async {
            match pass {
                Some(pass) => pass.ended().await,
                None => std::future::pending().await,
            }
        };
        let farewell = async {
            leaving.cancelled().await;
            // Its last answers are still to be written, for which nobody in line has to wait.
            visit.tell_sessions();
            std::future::pending().await
        };
        tokio::select! {
            () = serve(server, link, connection, limits) => {}
            () = expiry => {}
            () = farewell => {}
        }
    }
}

/// Tells those concerned that a connection has ended, in whatever way.
struct Visit {
    shared: Arc<Shared>,
    caller: Caller,
    touched: Touched,
    hanging_up: CancellationToken,
    connection: Arc<Connection>,
}

impl Visit {
    /// Tells the sessions that were touched since they were told last.
    ///
    /// That the daemon hangs up is no act of a client: it finds its leases with the next daemon.
    fn tell_sessions(&self) {
        if self.hanging_up.is_cancelled() {
            return;
        }
        let daemon = self.shared.gateway.daemon();
        let touched =
            std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner));
        for session in touched.into_iter().filter_map(|id| daemon.sessions.get(id)) {
            session.connection_closed(self.caller.connection);
            if !self.connection.may_speak() {
                // A call may have taken a lease while others were told that the right is over.
                session.end_right_of(self.caller.principal);
            }
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell_sessions();
        self.shared.gateway.daemon().principals.leave(self.caller.principal);
    }
}

/// With whom a client shares what it may have; none where that cannot be said.
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
        // A person who attaches is known by it; a program says what it is called.
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
        },
        kind,
        label,
    };
    let reach = match door {
        // What a program inside a session claims to live in cannot be trusted, so it sees nothing.
        _ if managed => Reach::Nothing,
        Door::Session(session) | Door::Observer(session) => Reach::Session(session),
        Door::Gateway | Door::ObserverGateway | Door::Operator => Reach::Tenant,
    };
    Standing { caller, door, reach, token: None, managed }
}

#[cfg(test)]
mod tests;
