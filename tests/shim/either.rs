//! What a terminal does, whoever has it.

use std::fs;
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use termgate::core::frame::{Exit, Size};
use termgate::session::pty::command::Launch;
use termgate::session::pty::reaper::become_subreaper;
use termgate::session::pty::signal::Signal;
use termgate::session::pty::spawn::SpawnError;
use termgate::session::pty::{Pty, ReadOutput, Stamp};

use crate::harness::waiting::{soon, until};
use crate::shim::harness::{
    Kind, Terminal, all_read, exit_of, is_there, marked, read_to_end, read_until, spec, wait_for,
};

const SIGKILL: i32 = 9;
const SIGHUP: i32 = 1;

#[tokio::test]
async fn a_program_is_read_to_its_end_and_its_code_is_told() {
    for kind in Kind::BOTH {
        let pty = kind.line("printf 'one\\ntwo\\n'; exit 7");
        assert_eq!(read_to_end(&pty).await, "one\r\ntwo\r\n");
        assert_eq!(exit_of(&pty).await, Exit::Code(7));
    }
}

#[tokio::test]
async fn the_end_and_the_exit_are_the_same_every_time() {
    for kind in Kind::BOTH {
        let pty = kind.line("exit 3");
        read_to_end(&pty).await;
        let mut more = Vec::new();
        assert_eq!(pty.read(0, &mut more).await.unwrap(), ReadOutput::End);
        assert_eq!(exit_of(&pty).await, Exit::Code(3));
        assert_eq!(exit_of(&pty).await, Exit::Code(3));
    }
}

#[tokio::test]
async fn an_exit_by_a_signal_is_told_as_one() {
    for kind in Kind::BOTH {
        assert_eq!(exit_of(&kind.line("kill -9 $$")).await, Exit::Signal(9));
    }
}

#[tokio::test]
async fn an_exit_by_a_real_time_signal_is_told_as_one() {
    for kind in Kind::BOTH {
        assert_eq!(exit_of(&kind.line("kill -40 $$")).await, Exit::Signal(40));
    }
}

#[tokio::test]
async fn output_larger_than_one_read_comes_whole() {
    for kind in Kind::BOTH {
        let pty = kind.program("head", &["-c", "1000000", "/dev/zero"]);
        let output = read_to_end(&pty).await;
        assert_eq!(output.len(), 1_000_000);
    }
}

