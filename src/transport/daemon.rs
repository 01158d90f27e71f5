//! The daemon: creates and owns all parts, from the lock to the last socket.

pub mod ending;
mod event_commands;
pub(in crate::transport) mod indexing;
pub(in crate::transport) mod journal;
pub mod kept_switches;
pub(in crate::transport) mod places;
mod rules_for_good;
mod server_host;
pub(in crate::transport) mod sessions;
mod settings;
mod startup_lock;
pub mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::config::paths::RuntimePaths;
use crate::config::sockets::SocketAccess;
use crate::config::sources::Sources;
use crate::core::event::Event;
use crate::core::ids::{PrincipalId, SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::policy::switches::{Scope, Switches};
use crate::gateway::Gateway;
use crate::mcp::answer_memory::AnswerMemory;
use crate::mcp::attach::Names;
use crate::mcp::error::code_of;
use crate::mcp::fan_out::FanOuts;
use crate::mcp::lease_notices::LeaseNotices;
use crate::mcp::shared::{AskedByOperators, OperatorRequests, ServerShared};
use crate::mcp::subscription_quota::SubscriptionQuota;
use crate::session::clock::Clock;
use crate::session::drain::Departure;
use crate::session::facts::{Board, SessionNews};
use crate::session::pty::ProcessId;
use crate::session::pty::account::own_uid;
use crate::session::pty::held::shims::ShimSetup;
use crate::session::pty::held::starter::ShimStarter;
use crate::session::pty::reaper::{become_subreaper, reap_orphans};
use crate::session::pty::spawn::give_children_descriptors;
use crate::session::registry::{Listening, Registry, Settings as SessionSettings};
use crate::store::journal::writer::Journal;
use crate::surface::call::{Daemon, Principals};
use crate::surface::control::set_write::write_status;
use crate::surface::judge::Judge;
use crate::surface::mount_leases::MountLeases;
use crate::surface::switchboard::Switchboard;
use crate::surface::turns::Turns;
use crate::transport::authentication::Authority;
use crate::transport::daemon::ending::{DaemonEnd, FoundAtStart, Teardown};
use crate::transport::daemon::event_commands::run_event_commands;
use crate::transport::daemon::indexing::{Indexing, index_of};
use crate::transport::daemon::journal::{journal_of, keep_journal, recorder};
use crate::transport::daemon::kept_switches::{KeptSwitches, SwitchOrigin, close_switches};
use crate::transport::daemon::places::{Places, mount_leases};
use crate::transport::daemon::sessions::{
    listen_for_all, open_session_doors, recover_sessions, shims_of,
};
use crate::transport::daemon::settings::{
    Reloading, limits_of_doors, sandbox_places, session_limits,
};
use crate::transport::daemon::startup_lock::{lost, take_in_turn};
use crate::transport::daemon::upgrade::DaemonProgram;
use crate::transport::door::{DoorLimits, Doors};
use crate::transport::idle_shutdown::ConnectionCount;
use crate::transport::line_memory::ReadingRoom;
use crate::transport::notify::{News, Notifier, keep_alive, tell_status};
use crate::transport::refusal::Refusals;
use crate::transport::shell_scripts::{or_told, place_scripts};
use crate::transport::signals::{Hangups, Signals};
use crate::transport::tokens::TokenStore;
use crate::transport::unix::directory::{DirectoryError, create, prepare};
use crate::transport::unix::handed::onward::ignores_hangup;
use crate::transport::unix::handed::{Handed, HandedError};
use crate::transport::unix::limits::{DescriptorLimit, raise_descriptor_limit};
use crate::transport::unix::listener::{BindError, remove_stale};
use crate::transport::unix::lock::LockError;
use crate::transport::unix::quota::ConnectionQuota;
use crate::transport::unix::reception::Reception;
use crate::wire::status::WriteStatus;

/// How long a daemon waits for another one to end, a little more than that can take.
pub const TURN_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct DaemonSettings {
    pub config: Config,
    /// Whether the daemon starts read-only, regardless of earlier write switches.
    pub read_only: bool,
    /// The sources that a reload reads.
    pub sources: Sources,
    pub paths: RuntimePaths,
    /// The daemon's own environment, from which session environments are made.
    pub environment: BTreeMap<OsString, OsString>,
    /// The default working directory of sessions.
    pub default_cwd: PathBuf,
    /// The shim program, which keeps the terminals of sessions.
    pub shim: PathBuf,
    /// The state directory with the tokens. `None` when the user has none.
    pub state: Option<PathBuf>,
    /// The sockets that a service manager passed to the daemon.
    pub handed: Handed,
    /// The idle time after which the daemon exits. `None`: it exits only on request.
    pub linger: Option<Duration>,
    pub program: DaemonProgram,
}

/// What a ready daemon reports to its operator.
#[derive(Clone, Debug)]
pub struct Banner {
    pub version: &'static str,
    pub write: WriteStatus,
    pub write_from: SwitchOrigin,
    pub gateway: PathBuf,
    pub operator: PathBuf,
    pub sessions: PathBuf,
}

impl Banner {
    fn of(daemon: &Daemon, write_from: SwitchOrigin, paths: &RuntimePaths) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            write: write_status(&daemon.switchboard, daemon.now()),
            write_from,
            gateway: paths.gateway().to_owned(),
            operator: paths.operator(),
            sessions: paths.sessions(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Handed(#[from] HandedError),
    /// No session is ended: they belong to the other daemon.
    #[error("another daemon has the place of this one, and its sessions")]
    Superseded,
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

/// Runs a daemon until it ends; calls `ready` once clients can connect.
///
/// After [`DaemonEnd::Replaced`], the process is ready for the next program, which the caller executes.
pub async fn serve(
    settings: DaemonSettings,
    ready: impl FnOnce(&Banner),
) -> Result<DaemonEnd, DaemonError> {
    let DaemonSettings { config, sources, paths, state, mut handed, linger, program, .. } =
        settings;
    let DaemonSettings { environment, default_cwd, shim, read_only, .. } = settings;
    let (sockets, hangup_ignored) = (handed.numbers(), ignores_hangup());
    // Listen for signals before any process can find this one.
    let (signals, hangups) = (Signals::listen()?, Hangups::listen()?);
    handed.check(&[paths.gateway(), &paths.gateway_read_only(), &paths.operator()])?;
    create(&paths)?;
    let lock = Arc::new(take_in_turn(&paths, TURN_MAX).await?);
    let access = SocketAccess::of(&config.sockets).map_err(DirectoryError::Group)?;
    prepare(&paths, access)?;
    let stale = remove_stale(&paths.sessions(), &lock)?;
    tracing::debug!(stale, "sockets of an earlier daemon removed");
    let found = FoundAtStart { sockets, hangup_ignored, descriptors: prepare_process()? };
    let notifier = Arc::new(Notifier::find(|name| environment.get(OsStr::new(name))));

    let holding = ShimSetup { shims: shims_of(&paths, &lock), starter: ShimStarter::of(shim) };
    let scripts = or_told(place_scripts(&paths.shell())).map(|()| paths.shell());
    let journal = journal_of(&paths, state.as_deref(), &config, &lock);
    let index = index_of(&config, paths.index(state.as_deref()));
    let sandbox = sandbox_places(&paths, state.as_deref(), &sources);
    let (kept, holding) = (Places::kept(&paths, state), Some(holding));
    let places = Places { index, environment, default_cwd, holding, scripts, sandbox, ..kept };
    let Assembly { registry, daemon, doors, listening, door_limits, asked } =
        Assembly::new(&config, places, &journal, Clock::boot()?);
    let shared = Arc::clone(&doors.shared);
    let (mut tasks, mut watched) = (JoinSet::new(), Vec::new());
    tasks.spawn(keep_journal(journal.clone(), daemon.sessions.clock()));
    let begun_at = *journal.newest_event().borrow();
    let Listening { facts, announcements } = listening;
    let doors_of_sessions = (doors.clone(), paths.clone(), access, Arc::clone(&lock));
    watched.push(tasks.spawn(open_session_doors(announcements, doors_of_sessions)));
    let kept = KeptSwitches::at(paths.switches(), &lock);
    let write_from = kept.resume(&daemon.switchboard, read_only, daemon.now());
    watched.push(tasks.spawn(Arc::clone(&kept).keep_changes(Arc::clone(&daemon))));
    // The first client finds every earlier session.
    tasks.spawn(recover_sessions(Arc::clone(&daemon)).await);
    let indexing = Indexing::start(&daemon);
    let open = |(listener, door)| doors.clone().keep_open_always(listener, door);
    let listeners = listen_for_all(&mut handed, &paths, access, &lock)?;
    watched.extend(listeners.map(|listener| tasks.spawn(open(listener))));
    watched.extend(keep_house(&mut tasks, facts, Arc::clone(&shared)));
    ready(&Banner::of(&daemon, write_from, &paths));
    notifier.tell(News::Ready).await;
    let notify = run_event_commands(&mut tasks, &daemon, config.notify.clone(), begun_at);
    let reloading = Reloading {
        sources,
        running: config,
        shared: Arc::clone(&shared),
        door_limits,
        notify,
        notifier: Arc::clone(&notifier),
    };
    tasks.spawn(reloading.run(hangups, asked.settings));
    tasks.spawn(keep_alive(Arc::clone(&notifier), watched));
    tasks.spawn(tell_status(Arc::clone(&notifier), Arc::clone(&daemon)));
    let (ended, cause) = tokio::select! {
        told = signals.told() => (told.into(), "signal"),
        () = shared.stop.cancelled() => (DaemonEnd::Stopped, "operator"),
        () = shared.superseded.cancelled() => return Err(DaemonError::Superseded),
        () = lost(&lock) => return Err(DaemonError::Superseded),
        () = doors.presence.forsaken(&daemon, linger) => (DaemonEnd::Stopped, "idle"),
        () = program.replaceable(asked.upgrades) => (DaemonEnd::Replaced, "upgrade"),
    };
    daemon.sessions.tell_event(None, Event::DaemonStopped { cause });
    let clock = daemon.sessions.clock().clone();
    let teardown = Teardown { daemon, registry, doors, notifier, tasks, kept, lock, found };
    let ended = teardown.end(ended, indexing).await;
    journal.sync(clock.wall_time());
    Ok(ended)
}

/// Prepares the process for running sessions.
pub(in crate::transport) fn prepare_process() -> io::Result<DescriptorLimit> {
    let limit = raise_descriptor_limit()?;
    tracing::debug!(?limit, "descriptors");
    // Sessions start with the original limit, because some programs close every descriptor up to it.
    give_children_descriptors(limit.before);
    become_subreaper()?;
    Ok(limit)
}

/// Starts the background tasks of every daemon; returns those that end only with the daemon.
pub(in crate::transport) fn keep_house(
    tasks: &mut JoinSet<()>,
    facts: Board,
    shared: Arc<ServerShared>,
) -> [AbortHandle; 2] {
    let switches = tasks.spawn(close_switches(Arc::clone(shared.gateway.daemon())));
    let shims = tasks.spawn(tell_shims(facts, shared));
    tasks.spawn(async {
        if let Err(error) = reap_orphans().await {
            tracing::warn!(%error, "orphans are not reaped");
        }
    });
    [switches, shims]
}

fn configured_switches(config: &Config) -> Switches {
    let mut switches = Switches::default();
    if config.allow_write {
        switches.set(Scope::Everything, WriteWindow::Open);
    }
    switches
}

/// The parts of a daemon before the first client connects.
pub(in crate::transport) struct Assembly {
    pub(in crate::transport) registry: Registry,
    daemon: Arc<Daemon>,
    pub(in crate::transport) doors: Doors,
    pub(in crate::transport) listening: Listening,
    door_limits: watch::Sender<DoorLimits>,
    asked: AskedByOperators,
}

impl Assembly {
    pub(in crate::transport) fn new(
        config: &Config,
        places: Places,
        journal: &Journal,
        clock: Clock,
    ) -> Self {
        let mounts = places.mounts(config);
        let Places { index, environment, default_cwd, holding, scripts, .. } = places;
        let Places { sandbox, state, recordings, accepted, .. } = places;
        let started = clock.now();
        let own_tenant = TenantId::of_uid(own_uid());
        let limits = session_limits(config);
        let settings = SessionSettings {
            limits,
            own_tenant: own_tenant.clone(),
            environment,
            default_cwd,
            holding,
            scripts,
            sandbox,
            recorder: recorder(journal, &clock),
            recordings,
        };
        let tokens = state.as_deref().map(TokenStore::in_state);
        let (registry, listening) = Registry::new(settings, clock.clone());
        let mount_leases = mount_leases(&registry, accepted, &mounts);
        let end_rights = end_rights(registry.clone(), Arc::clone(&mount_leases));
        let authority = Authority::new(tokens, own_tenant.clone(), clock, end_rights);
        let daemon = Arc::new(Daemon {
            sessions: registry.clone(),
            switchboard: Switchboard::new(configured_switches(config)),
            toolsets: config.toolsets,
            lease_auto: AtomicBool::new(config.lease.auto),
            principals: Principals::default(),
            departure: Departure::default(),
            index,
            judge: Judge::new(Arc::clone(&config.policy)),
            mount_leases,
            mounts,
            turns: Turns::default(),
            journal: journal.clone(),
            started,
        });
        let (operators, asked) = OperatorRequests::new();
        let shared = Arc::new(ServerShared {
            gateway: Gateway::new(Arc::clone(&daemon), own_tenant.clone(), &config.calls, code_of),
            fan_outs: FanOuts::default(),
            subscriptions: SubscriptionQuota::new(own_tenant, config.subscriptions.clone()),
            lease_notices: LeaseNotices::default(),
            answers: AnswerMemory::default(),
            names: Names::default(),
            stop: CancellationToken::new(),
            superseded: CancellationToken::new(),
            operators,
            numbers: Arc::new(AtomicU64::new(1)),
        });
        let parsing = ReadingRoom::of_bytes(config.connection.parsing_bytes);
        let (door_limits, limits) = watch::channel(limits_of_doors(config, parsing));
        let own_process = ProcessId(std::process::id().cast_signed());
        let doors = Doors {
            numbers: Arc::clone(&shared.numbers),
            shared,
            authority,
            limits,
            quota: Arc::new(ConnectionQuota::new(own_uid())),
            operators: Reception::new(own_process),
            others: Reception::new(own_process),
            presence: ConnectionCount::default(),
            refusals: Refusals::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            hanging_up: CancellationToken::new(),
        };
        Self { registry, daemon, doors, listening, door_limits, asked }
    }
}

/// Ends all leases of a principal that may not write any more.
fn end_rights(sessions: Registry, leases: Arc<MountLeases>) -> impl Fn(PrincipalId) {
    move |principal| {
        sessions.all().iter().for_each(|session| session.end_right_of(principal));
        leases.end_right_of(principal);
    }
}

/// Notifies principals that lost a lease, and removes the switches of sessions that are gone.
async fn tell_shims(facts: Board, shared: Arc<ServerShared>) {
    loop {
        let SessionNews { leases, listed, superseded } = facts.next().await;
        leases.iter().for_each(|((of, _), event)| shared.lease_notices.tell(of, event));
        let daemon = shared.gateway.daemon();
        let is_gone = |id: &SessionId| daemon.sessions.get(*id).is_none();
        let gone: BTreeSet<_> = listed.into_iter().filter(is_gone).collect();
        if !gone.is_empty() {
            daemon.switchboard.keep_sessions(|id| !gone.contains(&id));
        }
        if superseded {
            shared.superseded.cancel();
        }
    }
}
