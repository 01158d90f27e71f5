//! Who belongs to a session, over tables made by hand.

use super::*;

const LEADER: ProcessId = ProcessId(100);

fn tree() -> Tree {
    let session = SessionId::from_random(uuid::Uuid::nil());
    Tree { session, leader: LEADER, started: 50, foreground: Some(ProcessId(101)), shim: None }
}

/// A process younger than the leader, of no group or session that matters.
fn process(pid: i32, parent: i32) -> Process {
    Process {
        pid: ProcessId(pid),
        parent: ProcessId(parent),
        group: ProcessId(pid),
        session: ProcessId(1),
        foreground: None,
        ended: false,
        started: 60,
    }
}

fn leader() -> Process {
    Process { session: LEADER, started: 50, ..process(LEADER.0, 1) }
}

fn found(table: &[Process], marked: &[i32]) -> Vec<i32> {
    found_of(&tree(), table, marked)
}

fn found_of(tree: &Tree, table: &[Process], marked: &[i32]) -> Vec<i32> {
    let session = tree.session.number();
    let marked = |process: &Process| marked.contains(&process.pid.0).then_some(session);
    let members = members(&Census::of(table.to_vec(), marked, |_| false), tree);
    members.iter().map(|process| process.pid.0).collect()
}

#[test]
fn the_session_of_the_leader_belongs_to_the_tree() {
    let job = Process { session: LEADER, ..process(101, 100) };
    let orphan = Process { session: LEADER, ..process(102, 1) };
    assert_eq!(found(&[leader(), job, orphan, process(103, 1)], &[]), [100, 101, 102]);
}

#[test]
fn descendants_belong_to_the_tree_though_they_left_the_session() {
    assert_eq!(found(&[process(102, 101), process(101, 100), leader()], &[]), [100, 101, 102]);
}

#[test]
fn a_marked_orphan_and_its_descendants_belong_to_the_tree() {
    let table = [leader(), process(201, 1), process(202, 201), process(203, 1)];
    assert_eq!(found(&table, &[201]), [100, 201, 202]);
}

#[test]
fn whoever_came_to_us_belongs_to_a_tree_whose_shim_died_and_to_no_other() {
    let died = Tree { shim: Some(Shim { pid: ProcessId(90), started: 40 }), ..tree() };
    let shim = Process { started: 40, ..process(90, 1) };
    let table = [leader(), process(201, 2), process(202, 201), process(203, 2)];
    let members_of = |tree: &Tree, table: &[Process]| {
        let census = Census::of(table.to_vec(), |_| None, |one| one.pid == ProcessId(201));
        members(&census, tree).iter().map(|process| process.pid.0).collect::<Vec<_>>()
    };
    assert_eq!(members_of(&died, &table), [100, 201, 202]);
    assert_eq!(members_of(&died, &[&table[..], &[shim]].concat()), [100]);
    assert_eq!(members_of(&tree(), &table), [100], "such a session has no shim to die");
}

#[test]
fn the_tree_is_found_without_its_leader() {
    let job = Process { session: LEADER, ..process(101, 1) };
    assert_eq!(found(&[job, process(102, 101)], &[]), [101, 102]);
}

#[test]
fn nobody_older_than_the_leader_belongs_to_the_tree() {
    let older = Process { session: LEADER, started: 49, ..process(101, 100) };
    assert_eq!(found(&[leader(), older], &[101]), [100]);
}

#[test]
fn a_later_session_with_the_number_of_the_leader_is_not_the_tree() {
    let usurper = Process { started: 70, ..leader() };
    let its_job = Process { session: LEADER, started: 71, ..process(101, 100) };
    assert_eq!(found(&[usurper, its_job], &[]), Vec::<i32>::new());
}

#[test]
fn whoever_was_left_to_the_shim_belongs_to_the_tree_but_not_the_shim() {
    let shim = Process { started: 40, ..process(90, 1) };
    let held = Tree { shim: Some(Shim { pid: ProcessId(90), started: 40 }), ..tree() };
    let leader = Process { parent: ProcessId(90), ..leader() };
    let table = [shim, leader, process(301, 90), process(302, 301), process(303, 1)];
    assert_eq!(found_of(&held, &table, &[]), [100, 301, 302]);
}

#[test]
fn a_later_process_with_the_number_of_the_shim_leaves_nobody_to_the_tree() {
    let stranger = Process { started: 70, ..process(90, 1) };
    let held = Tree { shim: Some(Shim { pid: ProcessId(90), started: 40 }), ..tree() };
    assert_eq!(found_of(&held, &[stranger, process(301, 90), leader()], &[]), [100]);
}

#[test]
fn zombies_are_not_left() {
    let zombie = Process { ended: true, ..leader() };
    assert_eq!(found(&[zombie, process(101, 100)], &[]), [101]);
}

#[test]
fn this_process_never_belongs_to_a_tree() {
    let own = i32::try_from(std::process::id()).unwrap();
    assert_eq!(found(&[leader(), process(own, 100)], &[own]), [100]);
}

#[test]
fn the_hangup_is_for_the_leader_and_the_foreground_only() {
    let foreground = Process { group: ProcessId(101), ..process(105, 100) };
    let background = process(106, 100);
    let told = |process: &Process| Stage::Hangup.concerns(process, &tree());
    assert_eq!([leader(), foreground, background].map(|one| told(&one)), [true, true, false]);
}