#[tokio::test]
async fn an_offset_that_is_not_the_next_is_refused() {
    for kind in Kind::BOTH {
        let pty = kind.line("exit 0");
        let refused = pty.read(5, &mut Vec::new()).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn output_ends_though_a_background_process_keeps_the_terminal() {
    for kind in Kind::BOTH {
        let pty = kind.line("trap '' HUP; sleep 1000 & echo kept; exit 4");
        assert_eq!(read_to_end(&pty).await, "kept\r\n");
        assert_eq!(exit_of(&pty).await, Exit::Code(4));
        assert_eq!(marked(pty.session).len(), 1);
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn output_ends_though_a_background_process_writes_without_a_pause() {
    for kind in Kind::BOTH {
        let pty = kind.line("trap '' HUP; yes & exit 0");
        read_to_end(&pty).await;
        assert_eq!(exit_of(&pty).await, Exit::Code(0));
        pty.kill().await.unwrap();
        assert_eq!(marked(pty.session), []);
    }
}

#[tokio::test]
async fn a_program_that_closes_its_streams_and_opens_the_terminal_again_is_heard() {
    for kind in Kind::BOTH {
        let pty = kind.line("exec <&- >&- 2>&-; exec >/dev/tty; echo again");
        assert_eq!(read_to_end(&pty).await, "again\r\n");
    }
}

#[tokio::test]
async fn a_program_gets_no_descriptor_but_its_streams() {
    for kind in Kind::BOTH {
        let inheritable = nix::unistd::dup(std::io::stdin()).unwrap();
        let listed = read_to_end(&kind.program("ls", &["/proc/self/fd"])).await;
        // The fourth is the directory that is being listed.
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
        drop(inheritable);
    }
}

#[tokio::test]
async fn a_program_starts_without_blocked_or_ignored_signals() {
    for kind in Kind::BOTH {
        let status =
            read_to_end(&kind.program("grep", &["-E", "^Sig(Blk|Ign)", "/proc/self/status"])).await;
        assert_eq!(status, "SigBlk:\t0000000000000000\r\nSigIgn:\t0000000000000000\r\n");
    }
}

#[tokio::test]
async fn a_program_sees_the_given_environment_and_the_mark_of_its_session() {
    for kind in Kind::BOTH {
        let spec = spec(Launch::Program { name: "env".to_owned(), args: Vec::new() });
        let pty = Terminal::open(kind, &spec).unwrap();
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
}

#[tokio::test]
async fn a_program_finds_the_terminal_in_its_size_with_utf_8_input() {
    for kind in Kind::BOTH {
        let output = read_to_end(&kind.line("stty size; stty -a | grep -o '[-]*iutf8'")).await;
        assert_eq!(output, "24 80\r\niutf8\r\n");
    }
}

#[tokio::test]
async fn a_resize_reaches_the_program() {
    for kind in Kind::BOTH {
        let pty = kind.line("trap 'stty size; exit' WINCH; echo ready; sleep 1000 & wait");
        let mut output = Vec::new();
        read_until(&pty, &mut output, Some("ready")).await;
        pty.resize(Size { rows: 30, cols: 100 }).unwrap();
        read_until(&pty, &mut output, Some("30 100")).await;
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn output_that_was_written_is_known_to_be_on_its_way_until_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let written = directory.path().join("written");
    mkfifo(&written, Mode::S_IRWXU).unwrap();
    let program =
        format!("stty -echo; while :; do printf x; : > {}; read -r line; done", written.display());
    for kind in Kind::BOTH {
        let pty = kind.line(&program);
        for offset in 0..100 {
            // It comes to its end once the program has written.
            fs::read(&written).unwrap();
            assert!(!all_read(&pty, offset).await.unwrap(), "{kind:?} after {offset}");
            let mut output = Vec::new();
            assert_eq!(pty.read(offset, &mut output).await.unwrap(), ReadOutput::Bytes(1));
            assert!(all_read(&pty, offset + 1).await.unwrap(), "{kind:?} after {offset}");
            assert_eq!(pty.try_write(b"\n", Stamp::default()).unwrap(), 1);
        }
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn input_reaches_the_program() {
    for kind in Kind::BOTH {
        let pty = kind.line("read -r word; echo got:$word");
        assert_eq!(pty.try_write(b"hello\r", Stamp::default()).unwrap(), 6);
        assert!(read_to_end(&pty).await.ends_with("got:hello\r\n"));
    }
}

#[tokio::test]
async fn a_stuck_program_takes_nothing_until_it_reads() {
    for kind in Kind::BOTH {
        let pty = kind
            .line("stty raw -echo; trap 'exec cat >/dev/null' USR1; echo ready; sleep 1000 & wait");
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
        assert_eq!(soon("room", taken).await, 1);
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_program_that_ended_takes_no_input() {
    for kind in Kind::BOTH {
        let pty = kind.line("exit 0");
        exit_of(&pty).await;
        assert_eq!(
            pty.try_write(b"x", Stamp::default()).unwrap_err().kind(),
            std::io::ErrorKind::BrokenPipe
        );
    }
}

#[tokio::test]
async fn a_signal_reaches_the_foreground_group() {
    for kind in Kind::BOTH {
        let pty = kind.line("trap 'exit 5' USR1; echo ready; sleep 1000 & wait");
        wait_for(&pty, "ready").await;
        pty.signal(Signal::User1).unwrap();
        assert_eq!(exit_of(&pty).await, Exit::Code(5));
    }
}

#[tokio::test]
async fn a_signal_to_nobody_is_not_found() {
    for kind in Kind::BOTH {
        let pty = kind.line("exit 0");
        read_to_end(&pty).await;
        assert_eq!(pty.signal(Signal::User1).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn a_question_with_echo_off_is_a_secret_prompt() {
    for kind in Kind::BOTH {
        let pty = kind.line("stty -echo; echo ready; read -r secret");
        wait_for(&pty, "ready").await;
        let evidence = pty.evidence().unwrap();
        assert!(evidence.hides_typing());
        assert!(evidence.leader_in_front());
        assert_eq!(evidence.leader, pty.evidence().unwrap().leader);
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_program_that_wants_keys_has_canonical_mode_off() {
    for kind in Kind::BOTH {
        let pty = kind.line("stty -icanon; echo ready; read -r key");
        wait_for(&pty, "ready").await;
        let evidence = pty.evidence().unwrap();
        assert!(!evidence.canonical);
        assert!(evidence.echo);
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_command_of_an_interactive_shell_is_in_front_of_it() {
    for kind in Kind::BOTH {
        let pty = kind.line("set -m; bash -c 'echo ready; read -r word'; true");
        wait_for(&pty, "ready").await;
        assert!(!pty.evidence().unwrap().leader_in_front());
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn kill_ends_a_shell_at_its_prompt() {
    for kind in Kind::BOTH {
        let pty = Terminal::open(kind, &spec(Launch::Shell)).unwrap();
        let mut output = Vec::new();
        assert!(matches!(pty.read(0, &mut output).await.unwrap(), ReadOutput::Bytes(_)));
        pty.kill().await.unwrap();
        assert_eq!(exit_of(&pty).await, Exit::Signal(SIGHUP));
    }
}

#[tokio::test]
async fn kill_leaves_nobody_who_ignores_it_left_the_session_and_was_orphaned() {
    for kind in Kind::BOTH {
        become_subreaper().unwrap();
        let pty = kind.line(
            "trap '' HUP TERM; (setsid bash -c 'sleep 1000 & echo escaped; sleep 1001' &); \
             sleep 1002 & echo kept; wait",
        );
        let mut output = Vec::new();
        read_until(&pty, &mut output, Some("escaped")).await;
        read_until(&pty, &mut output, Some("kept")).await;
        let everybody = marked(pty.session);
        assert!(
            everybody.iter().any(|one| one.session != pty.evidence().unwrap().leader),
            "{everybody:?}"
        );

        pty.kill().await.unwrap();

        assert_eq!(exit_of(&pty).await, Exit::Signal(SIGKILL));
        assert_eq!(marked(pty.session), []);
        // Who adopted them asks how they ended, which may take a moment.
        until("not even a zombie is left", || !everybody.iter().any(is_there)).await;
    }
}

#[tokio::test]
async fn kill_ends_a_stopped_program() {
    for kind in Kind::BOTH {
        let pty = kind.line("echo ready; kill -STOP $$");
        wait_for(&pty, "ready").await;
        pty.kill().await.unwrap();
        assert_eq!(exit_of(&pty).await, Exit::Signal(SIGHUP));
    }
}

#[tokio::test]
async fn kill_may_be_asked_for_again() {
    for kind in Kind::BOTH {
        let pty = kind.line("read -r word");
        pty.kill().await.unwrap();
        pty.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_leaves_nothing_behind() {
    for kind in Kind::BOTH {
        let mut spec = spec(Launch::Shell);
        spec.program = PathBuf::from("/nonexistent/program");
        let mut directory = PathBuf::new();
        let refused = Terminal::open_with(kind, &spec, |options| {
            directory = options.shims.directory.clone();
        });
        let refused = refused.unwrap_err();
        assert!(matches!(refused, SpawnError::Program { .. }), "{refused}");
        assert!(refused.to_string().contains("No such file"), "{refused}");
        assert_eq!(marked(spec.session), []);
        let left = std::fs::read_dir(directory).into_iter().flatten().count();
        assert_eq!(left, 0, "no socket is left");
    }
}
