//! Creates and renames sessions. The program is resolved and started before the session becomes visible; a failure
//! leaves nothing behind.
//!
//! The first lease of a session is granted as any other: by its task, to a call that still waits. The
//! session is listed by then, so that whatever ends a right or a connection finds it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::core::caller::Caller;
use crate::core::event::Event;
use crate::core::frame::Size;
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::LeaseManager;
use crate::core::lease::request::{AcquireRequest, Grant};
use crate::core::policy::{Permit, PermittedAct};
use crate::core::shell::commands::record::CommandRecord;
use crate::session::actor::{Actor, COMMANDS_MAX, Setup};
use crate::session::command::{Accepted, PEOPLE_COMMANDS_MAX, Reply};
use crate::session::control::Parting;
use crate::session::error::{CreateError, NAME_MAX, SessionError, check_name};
use crate::session::handle::{About, Session, SessionEnds};
use crate::session::pty::account::Account;
use crate::session::pty::command::{Launch, SpawnSpec};
use crate::session::pty::environment::ClientEnvironment;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::shims::{end_shim, socket_of};
use crate::session::pty::orphaned::GonePty;
use crate::session::pty::own::OwnPty;
use crate::session::pty::shell::Nonces;
use crate::session::pty::spawn::SpawnError;
use crate::session::pty::{Pty, shell};
use crate::session::recording::directory::file_name;
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::{Registry, RenameError};
use crate::session::restore::OpeningState;
use crate::session::stats::Live;

impl Registry {
    /// Creates a session and waits until its doors are open. `listed` is called once everybody finds
    /// it and nothing was done there yet, to tell it what the switches leave open. The call counts as begun once the
    /// session has its name, and is accepted once it is listed.
    ///
    /// What was begun is finished, whether or not anybody still waits for it; the first lease is nobody's
    /// then, as where the switches are closed.
    ///
    /// # Errors
    /// Why there is none; nothing of it is left then.
    pub async fn create(
        &self,
        permit: &Permit,
        creation: Creation,
        accepted: Accepted,
        listed: impl FnOnce(&Session) + Send + 'static,
    ) -> Result<(Session, Option<Grant>), CreateError> {
        permit.check(PermittedAct::Create, None, self.clock().now())?;
        let registry = self.clone();
        let (reply, answer) = oneshot::channel();
        let creating =
            tokio::spawn(
                async move { registry.create_now(creation, reply, accepted, listed).await },
            );
        let created = creating.await.unwrap_or_else(|failed| match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CreateError::Ending),
        });
        let session = created?;
        let grant = answer.await.ok().and_then(Result::ok);
        if let Some(grant) = &grant {
            self.remember_lease(grant.lease, session.id());
        }
        Ok((session, grant))
    }

    async fn create_now(
        &self,
        mut creation: Creation,
        reply: Reply<Grant>,
        accepted: Accepted,
        listed: impl FnOnce(&Session),
    ) -> Result<Session, CreateError> {
        let tenant = creation.tenant.clone();
        if self.0.ending.load(Ordering::SeqCst) {
            return Err(CreateError::Ending);
        }
        let id = creation.id;
        let spec = self.resolve(&creation).await?;
        let name = match &creation.name {
            Some(name) => self.take_name_of_ended(&tenant, name, id).await?,
            None => self.take_free_name(&tenant, &name_of(&creation.launch, &spec), id),
        };
        let started = match self.check_room(&tenant) {
            Ok(()) => {
                accepted.begin();
                start(self, Arc::clone(&name), &creation, spec).await
            }
            Err(error) => Err(error),
        };
        let (session, task) = started.inspect_err(|_| {
            self.free_name(&tenant, &name, id);
        })?;
        if let Some((caller, request)) = creation.first.take() {
            session.ask_first(caller, request, reply);
        }
        self.0.counters.sessions_created.add(1);
        self.list(&session, None);
        let command = &session.about().command;
        let end = command.floor_char_boundary(CommandRecord::TEXT_MAX);
        let (name, command) = (session.name(), command[..end].to_owned());
        self.tell_event(Some(&session), Event::SessionCreated { name, command });
        listed(&session);
        // The connection's next call finds the session, and comes after the first lease.
        drop(accepted);
        self.look_after(session.clone(), tokio::spawn(task));
        // Whoever ends the daemon either sees this session or is seen here.
        if self.0.ending.load(Ordering::SeqCst) {
            session.part(Parting::End);
            return Err(CreateError::Ending);
        }
        self.announce(&session).await;
        Ok(session)
    }

    /// Generates a session id that is not taken.
    pub fn fresh_id(&self) -> SessionId {
        loop {
            let id = SessionId::from_random(Uuid::new_v4());
            if !self.0.entries.contains_key(&id) {
                return id;
            }
        }
    }

    /// Gives a session another name, be it that of one that has ended.
    pub async fn rename(
        &self,
        permit: &Permit,
        session: &Session,
        name: &str,
    ) -> Result<(), RenameError> {
        session.check(permit, PermittedAct::Manage).map_err(SessionError::from)?;
        if *session.name() == *name {
            return Ok(());
        }
        let name = self.take_name_of_ended(session.tenant(), name, session.id()).await?;
        Ok(self.rename_to(session, name).await?)
    }
}

