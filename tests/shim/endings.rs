//! Nothing is left of a session that was ended, however it ends and whoever its program is.

use std::io::ErrorKind;
use std::time::Duration;

use termgate::core::frame::Exit;
use termgate::session::pty::held::shims::Shims;
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::kill::LADDER_MAX;
use termgate::session::pty::processes::{self, Process, ProcessHandle};
use termgate::session::pty::{Note, ProcessId, Pty, Stamp, TerminalCheckpoint};
use termgate::shim::readiness;

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::{soon, until};
use crate::shim::harness::{
    Terminal, checkpoint, end, exit_of, fall_silent, find, is_there, marked, read_to_end,
    read_until, wait_for,
};

/// A shell line that starts one process which ignores requests, left the session, was orphaned and
/// does not carry the mark of its session; it says its number.
const ESCAPED: &str = "trap '' HUP TERM; \
    (env -i setsid bash -c 'trap \"\" HUP TERM; echo escaped:$$:; exec sleep 1000' &); \
    echo ready; wait; sleep 1001";

async fn escaped(terminal: &Terminal) -> Process {
    let mut output = Vec::new();
    read_until(terminal, &mut output, Some("ready")).await;
    read_until(terminal, &mut output, Some(":\r\n")).await;
    let text = String::from_utf8(output).unwrap();
    let (_, rest) = text.split_once("escaped:").unwrap();
    let (pid, _) = rest.split_once(':').unwrap();
    find(ProcessId(pid.parse().unwrap()))
}

#[tokio::test]
async fn whoever_left_the_session_and_cleared_its_mark_is_adopted_and_ended() {
    let terminal = Terminal::held(ESCAPED, |_| {});
    let escaped = escaped(&terminal).await;
    until("it is adopted by the shim", || {
        Process::find(escaped.pid).is_some_and(|one| one.parent == terminal.as_held().shim())
    })
    .await;
    assert!(!marked(terminal.session).contains(&escaped));
    let ending = tokio::time::timeout(LADDER_MAX + Duration::from_secs(1), terminal.kill());
    ending.await.expect("it takes no longer than it may").unwrap();
    until("not even a zombie is left", || !is_there(&escaped)).await;
    assert_eq!(exit_of(&terminal).await, Exit::Signal(9));
    assert!(is_there(&find(terminal.as_held().shim())), "the shim keeps the exit");
}

