//! Creates a session: resolves and starts its program before the session becomes visible. A failure leaves
//! nothing behind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::input::{Input, WriteWindow};
use crate::core::lease::LeaseManager;
use crate::core::lease::request::AcquireRequest;
use crate::session::actor::{Actor, COMMANDS_MAX, Setup};
use crate::session::control::Urgent;
use crate::session::create_error::{CreateError, NAME_MAX, check_name};
use crate::session::handle::{About, Ends, Identity, Session};
use crate::session::people::PEOPLE_COMMANDS_MAX;
use crate::session::pty::Pty;
use crate::session::pty::command::{Launch, SpawnSpec};
use crate::session::pty::environment::{ClientEnvironment, clean_environment};
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::living;
use crate::session::pty::held::options::socket_of;
use crate::session::pty::orphaned::GonePty;
use crate::session::pty::own::OwnPty;
use crate::session::pty::shell;
use crate::session::pty::spawn::SpawnError;
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::Registry;
use crate::session::restore::Opening;
use crate::session::stats::Live;

/// What a client asks for in a new session.
#[derive(Clone, Debug)]
pub struct Creation {
    pub tenant: TenantId,
    /// `None` derives a name from the command.
    pub name: Option<String>,
    pub launch: Launch,
    /// `None` means the daemon's working directory.
    pub cwd: Option<PathBuf>,
    /// The variables that the command line or the bridge passes on.
    pub client: ClientEnvironment,
    pub env: BTreeMap<String, String>,
    pub size: Size,
    pub tags: Vec<String>,
    /// The holder and the terms of the first lease. No other caller can acquire it before. `None` creates a
    /// free session.
    pub first: Option<(Caller, AcquireRequest)>,
}

/// The default name of a session, derived from its program.
pub(in crate::session) fn name_of(launch: &Launch, spec: &SpawnSpec) -> String {
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

/// Resolves the program, directory and environment of a new session.
pub(in crate::session) fn resolve(
    registry: &Registry,
    id: SessionId,
    creation: &Creation,
) -> Result<SpawnSpec, CreateError> {
    let environment = clean_environment(registry.environment(), &creation.client, &creation.env)?;
    let cwd = creation.cwd.clone().unwrap_or_else(|| registry.default_cwd().to_owned());
    Ok(SpawnSpec::resolve(creation.launch.clone(), id, cwd, environment, creation.size)?)
}

/// A session whose program runs, and the task that serves it.
pub(in crate::session) struct Started {
    pub session: Session,
    pub task: SessionTask,
}

/// The future that serves a session until it is removed.
pub(in crate::session) type SessionTask = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(in crate::session) async fn start(
    registry: &Registry,
    identity: Identity,
    name: Arc<str>,
    creation: &Creation,
    mut spec: SpawnSpec,
) -> Result<Started, CreateError> {
    let command = command_text(&creation.launch, &spec);
    let nonce = registry.scripts().and_then(|scripts| shell::prepare(&mut spec, scripts));
    let record = SessionRecord {
        id: identity.id,
        tenant: identity.tenant,
        name,
        command,
        cwd: spec.cwd.clone(),
        tags: creation.tags.clone(),
        nonce,
        created_at: registry.clock().now(),
        size: Some(creation.size),
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
                let _ = spawn_blocking(move || living::end_shim(&at)).await;
                let left = GonePty::left_at(socket, record.id, record.created_at).kill().await;
                left.unwrap_or_else(
                    |error| tracing::error!(session = %record.id, %error, "it was not started"),
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
) -> Started {
    let lease = LeaseManager::new(Epoch::default(), registry.limits().lease.clone());
    let input = Input::new(lease, WriteWindow::Closed);
    let pid = pty.evidence().map_or(0, |evidence| evidence.leader.0);
    let opening = Opening::empty(creation.size, registry.limits().screen);
    let commands = CommandsRecord::default();
    let (session, task) = make(registry, Making { record, commands, pid, opening, input, pty });
    Started { session, task }
}

/// The parts of a session's task that the registry does not know.
#[derive(Debug)]
pub(in crate::session) struct Making<P> {
    pub record: SessionRecord,
    pub commands: CommandsRecord,
    pub pid: i32,
    pub opening: Opening,
    pub input: Input,
    pub pty: P,
}

/// Makes a session on any terminal, and the task that serves it.
pub(in crate::session) fn make<P: Pty>(
    registry: &Registry,
    making: Making<P>,
) -> (Session, SessionTask) {
    let Making { record, commands, pid, opening, input, pty } = making;
    let SessionRecord { id, tenant, name, command, cwd, tags, nonce, created_at, .. } =
        record.clone();
    let identity = Arc::new(Identity { id, tenant });
    let about = About { command, pid, cwd, tags, marks: nonce.is_some(), created_at };
    let live = Arc::new(Live::new(name));
    live.set_gaps(opening.gaps.clone());
    live.output_bytes.add(opening.offset);
    live.set_unread(opening.offset, opening.unread_until);
    live.set_lease_expires_at(input.lease().expires_at(registry.clock().now()));
    let urgent = Arc::new(Urgent::default());
    let (actor, frames) = Actor::new(Setup {
        identity: Arc::clone(&identity),
        records: (record, commands),
        rules: registry.rules(),
        clock: registry.clock().clone(),
        pty,
        opening,
        input,
        outlets: registry.outlets(Arc::clone(&live)),
        urgent: Arc::clone(&urgent),
    });
    let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
    let (people, asked) = mpsc::channel(PEOPLE_COMMANDS_MAX);
    let clock = registry.clock().clone();
    let ends = Ends { commands, people, urgent, frames, live, clock };
    let session = Session::new(identity, about, ends);
    (session, Box::pin(actor.run(receiver, asked)))
}

/// Generates a session id that is not taken.
pub(in crate::session) fn fresh_id(taken: impl Fn(SessionId) -> bool) -> SessionId {
    loop {
        let id = SessionId::from_random(Uuid::new_v4());
        if !taken(id) {
            return id;
        }
    }
}