/// What a client asks for in a new session.
#[derive(Clone, Debug)]
pub struct Creation {
    /// An id of [`Registry::fresh_id`].
    pub id: SessionId,
    pub tenant: TenantId,
    /// `None` derives a name from the command.
    pub name: Option<String>,
    pub launch: Launch,
    /// `None` means the daemon's working directory.
    /// Where the program runs as another user, that user's home.
    pub cwd: Option<PathBuf>,
    /// The user that the program runs as. `None` means the daemon's.
    pub run_as: Option<Account>,
    /// Whether to sandbox it, even if not each session is.
    pub sandbox: bool,
    /// The variables that the command line or the bridge passes on.
    pub client: ClientEnvironment,
    pub env: BTreeMap<String, String>,
    pub size: Size,
    pub tags: Vec<String>,
    /// Whether other tenants learn its name.
    pub is_listed: bool,
    /// Whether to record it from its first byte, even if not each session is.
    pub record: bool,
    /// The holder and the terms of the first lease. No other caller can acquire it before. `None` creates a
    /// free session.
    pub first: Option<(Caller, AcquireRequest)>,
}

/// The default name of a session, derived from its program.
fn name_of(launch: &Launch, spec: &SpawnSpec) -> String {
    let program = match launch {
        Launch::Shell => spec.name.to_string_lossy().into_owned(),
        Launch::Line(line) => line.split_whitespace().next().unwrap_or("sh").to_owned(),
        Launch::Program { name, .. } => name.clone(),
    };
    let base = program.rsplit('/').next().unwrap_or_default();
    let fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = base.chars().filter(fine).take(NAME_MAX - 8).collect();
    if check_name(&name).is_ok() { name } else { "session".to_owned() }
}

