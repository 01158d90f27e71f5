//! Programs that outlive their session.

use std::fs;

use crate::daemon::harness::{Era, TestDaemon};
use crate::harness::processes::lives;
use crate::harness::waiting::until;

/// Forks twice as daemons do, and leaves its session and its mark behind. Once `go` is there, says how much it was told.
const DOUBLE_FORKED: &str = r#"
import os, signal, socket, sys, time
operator, go, said, forked = sys.argv[1:]
for sign in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(sign, signal.SIG_IGN)
if os.fork():
    # The session does not end before all is prepared.
    while not os.path.exists(forked):
        time.sleep(0.02)
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
null = os.open("/dev/null", os.O_RDWR)
for descriptor in range(3):
    os.dup2(null, descriptor)
with open(forked + ".part", "w") as file:
    file.write(str(os.getpid()))
os.rename(forked + ".part", forked)
while not os.path.exists(go):
    time.sleep(0.02)
s = socket.socket(socket.AF_UNIX)
s.connect(operator)
try:
    s.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}\n')
    told = len(s.recv(99))
except ConnectionError:
    told = 0
with open(said + ".part", "w") as file:
    file.write("%d bytes" % told)
os.rename(said + ".part", said)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_forked_twice_is_told_nothing_at_the_operators_door_after_its_session() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let script = daemon.file("fork.py");
    fs::write(&script, DOUBLE_FORKED).unwrap();
    let operator = daemon.paths.operator();
    for way in ["", "setsid -w", "env -i PATH=/usr/bin:/bin", "env -i PATH=/usr/bin:/bin setsid -w"]
    {
        let [go, said, forked] = ["go", "said", "forked"].map(|name| daemon.file(name));
        let paths = [&script, &operator, &go, &said, &forked].map(|it| it.display().to_string());
        let session = client.start(&format!("{way} python3 {}", paths.join(" "))).await;
        client.wait_for_exit(&session).await;
        let orphan = fs::read_to_string(&forked).unwrap().parse().unwrap();
        assert!(lives(orphan), "{way}: it ended with its session");
        fs::write(&go, "").unwrap();
        until("it to be turned away", || said.exists()).await;
        assert_eq!(fs::read_to_string(&said).unwrap(), "0 bytes", "{way}");
        [go, said, forked].iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    daemon.stop().await;
}
