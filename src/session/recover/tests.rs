//! Sessions of a second daemon, over terminals in memory that the first one left.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::frame::{Exit, Frame, Size};
use crate::core::ids::{ConnectionId, LeaseId, PrincipalId};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::input::request::WriteError;
use crate::core::keys::paste::PasteRule;
use crate::core::lease::error::LeaseError;
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::record::HoldingRecord;
use crate::core::lease::request::{AcquireRequest, OnDisconnect, TakeRule};
use crate::core::policy::{Door, PermittedAct};
use crate::core::quota::Quota;
use crate::core::screen::ScreenLimits;
use crate::core::shell::commands::record::CommandId;
use crate::session::clock::Clock;
use crate::session::command::{Accepted, Content, Expectation, WriteOrder};
use crate::session::control::Parting;
use crate::session::error::SessionError;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::ClientEnvironment;
use crate::session::pty::held::shims::{HoldingLimits, OWN_PROGRAM, ShimSetup, Shims, socket_of};
use crate::session::pty::held::starter::ShimStarter;
use crate::session::pty::kill::Survivor as LivingProcess;
use crate::session::pty::processes::Process;
use crate::session::pty::sandbox::SandboxPlaces;
use crate::session::pty::shell::Nonces;
use crate::session::pty::tests::fake::{FakePty, FakeTerminal, pair};
use crate::session::pty::{Note, ProcessId};
use crate::session::recorder::tests::TestJournal;
use crate::session::recording::RecordingLimits;
use crate::session::records::identity::Confinement;
use crate::session::registry::creating::Creation;
use crate::session::registry::limits::SessionLimits;
use crate::session::registry::{RenameError, Settings};
use crate::session::restore::UNTIL_END;
use crate::session::tests::permitted::permit;
use crate::shim::readiness::{self, READABLE};
use crate::shim::socket::{self, Descriptors};
use crate::shim::wire::frame;
use crate::shim::wire::to_shim::Unread;

const LEASE: LeaseId = LeaseId(Uuid::from_u128(9));

fn tenant() -> TenantId {
    TenantId::of_uid(1000)
}

fn id(number: u128) -> SessionId {
    SessionId::from_random(Uuid::from_u128(number << 80))
}

pub(crate) fn registry() -> Registry {
    registry_with(None)
}

fn registry_with(holding: Option<ShimSetup>) -> Registry {
    registry_by(Clock::paused(), holding)
}

fn registry_by(clock: Clock, holding: Option<ShimSetup>) -> Registry {
    registry_of(clock, holding, None)
}

/// One whose shells read scripts, that of its own user in this directory.
pub(crate) fn registry_with_scripts(scripts: PathBuf) -> Registry {
    registry_of(Clock::boot().unwrap(), None, Some(scripts))
}

fn registry_of(clock: Clock, holding: Option<ShimSetup>, scripts: Option<PathBuf>) -> Registry {
    let limits = SessionLimits {
        lease: LeaseLimits::default(),
        screen: ScreenLimits::default(),
        cells_max: 10_000,
        frame_interval: Duration::from_millis(8),
        keep_ended: Duration::from_secs(60),
        holding: HoldingLimits { orphan_ttl: None, ring_bytes: 1 << 20, unread: Unread::Block },
        shell_marks: true,
        sandbox: false,
        sessions_max: Quota::new(9, 9),
        tenants: Arc::default(),
        recording: RecordingLimits::default(),
    };
    let settings = Settings {
        limits,
        own_tenant: tenant(),
        environment: BTreeMap::new(),
        default_cwd: PathBuf::from("/"),
        holding,
        scripts,
        sandbox: SandboxPlaces::default(),
        recorder: TestJournal::default().recorder(),
        recordings: PathBuf::from("/nonexistent"),
    };
    // Nobody opens doors here.
    Registry::new(settings, clock).0
}

