//! What to do about an error, worded for models: it names tools.
//!
//! `cli::hint` words the same for people.

use crate::wire::error::RefusalCause;

const NO_SANDBOX: &str = "Ask the operator to install bubblewrap (package `bubblewrap`) and to allow user \
     namespaces; `termgate doctor` says what is missing.";
const NO_DESCRIPTORS: &str = "Every session and connection needs some file descriptors, and the daemon may have no \
     more: end sessions that are not needed, or let an operator raise its hard limit \
     (`ulimit -Hn`, `LimitNOFILE=`) and restart it.";

/// What to do about an error with this cause; none where the advice of its code is enough.
pub fn for_models(cause: RefusalCause) -> Option<&'static str> {
    Some(match cause {
        RefusalCause::NoSession => "Create one with create_session.",
        RefusalCause::NotAKey => "Correct the name, or type text with send_text.",
        RefusalCause::ControlCharacters => "Press keys with send_keys.",
        RefusalCause::SeveralLines => "Send one command at a time, or all of them with send_text.",
        RefusalCause::LineTooLong => "Split it into lines, or let the program read from a file.",
        RefusalCause::NotConnected => "list_sessions shows names, as `by`, in this daemon.",
        RefusalCause::OwnName => {
            "Give another principal's name, as list_sessions shows it in `by`."
        }
        RefusalCause::SwitchedOff => {
            "Ask the operator to run `termgate allow-write on`. A `termgate serve --stdio` has no \
             operator: it has to be started with --allow-write."
        }
        RefusalCause::Protected => {
            "Ask the operator to run `termgate allow-write on --session` with the session's id."
        }
        RefusalCause::ObserverSocket => "Write at the session's other socket, or the gateway's.",
        RefusalCause::ReadOnlyToken => "Ask the operator for a token made without --read-only.",
        RefusalCause::ViewOnly => "Detach and attach again without --view-only.",
        RefusalCause::SessionSocket => "Use the gateway's socket for what concerns other sessions.",
        RefusalCause::OperatorSocket => {
            "Use the socket of the gateway or of a session, or show no token."
        }
        RefusalCause::CommandRunning => {
            "Look at it with read_screen. If it asks, answer with send_text; if it works, wait_for \
             command_done, or interrupt it with send_keys C-c."
        }
        RefusalCause::Asks => {
            "It has to be answered first: with send_text, a secret by the person with `termgate \
             attach`. send_keys C-c gives it up."
        }
        RefusalCause::NoPromptYet => {
            "It still reads its files or makes its prompt: read_screen names what runs. Call again \
             with a longer timeout_ms, or interrupt it with send_keys C-c."
        }
        RefusalCause::NotReading => {
            "The program does not read its input: look at the screen, or send C-c alone."
        }
        RefusalCause::PersonTyped => {
            "Read the screen, decide again, and write with expect_watermark set to the watermark \
             you read."
        }
        RefusalCause::Reclaimable => {
            "The daemon restarted, and the lease waits for its holder: if it was yours, show its \
             lease_id; else wait in line with acquire_lease and wait_ms."
        }
        RefusalCause::Offered => {
            "It returns to you within 10 s if it is not taken up; acquire_lease takes it back."
        }
        RefusalCause::NoDescriptors => NO_DESCRIPTORS,
        RefusalCause::NoProcesses => {
            "The user may have no more processes: end what is not needed, or let an operator raise \
             the limit (`ulimit -u`, `TasksMax=`)."
        }
        RefusalCause::NoTerminals => {
            "The machine has no more terminals: end what is not needed, or let an operator raise \
             `kernel.pty.max`."
        }
        RefusalCause::NoMemory => "The machine has no memory left: end what is not needed.",
        RefusalCause::ShimDirectory => {
            "The directory must be the daemon's user's own, with mode 0700 and room in it; what is \
             missing of it is made again with the next session."
        }
        RefusalCause::NoSandbox => NO_SANDBOX,
        RefusalCause::NotFound | RefusalCause::DaemonLeaves | RefusalCause::Other => return None,
    })
}
