//! Programs that live in a session and come to the shim of another one.

use std::fs;
use std::process::{Command, Stdio};

use termgate::session::pty::{Pty, Stamp};

use crate::shim::harness::{Kind, Terminal, read_until, wait_for};

/// Comes to a shim as a daemon would, types into its terminal, and says whether it was answered.
const INTRUDER: &str = "
import mmap, os, socket, struct, sys
shim = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
shim.settimeout(20)
try:
    shim.connect(sys.argv[1])
    shim.send(struct.pack('<HH4sH', 2, 0, b'tghd', 2))
    said, files, _, _ = socket.recv_fds(shim, 65536, 70)
    answered = len(said) > 0
    if answered:
        memory = mmap.mmap(files[2], 36864)
        memory[4096:4144] = struct.pack('<IIQQ16s', 8, 0, 0, 0, b'') + b'intruded'
        memory[64:72] = struct.pack('<Q', 48)
        os.write(files[3], struct.pack('<Q', 1))
except ConnectionError:
    answered = False
print('answered' if answered else 'refused', flush=True)
";

#[tokio::test]
async fn no_program_in_a_session_is_listened_to_by_the_shim_of_any() {
    let victim = Terminal::held("stty raw -echo; echo ready; exec cat", |_| {});
    wait_for(&victim, "ready").await;
    let intruder = victim.directory().join("intruder.py");
    fs::write(&intruder, INTRUDER).unwrap();
    let (intruder, socket) = (intruder.display(), victim.socket());
    let attempt = format!("python3 {intruder} {}", socket.display());
    let ways = [
        format!("exec {attempt}"),
        format!("env -i PATH=/usr/bin:/bin setsid -w {attempt}"),
        format!("(env -i PATH=/usr/bin:/bin setsid {attempt} &); exec sleep 100"),
    ];
    for way in ways {
        let other = Kind::Held.line(&way);
        let mut said = Vec::new();
        read_until(&other, &mut said, Some("ed")).await;
        assert!(String::from_utf8_lossy(&said).contains("refused"), "{way}");
    }
    // Nor of its own.
    let own = Terminal::held("read -r attempt; exec $attempt", |_| {});
    let attempt = format!("python3 {intruder} {}\n", own.socket().display());
    own.try_write(attempt.as_bytes(), Stamp::default()).unwrap();
    wait_for(&own, "refused").await;

    // The one that was there still is.
    assert_eq!(victim.try_write(b"mine", Stamp::default()).unwrap(), 4);
    let mut said = Vec::new();
    read_until(&victim, &mut said, Some("mine")).await;
    assert!(!String::from_utf8_lossy(&said).contains("intruded"));
    // The same words from outside are answered, so it was not the words.
    let mut outside = Command::new("python3");
    outside.arg("-").arg(&socket).stdin(fs::File::open(intruder.to_string()).unwrap());
    let output = outside.stderr(Stdio::inherit()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "answered\n");
}
