//! Two daemons at one terminal: the one that came last is listened to, the other does no harm.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use termgate::core::frame::Exit;
use termgate::session::pty::command::Launch;
use termgate::session::pty::held::HeldPty;
use termgate::session::pty::held::shims::Shims;
use termgate::session::pty::kill::KillError;
use termgate::session::pty::signal::Signal;
use termgate::session::pty::spawn::SpawnError;
use termgate::session::pty::{Note, Pty, Stamp};
use termgate::shim::socket::unfinished;

use crate::harness::waiting::{soon, until};
use crate::shim::harness::{
    Kind, Terminal, all_read, checkpoint, exit_of, fall_silent, read_to_end, read_until, spec,
    wait_for,
};

#[tokio::test]
async fn whoever_comes_last_is_listened_to_and_no_other() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let (second, recovered) = terminal.attach();
    assert_eq!(recovered.attached.generation, 2);
    let refused = terminal.try_write(b"former", Stamp::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    terminal.remember(Note::Lease, b"former");
    assert!(terminal.commit(&checkpoint(3)).is_err());
    assert!(terminal.resize(termgate::core::frame::Size { rows: 1, cols: 1 }).is_err());
    assert_eq!(second.try_write(b"latter", Stamp::default()).unwrap(), 6);
    let mut output = Vec::new();
    read_until(&second, &mut output, Some("latter")).await;
    assert!(output.ends_with(b"ready\r\nlatter") || output.ends_with(b"ready\nlatter"));
    drop(second);
    let (_third, recovered) = terminal.attach();
    assert_eq!((recovered.attached.committed, recovered.size().rows), (0, 24));
    assert_eq!(recovered.notes.get(Note::Lease), b"");
}

#[tokio::test]
async fn what_a_superseded_daemon_said_and_wrote_before_still_counts_and_nothing_after() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let shim = termgate::session::pty::processes::ProcessHandle::open(terminal.as_held().shim());
    let shim = shim.unwrap();
    let stopped = |is: bool| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.as_held().shim()));
        stat.unwrap().contains(") T ") == is
    };
    // While the shim stands still, the former daemon speaks and then the latter comes.
    shim.signal(19).unwrap();
    until("the shim stops", || stopped(true)).await;
    for _ in 0..3 {
        terminal.remember(Note::Lease, b"former");
    }
    assert_eq!(terminal.try_write(b"before.", Stamp::default()).unwrap(), 7);
    let directory = terminal.directory().to_owned();
    let session = terminal.session;
    let runtime = tokio::runtime::Handle::current();
    let attaching = tokio::task::spawn_blocking(move || {
        let _runtime = runtime.enter();
        HeldPty::attach(&Shims::at(directory), session)
    });
    until("the latter has connected", || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        // The kernel knows it by the name that it had first.
        let path = unfinished(&terminal.socket()).display().to_string();
        sockets.lines().filter(|line| line.ends_with(&path)).count() > 1
    })
    .await;
    shim.signal(18).unwrap();
    let (second, recovered) = attaching.await.unwrap().unwrap();
    assert_eq!(recovered.notes.get(Note::Lease), b"former");
    assert!(terminal.try_write(b"after.", Stamp::default()).is_err());
    assert_eq!(second.try_write(b"latter", Stamp::default()).unwrap(), 6);
    let mut output = Vec::new();
    read_until(&second, &mut output, Some("latter")).await;
    assert!(String::from_utf8_lossy(&output).ends_with("before.latter"));
}

#[tokio::test]
async fn a_daemon_whose_place_another_took_does_not_come_again_to_a_shim_that_was_silent() {
    let ours = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(AtomicUsize::new(0));
    let place = (Arc::clone(&ours), Arc::clone(&asked));
    let first = Terminal::held("stty raw -echo; echo ready; exec cat", |options| {
        let directory = options.shims.directory.clone();
        options.shims = Shims::claimed(directory, move || {
            place.1.fetch_add(1, Ordering::SeqCst);
            place.0.load(Ordering::SeqCst)
        });
    });
    wait_for(&first, "ready").await;
    let shim =
        termgate::session::pty::processes::ProcessHandle::open(first.as_held().shim()).unwrap();
    shim.signal(19).unwrap();
    // The shim answers nobody until this gives up.
    fall_silent(first.as_held()).await;
    let unheard = first.try_write(b"former", Stamp::default()).unwrap_err();
    assert_eq!(unheard.kind(), ErrorKind::TimedOut);
    ours.store(false, Ordering::SeqCst);
    shim.signal(18).unwrap();
    let (second, _) = first.attach();
    let before = asked.load(Ordering::SeqCst);
    // The lock says whose the place is, and ends this daemon: it asked nobody, and a shim that it could not
    // hear says nothing.
    tokio::select! {
        () = first.as_held().returned() => panic!("it came again"),
        () = until("it would have come", || asked.load(Ordering::SeqCst) > before + 1) => {}
    }
    assert!(first.as_held().is_silent());
    assert_eq!(second.try_write(b"latter", Stamp::default()).unwrap(), 6);
    let mut output = Vec::new();
    read_until(&second, &mut output, Some("latter")).await;
}