fn notes(number: u128) -> RecoveredNotes {
    let session = SessionRecord {
        id: id(number),
        tenant: tenant(),
        name: Arc::from("build"),
        command: "make".to_owned(),
        cwd: PathBuf::from("/src"),
        tags: vec!["ci".to_owned()],
        is_listed: false,
        nonces: Nonces::default(),
        confinement: Confinement::default(),
        created_at: Moment::default(),
        size: Some(Size { rows: 5, cols: 20 }),
        recording: None,
    };
    let holding = HoldingRecord {
        lease: LEASE,
        tenant: tenant(),
        kind: Kind::Agent,
        label: Arc::from("claude"),
        token: None,
        ttl: Duration::from_secs(30),
        on_disconnect: OnDisconnect::Keep,
        reason: None,
        must_look: false,
    };
    let lease = LeaseRecord { epoch: Epoch(3), holding: Some(holding) };
    let commands = CommandsRecord { last: CommandId(7), ..CommandsRecord::default() };
    RecoveredNotes { session, lease, commands }
}

fn survivor(notes: RecoveredNotes) -> (FoundTerminal<FakePty>, FakeTerminal) {
    let (pty, terminal) = pair();
    let survivor = FoundTerminal {
        notes,
        pty,
        pid: 4,
        opening: OpeningState::empty(Size { rows: 5, cols: 20 }, ScreenLimits::default()),
        newest: Epoch(2),
        typed: None,
        writes: Vec::new(),
        window: WriteWindow::Open,
    };
    (survivor, terminal)
}

pub(in crate::session) fn caller() -> Caller {
    Caller {
        principal: PrincipalId::Connection(1),
        connection: ConnectionId(1),
        tenant: tenant(),
        kind: Kind::Agent,
        label: Arc::from("claude"),
    }
}

/// The newest notes, as the next daemon finds them.
fn read_back(terminal: &FakeTerminal, number: u128) -> RecoveredNotes {
    let kept = Note::ALL.map(|note| terminal.note(note).unwrap_or_default());
    RecoveredNotes::read((id(number), &tenant()), |note| &kept[note as usize], Moment::default())
}

#[tokio::test(start_paused = true)]
async fn a_session_is_found_by_the_lease_that_it_had_in_the_daemon_before() {
    let registry = registry();
    let session = registry.recover(survivor(notes(1)).0).await;
    assert_eq!((session.id(), &*session.name()), (id(1), "build"));
    assert_eq!(session.about().tags, ["ci"]);
    let found = registry.of_lease(LEASE).expect("the lease is known");
    assert_eq!(found.id(), id(1));
    let request = asking(Some(LEASE), Duration::ZERO, registry.clock().now());
    let accepted = Accepted::nothing();
    let grant = found.permitted_acquire(caller(), request, None, accepted).await.unwrap();
    assert_eq!(grant.lease, LEASE);
    assert!(grant.epoch > Epoch(3));
}