#[test]
fn the_later_stages_are_for_everybody() {
    let background = process(106, 100);
    assert!(Stage::Terminate.concerns(&background, &tree()));
    assert!(Stage::Kill.concerns(&background, &tree()));
}

#[test]
fn the_stopped_are_woken_to_hear_a_request() {
    for stage in [Stage::Hangup, Stage::Terminate] {
        assert_eq!(stage.signals().last(), Some(&Signal::Continue), "{stage:?}");
    }
}

#[test]
fn the_last_stage_leaves_no_choice() {
    assert_eq!(Stage::Kill.signals(), [Signal::Kill]);
}

#[test]
fn the_stages_take_no_longer_than_the_ladder_may() {
    let total: Duration = Stage::ALL.into_iter().map(Stage::grace).sum();
    assert!(total <= LADDER_MAX, "{total:?}");
}

#[test]
fn a_process_of_another_session_of_ours_does_not_belong_to_the_tree() {
    let marked = |process: &Process| (process.pid.0 == 201).then_some(tree().session.number() + 1);
    let table = vec![leader(), process(201, 1)];
    let members = members(&Census::of(table, marked, |_| false), &tree());
    assert_eq!(members, [leader()]);
}

#[test]
fn survivors_are_named_with_what_keeps_them() {
    let survivor = |pid, status: &str| Survivor::parse(ProcessId(pid), status, 1000);
    let status = |name: &str, state: &str, user: u32| {
        format!("Name:\t{name}\nUmask:\t0022\nState:\t{state}\nUid:\t{user}\t{user}\t0\t0\n")
    };
    let left = [
        survivor(5, &status("sleep", "S (sleeping)", 1000)),
        survivor(7, &status("su\x1bdo", "S (sleeping)", 0)),
        survivor(9, &status("dd", "D (disk sleep)", 1000)),
        survivor(11, &status("sh", "Z (zombie)", 1000)),
        survivor(13, ""),
    ];
    let error = KillError::Survivors { left: left.into_iter().flatten().collect() };
    assert_eq!(
        error.to_string(),
        "processes that do not end: 5 (sleep), 7 (sudo, of user 0), 9 (dd, waiting in the kernel)"
    );
}

#[tokio::test]
async fn processes_end_though_nobody_could_be_looked_for_at_first() {
    use std::os::unix::process::ExitStatusExt;

    let mut command = tokio::process::Command::new("sleep");
    let mut child = command.arg("1000").kill_on_drop(true).spawn().unwrap();
    let pid = ProcessId(child.id().unwrap().cast_signed());
    let started = Process::find(pid).unwrap().started;
    let failures = std::sync::atomic::AtomicUsize::new(3);
    let look = |_| {
        use std::sync::atomic::Ordering::Relaxed;
        let fails = failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        async move {
            if fails {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let found = census::take(None).await?.find(pid).copied();
            // It leads no session of its own.
            let found = found.map(|one| Process { session: pid, ..one });
            Ok(Arc::new(Census::of(found, |_| None, |_| false)))
        }
    };
    let tree = Tree { leader: pid, started, foreground: None, ..tree() };
    end_tree_by(tree, look).await.unwrap();
    assert_eq!(child.wait().await.unwrap().signal(), Some(Signal::Hangup.number()));
}

#[tokio::test(start_paused = true)]
async fn processes_that_start_others_faster_than_they_are_ended_are_no_end() {
    // No process has such a number, so each has ended when it is looked at more closely.
    let newest = std::sync::atomic::AtomicI32::new(i32::MAX - 10_000);
    let look = |_| {
        let pid = newest.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let fleeing = Process { session: LEADER, ..process(pid, 1) };
        async move { Ok(Arc::new(Census::of([fleeing], |_| None, |_| false))) }
    };
    let error = end_tree_by(tree(), look).await.unwrap_err();
    assert!(matches!(error, KillError::Fleeing), "{error}");
}

#[tokio::test]
async fn a_shim_that_dies_while_processes_are_read_hides_none_that_it_adopted() {
    let shim = Process { started: 40, ..process(90, 1) };
    let held = Tree { shim: Some(Shim { pid: ProcessId(90), started: 40 }), ..tree() };
    // Read before the shim died, and its child after that; then all of them again.
    let tables = [vec![shim, process(201, 2)], vec![process(201, 2)]];
    let tables = std::sync::Mutex::new(tables.into_iter());
    let look = |_| {
        let table = tables.lock().unwrap().next().unwrap();
        let census = Census::of(table, |_| None, |one| one.pid == ProcessId(201));
        async move { Ok(Arc::new(census)) }
    };
    let mut chase = Chase { tree: held, flees: false, empty: 0 };
    let seen = chase.look(Stage::Hangup, &look).await.unwrap();
    assert_eq!(seen.iter().map(|process| process.pid.0).collect::<Vec<_>>(), [201]);
}

#[tokio::test(start_paused = true)]
async fn where_strays_end_by_themselves_no_process_in_one_look_is_no_end() {
    let died = Tree { shim: Some(Shim { pid: ProcessId(90), started: 40 }), ..tree() };
    let ended = Process { ended: true, ..process(201, 2) };
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let look = |_| {
        looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move { Ok(Arc::new(Census::of([ended], |_| None, |one| one.pid == ProcessId(201)))) }
    };
    end_tree_by(died, look).await.unwrap();
    assert_eq!(looks.into_inner(), LAST_LOOKS);
}
