//! Frames arrive whole and in order, and descriptors with the frame they were sent with.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;

use super::*;
use crate::shim::wire::FRAME_MAX;

fn receive_one(socket: &OwnedFd) -> Result<(Vec<u8>, Descriptors), Errno> {
    let mut frame = [0; FRAME_MAX];
    let mut descriptors = Descriptors::default();
    let length = receive(socket.as_fd(), &mut frame, &mut descriptors)?;
    Ok((frame[..length].to_vec(), descriptors))
}

#[test]
fn frames_arrive_whole_and_in_order() {
    let (one, other) = pair().unwrap();
    send(one.as_fd(), b"first", &[]).unwrap();
    send(one.as_fd(), b"second", &[]).unwrap();
    assert_eq!(receive_one(&other).unwrap().0, b"first");
    assert_eq!(receive_one(&other).unwrap().0, b"second");
    assert_eq!(receive_one(&other).unwrap_err(), Errno::EAGAIN);
    drop(one);
    assert_eq!(receive_one(&other).unwrap().0, b"");
}

#[test]
fn as_many_descriptors_as_there_may_be_arrive_in_order() {
    let (one, other) = pair().unwrap();
    let files: Vec<File> = (0..DESCRIPTORS_MAX)
        .map(|number| {
            let mut file = tempfile::tempfile().unwrap();
            write!(file, "{number}").unwrap();
            file.rewind().unwrap();
            file
        })
        .collect();
    let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    send(one.as_fd(), b"files", &borrowed).unwrap();
    let (_, mut descriptors) = receive_one(&other).unwrap();
    for number in 0..DESCRIPTORS_MAX {
        let mut text = String::new();
        File::from(descriptors.take().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, number.to_string());
    }
    assert!(descriptors.take().is_none());
}

#[test]
fn who_does_not_read_makes_nobody_wait() {
    let (one, _other) = pair().unwrap();
    let sent = (0..100_000).find_map(|_| send(one.as_fd(), &[0; 1_000], &[]).err());
    assert_eq!(sent, Some(Errno::EAGAIN));
}

#[test]
fn who_is_gone_is_told_as_such() {
    let (one, other) = pair().unwrap();
    drop(other);
    assert_eq!(send(one.as_fd(), b"x", &[]), Err(Errno::EPIPE));
}

#[test]
fn a_socket_at_a_path_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.sock");
    let listener = listen_at(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(accept(listener.as_fd()).unwrap_err(), Errno::EAGAIN);
    let client = connect_to(&path).unwrap();
    let server = accept(listener.as_fd()).unwrap();
    send(client.as_fd(), b"hello", &[]).unwrap();
    assert_eq!(receive_one(&server).unwrap().0, b"hello");
    drop(listener);
    let refused = connect_to(&path).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn whoever_comes_to_one_that_stands_still_does_not_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.sock");
    let _listener = listen_at(&path).unwrap();
    let waiting: Vec<_> = (0..64).map(|_| connect_to(&path)).collect();
    let refused = waiting.into_iter().find_map(Result::err).expect("not all can wait");
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn whoever_finds_a_socket_at_its_path_finds_somebody_who_listens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.sock");
    let looking = std::thread::spawn({
        let path = path.clone();
        move || {
            loop {
                match connect_to(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    found => return found.map(drop).map_err(|error| error.kind()),
                }
            }
        }
    });
    let _listener = listen_at(&path).unwrap();
    assert_eq!(looking.join().unwrap(), Ok(()));
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn nobody_listens_where_something_is_already() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.sock");
    let _first = listen_at(&path).unwrap();
    assert_eq!(listen_at(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    connect_to(&path).expect("the first one still listens");
}
