//! Real programs in real terminals; each test waits for a condition.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::{ClientEnvironment, Environment, clean_environment};
use crate::session::pty::processes::{Process, ProcessHandle};
use crate::session::pty::reaper::become_subreaper;

const PATIENCE: Duration = Duration::from_secs(30);
const SIZE: Size = Size { rows: 24, cols: 80 };

fn a_session() -> SessionId {
    SessionId::from_random(uuid::Uuid::new_v4())
}

fn environment() -> Environment {
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let base = Environment::from([path, ("SHELL".into(), "/bin/bash".into())]);
    clean_environment(&base, &ClientEnvironment::default(), &BTreeMap::new()).unwrap()
}

fn spec(launch: Launch) -> SpawnSpec {
    SpawnSpec::resolve(launch, a_session(), PathBuf::from("/"), environment(), SIZE).unwrap()
}

fn line(line: &str) -> OwnPty {
    OwnPty::open(&spec(Launch::Line(line.to_owned()))).unwrap()
}

fn program(name: &str, args: &[&str]) -> OwnPty {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    OwnPty::open(&spec(Launch::Program { name: name.to_owned(), args })).unwrap()
}

/// Reads on until the output holds `text`, or to its end when there is none to wait for.
async fn read_until(pty: &OwnPty, output: &mut Vec<u8>, text: Option<&str>) {
    let reading = async {
        while !text.is_some_and(|text| String::from_utf8_lossy(output).contains(text)) {
            match pty.read(output.len() as u64, output).await.unwrap() {
                Output::Bytes(_) => {}
                Output::End => {
                    assert_eq!(text, None, "output ended: {}", String::from_utf8_lossy(output));
                    return;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the output comes");
}

async fn read_to_end(pty: &OwnPty) -> String {
    let mut output = Vec::new();
    read_until(pty, &mut output, None).await;
    String::from_utf8(output).unwrap()
}

async fn wait_for(pty: &OwnPty, text: &str) {
    read_until(pty, &mut Vec::new(), Some(text)).await;
}

async fn exit_of(pty: &OwnPty) -> Exit {
    tokio::time::timeout(PATIENCE, pty.exited()).await.expect("the program ends")
}

async fn end(process: &Process) {
    // Who cannot be opened has ended already.
    if let Ok(handle) = process.open() {
        let handle = crate::session::pty::watch::watch(handle, Interest::READABLE).unwrap();
        let ended = tokio::time::timeout(PATIENCE, handle.readable()).await;
        ended.expect("the process ends").unwrap().retain_ready();
    }
}

fn marked(session: SessionId) -> Vec<Process> {
    let entry = format!("TERMGATE_SESSION={session}");
    let table = processes::table().unwrap();
    table.iter().filter(|one| !one.ended && one.has_variable(&entry)).copied().collect()
}

#[tokio::test]
async fn a_program_is_read_to_its_end_and_its_code_is_told() {
    let pty = line("printf 'one\\ntwo\\n'; exit 7");
    assert_eq!(read_to_end(&pty).await, "one\r\ntwo\r\n");
    assert!(pty.slave.lock().unwrap().is_none(), "the other end is let go");
    assert_eq!(exit_of(&pty).await, Exit::Code(7));
}

#[tokio::test]
async fn the_end_and_the_exit_are_the_same_every_time() {
    let pty = line("exit 3");
    read_to_end(&pty).await;
    let mut more = Vec::new();
    assert_eq!(pty.read(0, &mut more).await.unwrap(), Output::End);
    assert_eq!(exit_of(&pty).await, Exit::Code(3));
    assert_eq!(exit_of(&pty).await, Exit::Code(3));
}

#[tokio::test]
async fn an_exit_by_a_signal_is_told_as_one() {
    assert_eq!(exit_of(&line("kill -9 $$")).await, Exit::Signal(9));
}

#[tokio::test]
async fn an_exit_by_a_real_time_signal_is_told_as_one() {
    assert_eq!(exit_of(&line("kill -40 $$")).await, Exit::Signal(40));
}

#[tokio::test]
async fn output_larger_than_one_read_comes_whole() {
    let pty = program("head", &["-c", "1000000", "/dev/zero"]);
    let output = read_to_end(&pty).await;
    assert_eq!(output.len(), 1_000_000);
}

#[tokio::test]
async fn an_offset_that_is_not_the_next_is_refused() {
    let pty = line("exit 0");
    let refused = pty.read(5, &mut Vec::new()).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn output_ends_though_a_background_process_keeps_the_terminal() {
    let pty = line("trap '' HUP; sleep 1000 & echo kept; exit 4");
    assert_eq!(read_to_end(&pty).await, "kept\r\n");
    assert_eq!(exit_of(&pty).await, Exit::Code(4));
    assert_eq!(marked(pty.session).len(), 1);
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn output_ends_though_a_background_process_writes_without_a_pause() {
    let pty = line("trap '' HUP; yes & exit 0");
    read_to_end(&pty).await;
    assert_eq!(exit_of(&pty).await, Exit::Code(0));
    pty.kill().await.unwrap();
    assert_eq!(marked(pty.session), []);
}

#[tokio::test]
async fn a_program_that_closes_its_streams_and_opens_the_terminal_again_is_heard() {
    let pty = line("exec <&- >&- 2>&-; exec >/dev/tty; echo again");
    assert_eq!(read_to_end(&pty).await, "again\r\n");
}

#[tokio::test]
async fn a_program_gets_no_descriptor_but_its_streams() {
    let inheritable = nix::unistd::dup(std::io::stdin()).unwrap();
    let listed = read_to_end(&program("ls", &["/proc/self/fd"])).await;
    // The fourth is the directory that is being listed.
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    drop(inheritable);
}

#[tokio::test]
async fn a_program_starts_without_blocked_or_ignored_signals() {
    let status = read_to_end(&program("grep", &["-E", "^Sig(Blk|Ign)", "/proc/self/status"])).await;
    assert_eq!(status, "SigBlk:\t0000000000000000\r\nSigIgn:\t0000000000000000\r\n");
}

#[tokio::test]
async fn a_program_sees_the_given_environment_and_the_mark_of_its_session() {
    let spec = spec(Launch::Program { name: "env".to_owned(), args: Vec::new() });
    let pty = OwnPty::open(&spec).unwrap();
    let mut expected: Vec<String> = spec
        .environment
        .iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    expected.push(format!("TERMGATE_SESSION={}", spec.session));
    expected.sort();
    let output = read_to_end(&pty).await;
    let mut seen: Vec<&str> = output.lines().collect();
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_program_finds_the_terminal_in_its_size_with_utf_8_input() {
    let output = read_to_end(&line("stty size; stty -a | grep -o '[-]*iutf8'")).await;
    assert_eq!(output, "24 80\r\niutf8\r\n");
}

#[tokio::test]
async fn a_resize_reaches_the_program() {
    let pty = line("trap 'stty size; exit' WINCH; echo ready; sleep 1000 & wait");
    let mut output = Vec::new();
    read_until(&pty, &mut output, Some("ready")).await;
    pty.resize(Size { rows: 30, cols: 100 }).unwrap();
    read_until(&pty, &mut output, Some("30 100")).await;
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn input_reaches_the_program() {
    let pty = line("read -r word; echo got:$word");
    assert_eq!(pty.try_write(b"hello\r", Stamp::default()).unwrap(), 6);
    assert!(read_to_end(&pty).await.ends_with("got:hello\r\n"));
}

#[tokio::test]
async fn a_stuck_program_takes_nothing_until_it_reads() {
    let pty =
        line("stty raw -echo; trap 'exec cat >/dev/null' USR1; echo ready; sleep 1000 & wait");
    wait_for(&pty, "ready").await;
    while pty.try_write(&[b'x'; 4_096], Stamp::default()).unwrap() > 0 {}
    pty.signal(Signal::User1).unwrap();
    let taken = async {
        loop {
            pty.writable().await.unwrap();
            match pty.try_write(b"x", Stamp::default()).unwrap() {
                0 => {}
                taken => return taken,
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, taken).await, Ok(1));
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_ended_takes_no_input() {
    let pty = line("exit 0");
    exit_of(&pty).await;
    assert_eq!(
        pty.try_write(b"x", Stamp::default()).unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
}

#[tokio::test]
async fn a_signal_reaches_the_foreground_group() {
    let pty = line("trap 'exit 5' USR1; echo ready; sleep 1000 & wait");
    wait_for(&pty, "ready").await;
    pty.signal(Signal::User1).unwrap();
    assert_eq!(exit_of(&pty).await, Exit::Code(5));
}

#[tokio::test]
async fn a_signal_to_nobody_is_not_found() {
    let pty = line("exit 0");
    read_to_end(&pty).await;
    assert_eq!(pty.signal(Signal::User1).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_question_with_echo_off_is_a_secret_prompt() {
    let pty = line("stty -echo; echo ready; read -r secret");
    wait_for(&pty, "ready").await;
    let evidence = pty.evidence().unwrap();
    assert!(evidence.secret_prompt());
    assert!(evidence.leader_in_front());
    assert_eq!(evidence.leader, pty.child.pid());
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_wants_keys_has_canonical_mode_off() {
    let pty = line("stty -icanon; echo ready; read -r key");
    wait_for(&pty, "ready").await;
    let evidence = pty.evidence().unwrap();
    assert!(!evidence.canonical);
    assert!(evidence.echo);
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn a_command_of_an_interactive_shell_is_in_front_of_it() {
    let pty = line("set -m; bash -c 'echo ready; read -r word'; true");
    wait_for(&pty, "ready").await;
    assert!(!pty.evidence().unwrap().leader_in_front());
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_cannot_be_started_leaves_nothing_behind() {
    let mut spec = spec(Launch::Shell);
    spec.program = PathBuf::from("/nonexistent/program");
    let refused = OwnPty::open(&spec).unwrap_err();
    assert!(matches!(refused, SpawnError::Program { .. }), "{refused}");
    // This thread forked, and the kernel lists the children of each thread.
    assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
}

#[tokio::test]
async fn dropping_the_terminal_hangs_up_on_the_program() {
    let pty = line("echo ready; read -r word");
    wait_for(&pty, "ready").await;
    let leader = Process::find(pty.child.pid()).unwrap();
    drop(pty);
    end(&leader).await;
}

#[tokio::test]
async fn kill_ends_a_shell_at_its_prompt() {
    let pty = OwnPty::open(&spec(Launch::Shell)).unwrap();
    let mut output = Vec::new();
    assert!(matches!(pty.read(0, &mut output).await.unwrap(), Output::Bytes(_)));
    pty.kill().await.unwrap();
    assert_eq!(exit_of(&pty).await, Exit::Signal(libc::SIGHUP));
}

#[tokio::test]
async fn kill_leaves_nobody_who_ignores_it_left_the_session_and_was_orphaned() {
    become_subreaper().unwrap();
    let pty = line(
        "trap '' HUP TERM; (setsid bash -c 'sleep 1000 & echo escaped; sleep 1001' &); \
         sleep 1002 & echo kept; wait",
    );
    let mut output = Vec::new();
    read_until(&pty, &mut output, Some("escaped")).await;
    read_until(&pty, &mut output, Some("kept")).await;
    let everybody = marked(pty.session);
    assert!(everybody.iter().any(|one| one.session != pty.child.pid()), "{everybody:?}");

    pty.kill().await.unwrap();

    assert_eq!(exit_of(&pty).await, Exit::Signal(libc::SIGKILL));
    assert_eq!(marked(pty.session), []);
    for process in everybody {
        let found = Process::find(process.pid).filter(|found| found.started == process.started);
        assert_eq!(found, None, "not even a zombie");
    }
}

#[tokio::test]
async fn kill_ends_a_stopped_program() {
    let pty = line("echo ready; kill -STOP $$");
    wait_for(&pty, "ready").await;
    pty.kill().await.unwrap();
    assert_eq!(exit_of(&pty).await, Exit::Signal(libc::SIGHUP));
}

#[tokio::test]
async fn kill_may_be_asked_for_again() {
    let pty = line("read -r word");
    pty.kill().await.unwrap();
    pty.kill().await.unwrap();
}

#[tokio::test]
async fn a_handle_of_a_waited_for_child_is_not_found() {
    let pty = line("exit 0");
    let child = ProcessHandle::open(pty.child.pid()).unwrap();
    exit_of(&pty).await;
    assert_eq!(child.signal(libc::SIGTERM).unwrap_err().kind(), io::ErrorKind::NotFound);
}