#[tokio::test]
async fn a_daemon_whose_place_another_took_starts_no_shim() {
    let spec = spec(Launch::Line("echo never".to_owned()));
    let refused = Terminal::open_with(Kind::Held, &spec, |options| {
        let directory = options.shims.directory.clone();
        options.shims = Shims::claimed(directory, || false);
    });
    assert!(matches!(refused, Err(SpawnError::Superseded)));
}

#[tokio::test]
async fn a_superseded_daemon_reads_on_without_harm_and_finds_the_end() {
    let terminal = Terminal::held("echo ready; read -r word; echo got:$word", |_| {});
    wait_for(&terminal, "ready").await;
    let (second, _) = terminal.attach();
    second.try_write(b"x\r", Stamp::default()).unwrap();
    assert!(read_to_end(&second).await.contains("got:x"));
    // It only knows that nobody speaks with it any more.
    assert!(read_to_end(&terminal).await.contains("ready"));
    assert_eq!(exit_of(&terminal).await, Exit::Lost);
}

#[tokio::test]
async fn a_superseded_daemon_cannot_end_the_session() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let (second, _) = terminal.attach();
    terminal.forget();
    assert!(terminal.socket().exists());
    assert_eq!(second.try_write(b"x", Stamp::default()).unwrap(), 1);
}

#[tokio::test]
async fn a_superseded_daemon_that_ends_turns_away_nobody_who_comes() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let (second, _) = terminal.attach();
    let third = termgate::shim::socket::connect_to(&terminal.socket()).unwrap();
    terminal.forget();
    // By the second answer the shim has let in whoever had come by then.
    for _ in 0..2 {
        all_read(&second, 0).await.unwrap();
    }
    let attach: &[u8] = b"\x02\0\0\0tghd\x02\0";
    termgate::shim::socket::send(std::os::fd::AsFd::as_fd(&third), attach, &[]).unwrap();
    until("the third is listened to", || {
        second
            .try_write(b"x", Stamp::default())
            .is_err_and(|error| error.kind() == ErrorKind::TimedOut)
    })
    .await;
}

#[tokio::test]
async fn a_daemon_that_was_hung_up_on_and_has_its_place_comes_again() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    let held = terminal.as_held();
    let mut output = Vec::new();
    read_until(held, &mut output, Some("ready\n")).await;
    let offset = output.len() as u64;
    let stranger = termgate::shim::socket::connect_to(&terminal.socket()).unwrap();
    let attach: &[u8] = b"\x02\0\0\0tghd\x02\0";
    termgate::shim::socket::send(std::os::fd::AsFd::as_fd(&stranger), attach, &[]).unwrap();
    // The connection is lost, and nobody else has the place of this daemon.
    tokio::select! {
        () = held.fell_silent() => {}
        read = held.read(offset, &mut output) => panic!("{read:?}"),
    }
    assert!(!held.is_superseded());
    let refused = held.try_write(b"never", Stamp::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut);
    soon("it to come back", held.returned()).await;
    assert_eq!(held.try_write(b"again", Stamp::default()).unwrap(), 5);
    let mut said = Vec::new();
    read_until(held, &mut said, Some("again")).await;
    assert!(!String::from_utf8_lossy(&said).contains("never"));
}

#[tokio::test]
async fn a_superseded_daemon_can_neither_signal_nor_kill() {
    let terminal = Terminal::held("trap 'exit 5' USR1; echo ready; sleep 1000 & wait", |_| {});
    wait_for(&terminal, "ready").await;
    let (second, _) = terminal.attach();
    // It has not even heard yet that another came.
    assert_eq!(terminal.signal(Signal::User1).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(matches!(terminal.kill().await, Err(KillError::NotOurs)));
    second.signal(Signal::User1).unwrap();
    assert_eq!(exit_of(&second).await, Exit::Code(5));
}

#[tokio::test]
async fn somebody_who_connects_and_says_nothing_supersedes_nobody() {
    let terminal = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&terminal, "ready").await;
    let idle = termgate::shim::socket::connect_to(&terminal.socket()).unwrap();
    assert_eq!(terminal.try_write(b"x", Stamp::default()).unwrap(), 1);
    let stranger = termgate::shim::socket::connect_to(&terminal.socket()).unwrap();
    let noise: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    termgate::shim::socket::send(std::os::fd::AsFd::as_fd(&stranger), noise, &[]).unwrap();
    assert_eq!(terminal.try_write(b"x", Stamp::default()).unwrap(), 1);
    drop(idle);
    let (second, recovered) = terminal.attach();
    assert_eq!(recovered.attached.generation, 2);
    assert_eq!(second.try_write(b"x", Stamp::default()).unwrap(), 1);
}
