//! Doors: a listening socket, and the standing it gives to whoever comes in through it.
//!
//! Here connections get their principal, unless they show a token; what it may do is decided
//! elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::policy::{Door, Reach, Standing};
use crate::mcp::connection::Connection;
use crate::mcp::server::{Server, Shared};
use crate::surface::call::Touched;
use crate::transport::authentication::Authority;
use crate::transport::connection::link::{self, Link};
use crate::transport::connection::serve;
use crate::transport::framing::lines::Lines;
use crate::transport::limits::Limits;
use crate::transport::presence::Presence;
use crate::transport::unix::listener::Listener;
use crate::transport::unix::peer::Peer;
use crate::transport::unix::quota::{ConnectionQuota, Most};

/// What whoever comes in next may have.
#[derive(Clone, Debug)]
pub struct DoorLimits {
    /// What each user may have.
    pub users: Most,
    pub connection: Limits,
}

/// What all doors of a daemon share.
#[derive(Clone, Debug)]
pub struct Doors {
    pub shared: Arc<Shared>,
    /// Knows the tokens.
    pub authority: Authority,
    pub limits: watch::Receiver<DoorLimits>,
    pub quota: Arc<ConnectionQuota>,
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
        let mut closed = std::pin::pin!(closed);
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = &mut closed => return,
                (stream, peer) = listener.accept() => self.let_in(stream, &peer, door),
            }
        }
    }

    fn let_in(&self, stream: UnixStream, peer: &Peer, door: Door) {
        let managed = peer.lives_inside();
        if managed && door == Door::Operator {
            tracing::warn!(
                pid = peer.pid,
                "a program inside a session came to the operators' door"
            );
            return;
        }
        let DoorLimits { users, connection: limits } = self.limits.borrow().clone();
        let Some(ticket) = self.quota.enter(peer.uid, users) else {
            tracing::warn!(uid = peer.uid, "too many connections of one user");
            return;
        };
        let limits = Limits { incoming: ticket.incoming(), ..limits };
        let link = match link::unix(stream) {
            Ok(link) => link,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be watched");
                return;
            }
        };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let standing = standing(peer, door, managed, number);
        let present = self.presence.enter();
        let doors = self.clone();
        self.tasks.spawn(async move {
            let serving = doors.serve(link.in_lines(&limits), standing, &limits);
            // A daemon that ends hangs up on whoever is still there.
            doors.hanging_up.run_until_cancelled(serving).await;
            drop((ticket, present));
        });
    }

    /// Serves a client as whoever it turns out to be, for as long as it may stay.
    async fn serve<R, W, G>(
        &self,
        mut link: Link<Lines<R>, W, G>,
        standing: Standing,
        limits: &Limits,
    ) where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin,
        G: Future<Output = ()> + Send,
    {
        let introduced = self.authority.introduce(&mut link, standing, limits).await;
        let Some((standing, pass)) = introduced else { return };
        let connection = Arc::new(Connection::new(standing.caller.connection, limits.unsent));
        let (shared, caller) = (Arc::clone(&self.shared), standing.caller.clone());
        shared.gateway.daemon().principals.enter(&caller);
        let server = Server::new(Arc::clone(&shared), Arc::clone(&connection), standing);
        let hanging_up = self.hanging_up.clone();
        let visit = Visit { touched: server.touched(), shared, caller, hanging_up };
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
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell_sessions();
        self.shared.gateway.daemon().principals.leave(self.caller.principal);
    }
}

fn standing(peer: &Peer, door: Door, managed: bool, number: u64) -> Standing {
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
        tenant: TenantId::of_uid(peer.uid),
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
