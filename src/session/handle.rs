//! The handle of one session: what everybody outside its task has of it.
//!
//! Reading borrows the newest frame and costs no message; changing sends a command and takes a
//! permit, so that nothing is changed that policy was not asked about.

mod asking;
mod people;
mod recording;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::core::caller::{Caller, PrincipalName};
use crate::core::frame::Frame;
use crate::core::ids::{
    ConnectionId, LeaseId, PrincipalId, RowNumber, SessionId, TenantId, Watermark,
};
use crate::core::input::WriteWindow;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::lease::request::{
    AcquireRequest, Grant, ReleaseRequest, Released, RenewRequest, WaiterId,
};
use crate::core::moment::Moment;
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::RightsSubject;
use crate::core::policy::{Permit, PermittedAct};
use crate::session::clock::Clock;
use crate::session::command::{
    Accepted, Asked, Command, ManageOrder, PersonCommand, Repeated, Reply, ResizeOrder, WriteOrder,
    Written,
};
use crate::session::control::{Entries, GivenUp, Interrupt, Parting, Urgent};
use crate::session::error::SessionError;
use crate::session::records::identity::Confinement;
use crate::session::row_followers::RowFollower;
use crate::session::stats::{CommandTurn, Live, Participation};

/// What was said of a session when it was created.
#[derive(Clone, Debug)]
pub struct About {
    pub id: SessionId,
    /// The same as text, which results repeat.
    pub id_text: Arc<str>,
    pub tenant: TenantId,
    pub command: String,
    pub pid: i32,
    pub cwd: PathBuf,
    pub tags: Vec<String>,
    /// Other tenants learn its name.
    pub is_listed: bool,
    /// Its shell was asked to mark its prompts and commands.
    pub marks: bool,
    pub confinement: Confinement,
    pub created_at: Moment,
}

impl RightsSubject for Session {
    fn id(&self) -> SessionId {
        self.0.about.id
    }

    fn tenant(&self) -> &TenantId {
        &self.0.about.tenant
    }

    fn is_named(&self, name: &str) -> bool {
        *self.0.live.name() == *name
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.0.about.tags.iter().any(|it| it == tag)
    }
}

/// A handle; clones are the same session.
#[derive(Clone, Debug)]
pub struct Session(Arc<SessionEnds>);

/// The ends that connect a handle to its session's task.
#[derive(Debug)]
pub struct SessionEnds {
    pub about: About,
    pub commands: mpsc::Sender<Box<Command>>,
    pub people: mpsc::Sender<PersonCommand>,
    pub urgent: Arc<Urgent>,
    pub frames: watch::Receiver<Arc<Frame>>,
    pub live: Arc<Live>,
    pub clock: Clock,
}

impl Session {
    pub fn new(ends: SessionEnds) -> Self {
        Self(Arc::new(ends))
    }

    pub fn id(&self) -> SessionId {
        self.0.about.id
    }

    pub fn tenant(&self) -> &TenantId {
        &self.0.about.tenant
    }

    pub fn name(&self) -> Arc<str> {
        self.0.live.name()
    }

    pub fn about(&self) -> &About {
        &self.0.about
    }

    pub fn frame(&self) -> Arc<Frame> {
        Arc::clone(&self.0.frames.borrow())
    }

    /// The frames to come; whoever looks late sees the newest alone.
    pub fn frames(&self) -> watch::Receiver<Arc<Frame>> {
        self.0.frames.clone()
    }

    pub fn live(&self) -> &Live {
        &self.0.live
    }

    pub fn live_shared(&self) -> &Arc<Live> {
        &self.0.live
    }

    /// Gives it another name, and tells the one before; the registry sees to it that no other
    /// session has it.
    pub(in crate::session) async fn rename(
        &self,
        name: Arc<str>,
    ) -> Result<Arc<str>, SessionError> {
        self.ask_past_line(|entries, reply| entries.renames.push_back((name, reply))).await
    }

    /// Writes, and answers when the terminal has taken the bytes, they were discarded, or a second
    /// has passed.
    pub async fn write(
        &self,
        permit: &Permit,
        mut order: WriteOrder,
        accepted: Accepted,
    ) -> Result<Written, SessionError> {
        order.decision = permit.decision();
        order.bound = permit.bound().cloned();
        let from = self.check_caller(permit, PermittedAct::Type, &order.caller)?;
        self.ask(from, accepted, |reply| Asked::Write(order, reply)).await
    }