/// The command as a person would type it.
fn command_text(launch: &Launch, spec: &SpawnSpec) -> String {
    match launch {
        Launch::Shell => spec.program.display().to_string(),
        Launch::Line(line) => line.clone(),
        Launch::Program { name, args } => {
            let words = std::iter::once(name.as_str()).chain(args.iter().map(String::as_str));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// The future that serves a session until it is removed.
type SessionTask = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn start(
    registry: &Registry,
    name: Arc<str>,
    creation: &Creation,
    mut spec: SpawnSpec,
) -> Result<(Session, SessionTask), CreateError> {
    let command = command_text(&creation.launch, &spec);
    let scripts = registry.scripts(creation);
    let nonces =
        scripts.map_or_else(Nonces::default, |scripts| shell::prepare(&mut spec, &scripts));
    let is_recorded = creation.record || registry.limits().recording.always;
    if is_recorded {
        registry.make_room_for_recording().await;
    }
    let recording = is_recorded.then(|| file_name(spec.session, registry.clock().wall_time()));
    let record = SessionRecord {
        id: spec.session,
        tenant: creation.tenant.clone(),
        name,
        command,
        cwd: spec.cwd.clone(),
        tags: creation.tags.clone(),
        is_listed: creation.is_listed,
        nonces,
        confinement: registry.confinement_of(creation),
        created_at: registry.clock().now(),
        size: Some(creation.size),
        recording,
    };
    match registry.hold_options() {
        Some(options) => {
            let socket = socket_of(&options.shims.directory, record.id);
            // The start waits for other processes, so it must not block the runtime.
            let starting = spawn_blocking(move || HeldPty::start(&spec, &options));
            let started =
                starting.await.unwrap_or_else(|error| Err(SpawnError::Shim(error.into())));
            if let Err(SpawnError::Shim(_)) = started {
                // It may have started the program, and then died or been stopped.
                let at = socket.clone();
                let _ = spawn_blocking(move || end_shim(&at)).await;
                let left = GonePty::left_at(socket, record.id, record.created_at).kill().await;
                left.unwrap_or_else(
                    |error| tracing::error!(session = %record.id, %error, "the session was not started"),
                );
            }
            Ok(begin(registry, record, creation, started?))
        }
        None => Ok(begin(registry, record, creation, OwnPty::open(&spec)?)),
    }
}

/// Makes the session of a program that has just started. Writes stay closed until the task gets the state of
/// the write switches.
fn begin<P: Pty>(
    registry: &Registry,
    record: SessionRecord,
    creation: &Creation,
    pty: P,
) -> (Session, SessionTask) {
    let lease = LeaseManager::new(Epoch::default(), registry.limits().lease.clone());
    let input = Input::new(lease, WriteWindow::Closed);
    let pid = pty.evidence().map_or(0, |evidence| evidence.leader.0);
    let opening = OpeningState::empty(creation.size, registry.rules(&creation.tenant).screen);
    let commands = CommandsRecord::default();
    let recording = registry.noted_recording(&record);
    make(registry, pid, Setup { record, commands, opening, told: None, recording, input, pty })
}

/// Makes a session on any terminal, and the task that serves it.
pub(in crate::session) fn make<P: Pty>(
    registry: &Registry,
    pid: i32,
    setup: Setup<P>,
) -> (Session, SessionTask) {
    let SessionRecord { id, tenant, name, command, cwd, tags, is_listed, nonces, .. } =
        setup.record.clone();
    let SessionRecord { confinement, created_at, .. } = setup.record.clone();
    let marks = nonces.own.is_some();
    let about = About {
        id,
        id_text: id.to_string().into(),
        tenant,
        command,
        pid,
        cwd,
        tags,
        is_listed,
        marks,
        confinement,
        created_at,
    };
    let (opening, clock) = (&setup.opening, registry.clock().clone());
    let live = Arc::new(Live::new(name));
    live.set_gaps(opening.gaps.clone());
    live.output_bytes.add(opening.offset);
    live.set_unread(opening.offset, opening.unread_until);
    live.set_lease_expires_at(setup.input.lease().expires_at(clock.now()));
    let outlets = registry.outlets(Arc::clone(&live));
    let urgent = Arc::clone(&outlets.urgent);
    let (actor, frames) = Actor::new(setup, registry.rules(&about.tenant), clock.clone(), outlets);
    let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
    let (people, asked) = mpsc::channel(PEOPLE_COMMANDS_MAX);
    let ends = SessionEnds { about, commands, people, urgent, frames, live, clock };
    (Session::new(ends), Box::pin(actor.run(receiver, asked)))
}

#[cfg(test)]
mod tests;
