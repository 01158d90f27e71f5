//! Clients at real sockets.

use super::*;

use std::io::Write;
use std::os::unix::net;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::sockets::SocketAudience;
use crate::transport::unix::lock::DaemonLock;

fn us() -> ProcessId {
    ProcessId(std::process::id().cast_signed())
}

fn listener(path: &Path) -> Listener {
    let lock = DaemonLock::take(&path.with_file_name("daemon.lock")).unwrap();
    Listener::bind(path, SocketAudience::Owner, &lock).unwrap()
}

#[tokio::test]
async fn who_has_hung_up_is_nobodys_affair_and_everybody_else_comes_in() {
    const GONE: usize = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.sock");
    let listener = listener(&path);
    let connect = || net::UnixStream::connect(&path).unwrap();
    for _ in 0..GONE {
        // What they said nobody is left to be answered.
        connect().write_all(b"x").unwrap();
    }
    let mut clients: Vec<_> = (0..3).map(|_| connect()).collect();
    let (arrive, mut arrived) = mpsc::channel(GONE);
    let reception = Reception::new(us());
    let arrive = move |arrival| arrive.try_send(arrival).unwrap();
    let open = reception.open(listener, arrive).await.unwrap();
    for client in &mut clients {
        let Arrival { link, peer } = arrived.recv().await.unwrap();
        assert_eq!((peer.pid, peer.place), (Some(us().0), Place::Outside));
        client.write_all(b"y").unwrap();
        let mut reader = link.reader;
        assert_eq!(tokio::io::AsyncReadExt::read_u8(&mut reader).await.unwrap(), b'y');
    }
    open.close().await;
    assert!(!path.exists());
    assert!(arrived.recv().await.is_none(), "nobody else came in");
}

#[tokio::test]
async fn a_failure_that_one_client_causes_keeps_no_other_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.sock");
    let listener = listener(&path);
    let (arrive, mut arrived) = mpsc::channel(1);
    let mut clients: Vec<_> = (0..2).map(|_| net::UnixStream::connect(&path).unwrap()).collect();
    let failed = AtomicBool::new(false);
    let admit = move |arrival| {
        assert!(failed.swap(true, Ordering::Relaxed), "as if");
        arrive.try_send(arrival).unwrap();
    };
    let reception = Reception::new(us());
    let open = reception.open(listener, admit).await.unwrap();
    let Arrival { link, .. } = arrived.recv().await.unwrap();
    clients[1].write_all(b"y").unwrap();
    let mut reader = link.reader;
    assert_eq!(tokio::io::AsyncReadExt::read_u8(&mut reader).await.unwrap(), b'y');
    open.close().await;
}

#[tokio::test]
async fn a_door_that_is_dropped_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.sock");
    let (open_until, mut closed) = mpsc::channel::<()>(1);
    let reception = Reception::new(us());
    let admit = move |_| assert!(!open_until.is_closed());
    drop(reception.open(listener(&path), admit).await.unwrap());
    assert_eq!(closed.recv().await, None);
}

#[tokio::test]
async fn who_was_found_inside_is_known_again() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let place = Place::Inside { shim: Some(7) };
    let started = ProcessStat::find(us().0).unwrap().started;
    let mut insiders = Insiders::of(us());
    let leader = getsid(None).unwrap().as_raw();
    assert_eq!(insiders.source_of(&ours), Some(Source::Leader(leader)));
    insiders.known.insert(us().0, (started, place));
    assert_eq!(insiders.source_of(&ours), Some(Source::Session(7)));
    assert_eq!(insiders.look(&ours).unwrap().place, place);
    // Of another process with that number nothing is known.
    insiders.known.insert(us().0, (started + 1, place));
    assert_eq!(insiders.look(&ours).unwrap().place, Place::Outside);
    assert!(insiders.known.is_empty());
}

#[test]
fn who_is_outside_waits_for_one_client_of_those_inside_however_many_they_are() {
    let mut queues = Queues::of(300);
    for session in 0..300 {
        assert_eq!(queues.push(Source::Marked(session), "inside"), None);
    }
    assert_eq!(queues.push(Source::Leader(7), "outside"), None);
    assert_eq!([queues.pop(), queues.pop()], [Some("inside"), Some("outside")]);
    // Those outside lose nobody to those inside, who share their own room.
    assert_eq!(queues.push(Source::Marked(1), "inside"), None);
    assert!(queues.push(Source::Session(2), "inside").is_some_and(Source::is_inside));
    assert_eq!(queues.count(), 300);
}