    /// Tells which command a call sent before under this key; none when no such call was made. A permit for the lease
    /// will do, since its calls have keys too.
    ///
    /// # Errors
    /// [`WriteError::KeyReused`](crate::core::input::request::WriteError::KeyReused) when the key was
    /// used for another call.
    pub async fn recall(
        &self,
        permit: &Permit,
        caller: Caller,
        presented: Option<LeaseId>,
        key: IdempotencyKey,
    ) -> Result<Option<Repeated>, SessionError> {
        let for_lease = self.check_caller(permit, PermittedAct::Lease, &caller);
        let from = for_lease.or_else(|_| self.check_caller(permit, PermittedAct::Type, &caller))?;
        let ask = |reply| Asked::Recall(caller, presented, key, reply);
        self.ask(from, Accepted::nothing(), ask).await
    }

    /// Asks for the lease, waiting in line as long as the request says.
    pub async fn acquire(
        &self,
        permit: &Permit,
        caller: Caller,
        request: AcquireRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Grant, SessionError> {
        let from = self.check_caller(permit, PermittedAct::Lease, &caller)?;
        let (seat, seated) = oneshot::channel();
        let mut line = PlaceInLine { urgent: Arc::clone(&self.0.urgent), seated, over: false };
        let ask = |reply| Asked::Acquire(caller, request, key, seat, reply);
        let granted = self.ask(from, accepted, ask).await;
        line.over = true;
        granted
    }

    pub async fn renew(
        &self,
        permit: &Permit,
        caller: Caller,
        request: RenewRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Grant, SessionError> {
        let from = self.check_caller(permit, PermittedAct::Lease, &caller)?;
        self.ask(from, accepted, |reply| Asked::Renew(caller, request, key, reply)).await
    }

    pub async fn release(
        &self,
        permit: &Permit,
        caller: Caller,
        request: ReleaseRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Released, SessionError> {
        let from = self.check_caller(permit, PermittedAct::Lease, &caller)?;
        self.ask(from, accepted, |reply| Asked::Release(caller, request, key, reply)).await
    }

    /// Changes the size; answers with the watermark of the first frame that has it.
    pub async fn resize(
        &self,
        permit: &Permit,
        order: ResizeOrder,
        accepted: Accepted,
    ) -> Result<Watermark, SessionError> {
        let from = self.check_caller(permit, PermittedAct::Resize, &order.caller)?;
        self.ask(from, accepted, |reply| Asked::Resize(order, reply)).await
    }

    pub async fn manage(
        &self,
        permit: &Permit,
        mut order: ManageOrder,
        accepted: Accepted,
    ) -> Result<(), SessionError> {
        let from = self.check_caller(permit, PermittedAct::Manage, &order.caller)?;
        order.bound = permit.bound().cloned();
        self.ask(from, accepted, |reply| Asked::Manage(order, reply)).await
    }

    /// Has the kernel asked now and then what the terminal is doing, for as long as this is kept:
    /// for those who wait for what only it knows.
    pub fn attend(&self) -> Participation {
        let attending = self.0.live.attend();
        self.0.urgent.post(|_| {});
        attending
    }

    /// Has the task look for the moment when the program in front is idle after the next write, for as long as
    /// this is kept.
    pub fn hurry(&self) -> Participation {
        self.0.live.hurry()
    }

    /// Keeps the rows from this one on in history until they are read, or for a tenth of a second.
    pub fn follow_rows(&self, from: RowNumber) -> RowFollower {
        RowFollower::start(Arc::clone(&self.0.live.row_followers), from)
    }

    pub async fn closed(&self) {
        self.0.commands.closed().await;
    }

    pub fn set_window(&self, window: WriteWindow) {
        self.0.urgent.post(|entries| entries.window = Some(window));
    }

    /// Tells the session that whoever had its lease before can come from now on.
    pub fn begin_reclaim(&self) {
        self.0.urgent.post(|entries| entries.reclaim = true);
    }

    /// Interrupts a command when what this gives is dropped, if it still runs and its caller may still
    /// write then.
    pub fn interrupt(&self, permit: &Permit, given_up: GivenUp) -> Result<Interrupt, Denial> {
        self.check_caller(permit, PermittedAct::Type, &given_up.by)?;
        Ok(Interrupt::new(Arc::clone(&self.0.urgent), given_up))
    }

    /// Waits behind those who came before to send a command here, and have not sent it. Who comes
    /// next goes on when the place is dropped; the order is that in which the waits began.
    pub async fn place_in_line(&self) -> CommandTurn {
        CommandTurn::take(&self.0.live).await
    }

    /// Tells the session that callers who go from now on are sent away, and give no command up.
    pub(in crate::session) fn spare_commands(&self) {
        self.0.urgent.post(|entries| entries.spare_commands = true);
    }

    pub fn connection_closed(&self, connection: ConnectionId) {
        self.0.urgent.post(|entries| {
            entries.closed.insert(connection);
        });
    }

    /// Parts from the session because the daemon ends; whoever wants its end has it.
    pub(in crate::session) fn part(&self, parting: Parting) {
        self.0.urgent.post(|entries| entries.parting = entries.parting.max(Some(parting)));
    }

    /// Asks for the lease before all others, as long as somebody waits for the reply. To be called
    /// before the session is listed.
    pub(in crate::session) fn ask_first(
        &self,
        caller: Caller,
        request: AcquireRequest,
        reply: Reply<Grant>,
    ) {
        let (accepted, (seat, _)) = (Accepted::nothing(), oneshot::channel());
        let connection = caller.connection;
        let asked = Asked::Acquire(caller, request, None, seat, reply);
        // Nothing is in the line yet, so that there is room.
        let _ = self.0.commands.try_send(Box::new(Command { connection, accepted, asked }));
    }

    /// Ends the lease in force, whoever holds it; says whether anybody did. It never stands in the
    /// line of agents' commands.
    pub async fn preempt(&self, permit: &Permit, by: PrincipalName) -> Result<bool, SessionError> {
        permit.check_operates(Some(self.id()))?;
        self.ask_past_line(|entries, reply| entries.preempts.push_back((by, reply))).await
    }

    /// Ends all that a principal has of the lease, since it may not write any more.
    pub fn end_right_of(&self, principal: PrincipalId) {
        self.0.urgent.post(|entries| {
            entries.ended_rights.insert(principal);
        });
    }

    async fn ask_past_line<T>(
        &self,
        post: impl FnOnce(&mut Entries, oneshot::Sender<T>),
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        self.0.urgent.post(|entries| post(entries, reply));
        answer.await.map_err(|_| self.unanswered())
    }

    /// Why nothing was answered: the task has ended for good, or was started again.
    fn unanswered(&self) -> SessionError {
        if self.0.commands.is_closed() { SessionError::Closed } else { SessionError::Restarted }
    }

    pub(in crate::session) fn check(
        &self,
        permit: &Permit,
        act: PermittedAct,
    ) -> Result<(), Denial> {
        permit.check(act, Some(self.id()), self.0.clock.now())
    }

    /// The same, and that it was given to this caller, whose connection this tells.
    fn check_caller(
        &self,
        permit: &Permit,
        act: PermittedAct,
        caller: &Caller,
    ) -> Result<ConnectionId, Denial> {
        permit.check_principal(caller.principal)?;
        self.check(permit, act)?;
        Ok(caller.connection)
    }

    async fn ask<T>(
        &self,
        connection: ConnectionId,
        accepted: Accepted,
        ask: impl FnOnce(Reply<T>) -> Asked,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let command = Box::new(Command { connection, accepted, asked: ask(reply) });
        self.0.commands.try_send(command).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => SessionError::Busy,
            mpsc::error::TrySendError::Closed(_) => SessionError::Closed,
        })?;
        answer.await.map_err(|_| self.unanswered())?
    }
}

/// A place in the line for the lease, which is given up with the call that waits.
#[derive(Debug)]
struct PlaceInLine {
    urgent: Arc<Urgent>,
    seated: oneshot::Receiver<WaiterId>,
    over: bool,
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        if let (false, Ok(waiter)) = (self.over, self.seated.try_recv()) {
            self.urgent.post(|entries| {
                entries.cancelled.insert(waiter);
            });
        }
    }
}