#[tokio::test(start_paused = true)]
async fn who_finds_a_session_of_before_finds_what_its_program_wrote_meanwhile() {
    let registry = registry();
    let (mut first, terminal) = survivor(notes(1));
    terminal.push(b"one ");
    terminal.push(b"two");
    first.opening.unread_until = 7;
    let session = registry.recover(first).await;
    assert_eq!(session.frame().lines[0].value.text.trim_end(), "one two");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_known_to_have_ended_is_found_ended() {
    let registry = registry();
    let (mut first, terminal) = survivor(notes(1));
    terminal.exit(Exit::Code(3));
    first.opening.unread_until = UNTIL_END;
    let session = registry.recover(first).await;
    assert_eq!(session.frame().exit.value, Some(Exit::Code(3)));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_read_further_is_found_as_it_was_kept() {
    let registry = registry();
    let (mut first, terminal) = survivor(notes(1));
    terminal.push(b"one");
    first.opening.unread_until = 7;
    let session = registry.recover(first).await;
    assert_eq!(session.frame().lines[0].value.text.trim_end(), "one");
}

#[tokio::test(start_paused = true)]
async fn what_a_recovered_session_keeps_is_enough_for_yet_another_daemon() {
    let registry = registry();
    // A version before kept no size.
    let session = SessionRecord { size: None, ..notes(1).session };
    let (survivor, terminal) = survivor(RecoveredNotes { session, ..notes(1) });
    registry.recover(survivor).await;
    let again = read_back(&terminal, 1);
    assert_eq!(again.session, notes(1).session);
    assert_eq!(again.lease.holding, notes(1).lease.holding);
    assert!(again.lease.epoch > Epoch(3));
    assert_eq!(again.commands.last, CommandId(7));
}

#[tokio::test(start_paused = true)]
async fn no_number_of_a_command_is_given_again_although_the_screen_knows_none() {
    let registry = registry();
    let session = registry.recover(survivor(notes(1)).0).await;
    assert_eq!(session.frame().commands.value.last(), CommandId(7));
    assert_eq!(session.frame().commands.value.iter().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_command_of_a_screen_that_cannot_be_read_is_not_sent_again() {
    let note = br#"{"v":1,"last":7,"uncovered":[{"id":7,"offset":3,"at":1,"text":"make",
        "typed":"make","by":null,"prompt":"$ ","echoed":true}]}"#;
    let commands = CommandsRecord::from_note(note).expect("it can be read");
    for (covered, known) in [(0, 1), (3, 1), (4, 0)] {
        let registry = registry();
        let notes = RecoveredNotes { commands: commands.clone(), ..notes(1) };
        let (mut first, _terminal) = survivor(notes);
        (first.opening.covered, first.opening.offset) = (covered, 4);
        let session = registry.recover(first).await;
        let commands = &session.frame().commands.value;
        assert_eq!(commands.iter().count(), known, "covered before {covered}");
        assert_eq!(commands.last(), CommandId(7));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_name_is_kept_before_anybody_is_told() {
    let registry = registry();
    let (first, terminal) = survivor(notes(1));
    let session = registry.recover(first).await;
    registry
        .rename(&session.permit(&caller(), PermittedAct::Manage), &session, "deploy")
        .await
        .unwrap();
    assert_eq!(&*session.name(), "deploy");
    assert_eq!(&*read_back(&terminal, 1).session.name, "deploy");
    let entrusted = terminal.entrusted().pop().expect("the name outlasts also the shim");
    assert_eq!(&*SessionRecord::from_note(&entrusted, id(1)).unwrap().name, "deploy");
    let (other, _terminal) = survivor(notes(2));
    assert_eq!(&*registry.recover(other).await.name(), "build", "the old name is free again");
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_keeps_the_name_that_it_got_for_the_one_it_gave_away() {
    let registry = registry();
    let (first, ended) = survivor(RecoveredNotes {
        session: SessionRecord { name: Arc::from("x".repeat(64)), ..notes(1).session },
        ..notes(1)
    });
    let first = registry.recover(first).await;
    let (other, _terminal) = survivor(notes(2));
    let other = registry.recover(other).await;
    let wanted = first.name();
    assert!(
        registry
            .rename(&other.permit(&caller(), PermittedAct::Manage), &other, &wanted)
            .await
            .is_err(),
        "the first one runs"
    );
    ended.exit(Exit::Code(0));
    let has_ended = |frame: &Arc<Frame>| frame.exit.value.is_some();
    first.frames().wait_for(has_ended).await.unwrap();
    registry.rename(&other.permit(&caller(), PermittedAct::Manage), &other, &wanted).await.unwrap();
    assert_eq!(other.name(), wanted);
    let aside = read_back(&ended, 1).session.name;
    assert_eq!(aside, first.name());
    assert!(aside.ends_with("-ended") && aside.len() <= 64, "{aside}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_takes_no_name_with_it() {
    let registry = registry();
    let session = registry.recover(survivor(notes(1)).0).await;
    session.part(Parting::End);
    session.closed().await;
    registry.forgotten(id(1)).await;
    let renamed =
        registry.rename(&session.permit(&caller(), PermittedAct::Manage), &session, "deploy").await;
    assert!(matches!(renamed, Err(RenameError::Session(_))), "{renamed:?}");
    let mut next = notes(2);
    next.session.name = Arc::from("deploy");
    assert_eq!(&*registry.recover(survivor(next).0).await.name(), "deploy");
}

#[tokio::test(start_paused = true)]
async fn of_two_sessions_with_one_name_the_later_gets_a_number() {
    let registry = registry();
    let first = registry.recover(survivor(notes(1)).0).await;
    let second = registry.recover(survivor(notes(2)).0).await;
    assert_eq!((&*first.name(), &*second.name()), ("build", "build-2"));
}

#[tokio::test(start_paused = true)]
async fn a_terminal_of_which_nothing_else_is_known_is_a_free_session_called_by_its_id() {
    let registry = registry();
    let now = registry.clock().now();
    let garbage = RecoveredNotes::read((id(1), &tenant()), |_| b"\xff", now);
    let (survivor, terminal) = survivor(garbage);
    let session = registry.recover(survivor).await;
    assert_eq!(session.name().to_string(), id(1).to_string());
    assert_eq!(session.tenant(), &tenant());
    assert_eq!(session.frame().lease.value.holding, None);
    assert!(read_back(&terminal, 1).lease.epoch >= Epoch(2));
}

fn asking(presented: Option<LeaseId>, wait: Duration, now: Moment) -> AcquireRequest {
    AcquireRequest {
        fresh: LeaseId(Uuid::from_u128(10)),
        presented,
        ttl: None,
        on_disconnect: None,
        reason: None,
        wait_until: Some(now + wait),
        waiters_max: None,
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_has_the_lease_when_nobody_took_it_back_for_ten_seconds() {
    let registry = registry();
    let session = registry.recover(survivor(notes(1)).0).await;
    let view = session.frame().lease.value.holding.clone().expect("somebody may take it back");
    assert!(view.reclaimable);
    let start = registry.clock().now();
    let request = asking(None, Duration::from_secs(60), start);
    let grant = session.permitted_acquire(caller(), request, None, Accepted::nothing()).await;
    assert_eq!(registry.clock().now().since(start), LeaseManager::RECLAIM_FOR);
    assert!(grant.unwrap().epoch > view.epoch);
    let late = asking(Some(LEASE), Duration::ZERO, start);
    let late = session.permitted_acquire(caller(), late, None, Accepted::nothing()).await;
    let superseded = SessionError::Write(WriteError::Lease(LeaseError::Superseded));
    assert_eq!(late.unwrap_err().to_string(), superseded.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_daemon_before_made_is_answered_and_not_made_again() {
    let registry = registry();
    let key = IdempotencyKey::new("a", 1).expect("short");
    let stamp = WriteStamp::new(&tenant(), LEASE, &key);
    let (mut survivor, terminal) = survivor(notes(1));
    survivor.writes = vec![FormerWrite { stamp, taken: 2, own: None, length: None, command: None }];
    survivor.notes.commands.note_length(stamp, 4);
    let session = registry.recover(survivor).await;
    let order = WriteOrder {
        caller: caller(),
        door: Door::Gateway,
        content: Content::Bytes { bytes: b"make".to_vec(), enter: false },
        presented: Some(LEASE),
        take: TakeRule::HeldOnly,
        expect: Expectation::default(),
        key: Some(key),
        dry_run: false,
        keep_alive: false,
        command: None,
        decision: None,
        bound: None,
    };
    let written = session.permitted_write(order.clone(), Accepted::nothing()).await.unwrap();
    assert!(written.replayed);
    assert_eq!((written.outcome.written, written.outcome.discarded), (2, 2));
    assert_eq!(terminal.written(), b"");
    let other = WriteOrder { key: IdempotencyKey::new("b", 1), ..order };
    session.permitted_write(other, Accepted::nothing()).await.unwrap();
    assert_eq!(terminal.written(), b"make");
}

/// A registry whose shims are in `directory`, as long as its daemon has the place, which `ours` says.
fn registry_of_shims(directory: &Path, ours: bool) -> Registry {
    let shims = Shims::claimed(directory, move || ours);
    registry_with(Some(ShimSetup { shims, starter: ShimStarter::of(OWN_PROGRAM) }))
}

fn closed(_: &TenantId, _: SessionId) -> WriteWindow {
    WriteWindow::Closed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_shim_speaks_another_language_is_silent_and_told_when_all_ends() {
    let ground = tempfile::tempdir().unwrap();
    let listener = socket::listen_at(&socket_of(ground.path(), id(1))).unwrap();
    let babbling = std::thread::spawn(move || {
        let came = [(Some(listener.as_fd()), READABLE)];
        assert_ne!(readiness::wait(came, Some(Duration::from_secs(20))).unwrap(), [0]);
        let connection = socket::accept(listener.as_fd()).unwrap();
        socket::send(connection.as_fd(), b"\xff\xff\0\0babble", &[]).unwrap();
        // It stays until it was heard.
        connection
    });
    let registry = registry_of_shims(ground.path(), true);
    let unanswered = registry.recover_left(vec![id(1)], closed).await;
    assert_eq!(unanswered.silent, [id(1)]);
    let unended = registry.shut_down(Duration::from_secs(1)).await;
    let named: Vec<_> = unended.iter().map(|one| (one.session, one.name.to_string())).collect();
    assert_eq!(named, [(id(1), id(1).to_string())], "nobody knows what it was called");
    drop(babbling.join().unwrap());
}

#[tokio::test]
async fn a_silent_session_is_asked_again_though_the_place_was_not_sure_for_a_moment() {
    let ground = tempfile::tempdir().unwrap();
    let registry = registry_of_shims(ground.path(), false);
    let unanswered = registry.recover_left(vec![id(1)], closed).await;
    assert_eq!(unanswered.silent, [id(1)]);
}

/// What a shim does that dies once it has started its program: it writes down its number.
const DYING_SHIM: &str = "
session=${1##*/}
ulimit -x $(((0x7ffe << 48) | 0x${session%.sock}))
trap '' HUP TERM
setsid sleep 7777 </dev/null &
echo $! >${1%/*}/started
: >$1
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_start_whose_shim_died() {
    let ground = tempfile::tempdir().unwrap();
    let (ours, orders) = socket::pair().unwrap();
    let dying = std::thread::spawn(move || {
        let came = [(Some(orders.as_fd()), READABLE)];
        assert_ne!(readiness::wait(came, Some(Duration::from_secs(20))).unwrap(), [0]);
        let (mut room, mut daemon) = (frame(), Descriptors::default());
        let length = socket::receive(orders.as_fd(), &mut room, &mut daemon).unwrap();
        let path = OsStr::from_bytes(&room[..length]);
        let mut bash = Command::new("bash");
        assert!(bash.args(["-c", DYING_SHIM, "shim"]).arg(path).status().unwrap().success());
    });
    let holding =
        ShimSetup { shims: Shims::at(ground.path()), starter: ShimStarter::played_by(ours) };
    // Processes start by this clock.
    let registry = registry_by(Clock::boot().unwrap(), Some(holding));
    let creation = Creation {
        id: registry.fresh_id(),
        tenant: tenant(),
        name: None,
        launch: Launch::Line("true".to_owned()),
        cwd: None,
        run_as: None,
        sandbox: false,
        client: ClientEnvironment::default(),
        env: BTreeMap::new(),
        size: Size { rows: 5, cols: 20 },
        tags: Vec::new(),
        is_listed: false,
        record: false,
        first: None,
    };
    assert!(
        registry
            .create(
                &permit(&caller(), PermittedAct::Create, None),
                creation,
                Accepted::nothing(),
                |_| {}
            )
            .await
            .is_err()
    );
    dying.join().unwrap();
    let started = std::fs::read_to_string(ground.path().join("started")).unwrap();
    let started = ProcessId(started.trim().parse().unwrap());
    assert!(Process::find(started).is_none_or(|process| process.ended), "it was ended");
    let left = std::fs::read_dir(ground.path()).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".sock")), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_with_all_sessions_is_named_once_their_time_is_over() {
    let most = Duration::from_secs(5);
    let registry = registry();
    let (ends, survives, hangs) = (survivor(notes(1)), survivor(notes(2)), survivor(notes(3)));
    let name = "sudo".to_owned();
    survives.1.survive(LivingProcess { pid: ProcessId(7), name, user: Some(0), stuck: false });
    hangs.1.kill_takes_for_ever();
    for (session, _) in [ends, survives, hangs] {
        registry.recover(session).await;
    }
    let begin = registry.clock().now();
    let unended = registry.shut_down(most).await;
    assert_eq!(registry.clock().now().since(begin), most);
    let mut told: Vec<_> = unended.iter().map(|one| (one.session, one.what.as_str())).collect();
    told.sort_unstable();
    let survives = "processes that do not end: 7 (sudo, of user 0)";
    assert_eq!(told, [(id(2), survives), (id(3), "it takes longer to end")]);
    assert_eq!(registry.ended().await, unended);
}

#[tokio::test(start_paused = true)]
async fn a_paste_that_the_daemon_before_began_is_closed_before_anything_else_goes_out() {
    let order = |text: &str| WriteOrder {
        caller: caller(),
        door: Door::Gateway,
        content: Content::Text { text: text.to_owned(), paste: PasteRule::Auto, enter: false },
        presented: Some(LEASE),
        take: TakeRule::HeldOnly,
        expect: Expectation::default(),
        key: None,
        dry_run: false,
        keep_alive: false,
        command: None,
        decision: None,
        bound: None,
    };
    let (first, terminal) = survivor(notes(1));
    terminal.push("\x1b[?2004hready");
    let session = registry().recover(first).await;
    let mut frames = session.frames();
    let pastes = |frame: &Arc<Frame>| frame.input_modes.value.bracketed_paste;
    frames.wait_for(pastes).await.expect("alive");
    terminal.limit_writes(Some(8));
    let begun = session.permitted_write(order("one\ntwo"), Accepted::nothing()).await.unwrap();
    assert_eq!((begun.outcome.written, terminal.written().len()), (8, 8));
    // The next daemon knows what was kept, and nothing else.
    let (mut second, terminal) = survivor(read_back(&terminal, 1));
    second.notes.lease = notes(1).lease;
    let session = registry().recover(second).await;
    session.permitted_write(order("Z"), Accepted::nothing()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&terminal.written()), "\x1b[201~Z");
    let (third, terminal) = survivor(read_back(&terminal, 1));
    registry().recover(third).await;
    assert_eq!(terminal.written(), b"", "it is closed once");
}

#[tokio::test(start_paused = true)]
async fn a_command_of_which_no_byte_was_taken_never_ran_whoever_stored_it() {
    let note = br#"{"v":1,"last":7,"typed_before":100,"uncovered":[{"id":7,"offset":0,"at":1,
        "text":"make","typed":"make","by":null,"prompt":"$ ","echoed":true}],
        "calls":[["a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",7]]}"#;
    let commands = CommandsRecord::from_note(note).expect("it can be read");
    assert_eq!(CommandsRecord::from_note(&commands.to_note()).unwrap(), commands);
    for (typed, known) in [(Some(100), 0), (Some(99), 0), (Some(101), 1), (None, 1)] {
        for is_on_screen in [false, true] {
            let registry = registry();
            let notes = RecoveredNotes { commands: commands.clone(), ..notes(1) };
            let (mut first, terminal) = survivor(notes);
            first.typed = typed;
            if is_on_screen {
                let screen = &mut first.opening.screen;
                screen.number_commands_after(CommandId(6));
                let submission = commands.uncovered[0].submission();
                assert_eq!(screen.submit(Moment::default(), submission), CommandId(7));
            }
            let session = registry.recover(first).await;
            let frame = session.frame();
            let case = format!("{typed:?} taken, on the screen: {is_on_screen}");
            assert_eq!(frame.commands.value.iter().count(), known, "{case}");
            assert_eq!(frame.commands.value.last(), CommandId(7), "{case}");
            assert_eq!(frame.commands.value.sent().is_some(), known == 1, "{case}");
            let calls = read_back(&terminal, 1).commands.calls.len();
            assert_eq!(calls, known, "{case}");
        }
    }
}