#[tokio::test]
async fn a_shim_whose_daemon_went_before_it_noted_anything_ends_with_all_it_started() {
    let mut terminal = Terminal::held_unnoted(ESCAPED);
    let escaped = escaped(&terminal).await;
    let shim = find(terminal.as_held().shim());
    let socket = terminal.socket();
    terminal.leave();
    end(&shim).await;
    until("what it started is gone", || !is_there(&escaped)).await;
    assert_eq!(marked(terminal.session), []);
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_session_that_is_forgotten_leaves_no_process_and_no_socket() {
    let terminal = Terminal::held(ESCAPED, |_| {});
    let escaped = escaped(&terminal).await;
    let shim = find(terminal.as_held().shim());
    let leader = find(terminal.as_held().leader());
    terminal.forget();
    end(&shim).await;
    assert!(!is_there(&escaped) && !is_there(&leader));
    assert_eq!(marked(terminal.session), []);
    assert!(!terminal.socket().exists());
    assert_eq!(exit_of(&terminal).await, Exit::Lost);
}

#[tokio::test]
async fn a_session_is_forgotten_also_by_a_daemon_that_goes_at_once() {
    let mut terminal = Terminal::held("yes", |_| {});
    let shim = find(terminal.as_held().shim());
    terminal.forget();
    terminal.leave();
    end(&shim).await;
    assert!(!terminal.socket().exists());
}

#[tokio::test]
async fn orphans_that_end_do_not_stay_as_zombies() {
    let terminal = Terminal::held(
        "for i in 1 2 3 4 5; do (setsid true &); done; echo ready; sleep 1000",
        |_| {},
    );
    wait_for(&terminal, "ready").await;
    let shim = terminal.as_held().shim();
    until("no zombie is left", || {
        let table = processes::table().unwrap();
        !table.iter().any(|process| process.parent == shim && process.ended)
    })
    .await;
}

#[tokio::test]
async fn a_shim_that_is_killed_ends_the_session_after_all_that_it_had_written() {
    let terminal = Terminal::held("trap '' HUP; printf last; sleep 1000", |_| {});
    wait_for(&terminal, "last").await;
    let leader = find(terminal.as_held().leader());
    ProcessHandle::open(terminal.as_held().shim()).unwrap().signal(9).unwrap();
    assert!(read_to_end(&terminal).await.ends_with("last"));
    assert_eq!(exit_of(&terminal).await, Exit::Lost);
    let refused = terminal.try_write(b"x", Stamp::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    assert!(terminal.evidence().is_err());
    terminal.kill().await.unwrap();
    assert_eq!(marked(terminal.session), []);
    until("the leader is gone", || !is_there(&leader)).await;
    terminal.forget();
    assert!(!terminal.socket().exists(), "what it left is removed");
}

#[tokio::test]
async fn a_shim_that_does_not_answer_is_silent_until_it_does() {
    let mut terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let held = terminal.as_held();
    let shim = ProcessHandle::open(held.shim()).unwrap();
    shim.signal(19).unwrap();
    // Its memory has this, until it goes on.
    assert_eq!(held.try_write(b"kept.", Stamp::default()).unwrap(), 5);
    soon("it to be silent", held.fell_silent()).await;
    let refused = held.try_write(b"never", Stamp::default()).unwrap_err();
    assert_eq!((refused.kind(), held.is_silent()), (ErrorKind::TimedOut, true));

    shim.signal(18).unwrap();
    soon("it to come back", held.returned()).await;
    assert!(!held.is_silent());
    assert_eq!(held.try_write(b"again", Stamp::default()).unwrap(), 5);
    let mut said = Vec::new();
    read_until(held, &mut said, Some("again")).await;
    assert!(String::from_utf8_lossy(&said).ends_with("kept.again"));
    // What is kept from now on is found by the next daemon.
    held.remember(Note::Lease, b"kept");
    held.commit(&TerminalCheckpoint { whole: true, rows: vec![7], ..checkpoint(3) }).unwrap();
    let recovered = terminal.restart();
    assert_eq!(
        (recovered.attached.committed, recovered.notes.get(Note::Lease)),
        (3, b"kept".as_slice())
    );
    assert_eq!(recovered.segments.len(), 1);
}

#[tokio::test]
async fn a_shim_that_stands_still_is_waited_for_by_nobody_who_writes_or_asks() {
    let terminal = Terminal::held("echo ready; sleep 1000", |_| {});
    wait_for(&terminal, "ready").await;
    let shim = ProcessHandle::open(terminal.as_held().shim()).unwrap();
    shim.signal(19).unwrap();
    let since = readiness::now();
    let taken: usize = (0..2_000)
        .map(|_| {
            terminal.ask_output_end().unwrap();
            terminal.try_write(b"x", Stamp::default()).unwrap()
        })
        .sum();
    terminal.resize(termgate::core::frame::Size { rows: 5, cols: 20 }).unwrap();
    let took = readiness::now().saturating_sub(since);
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    // As much waits as there is room for.
    assert!((1..4_096).contains(&taken), "{taken}");
    assert!(terminal.unread().unwrap(), "the program has not read it");
    shim.signal(18).unwrap();
}

#[tokio::test]
async fn a_silent_shim_that_is_killed_is_gone() {
    let terminal = Terminal::held("echo ready; sleep 1000", |_| {});
    wait_for(&terminal, "ready").await;
    let shim = ProcessHandle::open(terminal.as_held().shim()).unwrap();
    shim.signal(19).unwrap();
    fall_silent(terminal.as_held()).await;
    shim.signal(9).unwrap();
    let gone = terminal.as_held().returned();
    soon("its end", gone).await;
    assert_eq!(exit_of(&terminal).await, Exit::Lost);
}

#[tokio::test]
async fn a_shim_shares_nothing_with_the_daemon_that_started_it() {
    let terminal = Terminal::held("sleep 1000", |_| {});
    let shim = find(terminal.as_held().shim());
    let own = find(ProcessId(i32::try_from(std::process::id()).unwrap()));
    assert_ne!((shim.session, shim.group), (own.session, own.group));
    assert_eq!(shim.session, shim.pid);
    let root = format!("/proc/{}", shim.pid);
    assert_eq!(std::fs::read(format!("{root}/environ")).unwrap(), b"");
    assert_eq!(std::fs::read_link(format!("{root}/cwd")).unwrap().to_str(), Some("/"));
    assert_eq!(std::fs::read_dir(format!("{root}/task")).unwrap().count(), 1, "one thread");
    // It answers a moment before it confines itself.
    until("it is confined", || {
        let status = std::fs::read_to_string(format!("{root}/status")).unwrap();
        status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n")
    })
    .await;
    let open = std::fs::read_dir(format!("{root}/fd")).unwrap();
    let open: Vec<String> = open
        .filter_map(|one| std::fs::read_link(one.unwrap().path()).ok())
        .map(|path| path.display().to_string())
        .collect();
    let known = |path: &String| {
        ["/dev/null", "/dev/ptmx", "/dev/pts/", "socket:", "anon_inode:", "/memfd:termgate-output"]
            .iter()
            .any(|known| path.starts_with(known))
    };
    assert!(open.iter().all(known), "{open:?}");
}

#[tokio::test]
async fn a_second_shim_of_one_session_is_refused_and_the_first_goes_on() {
    use termgate::session::pty::command::Launch;

    use crate::shim::harness::{Kind, spec};

    let spec = spec(Launch::Line("echo ready; sleep 1000".to_owned()));
    let first = Terminal::open(Kind::Held, &spec).unwrap();
    let second = Terminal::open_with(Kind::Held, &spec, |options| {
        options.shims = Shims::at(first.directory());
    });
    assert!(second.unwrap_err().to_string().contains("in use"));
    wait_for(&first, "ready").await;
    assert!(first.socket().exists());
}

#[tokio::test]
async fn a_shim_hides_its_memory_and_its_descriptors_from_programs_of_its_user() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use termgate::session::pty::command::Launch;

    use crate::shim::harness::{Kind, spec};

    /// Nobody's number, as root may look at everybody.
    const NOBODY: u32 = 65_534;
    let ground = tempfile::tempdir().unwrap();
    let own = std::fs::metadata(ground.path()).unwrap().uid();
    let line = spec(Launch::Line("echo ready; exec sleep 1000".to_owned()));
    let terminal = Terminal::open_with(Kind::Held, &line, |options| {
        if own != 0 {
            return;
        }
        let open = |path: &std::path::Path| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        };
        let (copy, wrapper) = (ground.path().join("termgate"), ground.path().join("wrapper"));
        std::fs::copy(PROGRAM, &copy).unwrap();
        let user = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups");
        let script =
            format!("#!/bin/sh\nPATH=/usr/bin:/bin exec {user} {} \"$@\"\n", copy.display());
        std::fs::write(&wrapper, script).unwrap();
        [&options.shims.directory, ground.path(), &wrapper].into_iter().for_each(open);
        options.starter = ShimStarter::of(wrapper);
    })
    .unwrap();
    terminal.remember(Note::Identity, b"somebody");
    wait_for(&terminal, "ready").await;
    let shim = terminal.as_held().shim();
    let status = std::fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let user = if own == 0 { NOBODY } else { own };
    assert!(status.contains(&format!("Uid:\t{user}\t")), "{status}");
    // What is hidden belongs to root, and is for its owner only.
    for hidden in ["fd", "mem", "maps"] {
        let path = format!("/proc/{shim}/{hidden}");
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 0, "{path}");
    }
    // Its program hides nothing.
    let leader = format!("/proc/{}/fd", terminal.as_held().leader());
    assert_eq!(std::fs::metadata(leader).unwrap().uid(), user);
    terminal.forget();
    end(&find(shim)).await;
}
