//! What reaches a service manager's socket, and whom it is meant for.

use super::*;

use std::collections::BTreeMap;

use tempfile::TempDir;

type Variables = BTreeMap<&'static str, OsString>;

fn find(variables: &Variables) -> Notifier {
    Notifier::find(|name| variables.get(name))
}

fn manager() -> (TempDir, net::UnixDatagram, Variables) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = net::UnixDatagram::bind(&path).unwrap();
    (directory, socket, Variables::from([("NOTIFY_SOCKET", path.into())]))
}

fn heard(socket: &net::UnixDatagram) -> String {
    let mut message = [0; 256];
    let length = socket.recv(&mut message).unwrap();
    String::from_utf8_lossy(&message[..length]).into_owned()
}

#[tokio::test]
async fn news_are_told_in_the_words_of_systemd() {
    let (_directory, socket, variables) = manager();
    let notifier = find(&variables);
    assert!(notifier.is_heard());
    for (news, words) in [
        (News::Ready, "READY=1"),
        (News::Stopping, "STOPPING=1"),
        (News::Alive, "WATCHDOG=1"),
        (News::Status("2 sessions"), "STATUS=2 sessions"),
    ] {
        notifier.tell(news).await;
        assert_eq!(heard(&socket), words);
    }
}

#[tokio::test]
async fn a_reload_is_told_with_the_time_at_which_it_began() {
    let (_directory, socket, variables) = manager();
    let notifier = find(&variables);
    let mut told = 0;
    for _ in 0..2 {
        notifier.tell(News::Reloading).await;
        let heard = heard(&socket);
        let time = heard.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("both in one message");
        let time: u64 = time.parse().expect("whole microseconds");
        assert!(time > told, "{time} is not after {told}");
        told = time;
    }
}

#[tokio::test]
async fn a_manager_may_listen_at_a_name_of_the_kernel() {
    let name = format!("termgate-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = net::UnixDatagram::bind_addr(&address).unwrap();
    let notifier = find(&Variables::from([("NOTIFY_SOCKET", format!("@{name}").into())]));
    notifier.tell(News::Ready).await;
    assert_eq!(heard(&socket), "READY=1");
}

#[tokio::test]
async fn a_daemon_without_a_manager_tells_nobody() {
    let (directory, socket, _) = manager();
    drop(socket);
    let gone = directory.path().join("notify").into();
    for variables in [
        Variables::new(),
        Variables::from([("NOTIFY_SOCKET", OsString::new())]),
        Variables::from([("NOTIFY_SOCKET", gone)]),
    ] {
        let notifier = find(&variables);
        assert!(!notifier.is_heard());
        notifier.tell(News::Ready).await;
    }
}

#[tokio::test]
async fn the_watchdog_is_ours_unless_it_names_another_process() {
    let (_directory, _socket, mut variables) = manager();
    assert_eq!(find(&variables).watchdog(), None);
    variables.insert("WATCHDOG_USEC", "30000000".into());
    assert_eq!(find(&variables).watchdog(), Some(Duration::from_secs(30)));
    variables.insert("WATCHDOG_PID", std::process::id().to_string().into());
    assert_eq!(find(&variables).watchdog(), Some(Duration::from_secs(30)));
    variables.insert("WATCHDOG_PID", "1".into());
    assert_eq!(find(&variables).watchdog(), None);
    variables.remove("WATCHDOG_PID");
    for time in ["0", "", "soon", "-1"] {
        variables.insert("WATCHDOG_USEC", time.into());
        assert_eq!(find(&variables).watchdog(), None, "{time}");
    }
}

#[tokio::test]
async fn the_way_to_the_manager_is_kept_from_the_start() {
    let (_directory, socket, variables) = manager();
    let notifier = find(&variables);
    std::fs::remove_file(variables["NOTIFY_SOCKET"].clone()).unwrap();
    notifier.tell(News::Alive).await;
    assert_eq!(heard(&socket), "WATCHDOG=1");
}

fn has_news(socket: &net::UnixDatagram) -> bool {
    socket.set_nonblocking(true).unwrap();
    socket.recv(&mut [0; 64]).is_ok()
}

#[tokio::test]
async fn the_watchdog_is_notified_until_a_task_has_ended() {
    let (_directory, socket, mut variables) = manager();
    variables.insert("WATCHDOG_USEC", "2000".into());
    let task = tokio::spawn(std::future::pending::<()>());
    let notifier = Arc::new(find(&variables));
    let mut alive = Box::pin(keep_alive(notifier, vec![task.abort_handle()]));
    for _ in 0..3 {
        while !has_news(&socket) {
            tokio::select! {
                () = &mut alive => panic!("it gave up"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    alive.await;
}
