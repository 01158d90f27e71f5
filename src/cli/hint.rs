//! What to do about an error, worded for people and scripts at a command line: it names commands.
//!
//! `mcp::hint` words the same for models.

use crate::core::code::Code;
use crate::wire::error::{ErrorWire, RefusalCause};

/// The word for a session that is not known.
const SESSION: &str = "SESSION";

/// What to do about an error that is about this session, in the daemon's words where those name no
/// tool.
pub fn of_error(error: &ErrorWire, session: Option<&str>) -> Option<String> {
    let surface = error.details.as_ref().and_then(|details| details.surface.as_deref());
    if let Some(mount) = surface.filter(|_| error.code() != Code::InvalidArgument) {
        // The commands of its code are for sessions.
        return of_mount(error.code(), mount).or_else(|| Some(error.hint.clone()));
    }
    if let Some(told) = of_rules(error) {
        return Some(told);
    }
    let session = session.unwrap_or(SESSION);
    let own = error.refusal().and_then(|cause| of_cause(cause, session));
    let own = own.or_else(|| Code::parse(&error.error_code).and_then(|it| of_code(it, session)));
    if own.is_none() && error.code() == Code::InvalidArgument {
        // Its message says already which argument to correct, and how.
        return None;
    }
    let general = Code::parse(&error.error_code).filter(|code| error.hint == code.advice());
    let own = own.or_else(|| general.and_then(of_any_call).map(str::to_owned));
    own.or_else(|| Some(error.hint.clone()).filter(|hint| !hint.is_empty()))
}

/// What to do about a call that the rules refused, with the ids that the commands take.
fn of_rules(error: &ErrorWire) -> Option<String> {
    let code = error.code();
    let details = error.details.as_ref()?;
    let decision = details.decision_id.as_ref()?;
    // The daemon has advice for this refusal alone.
    let has_own = code == Code::PolicyDenied && error.hint != code.advice();
    let general = of_any_call(code).filter(|_| !has_own);
    let what_to_do = general.unwrap_or(&error.hint);
    Some(format!(
        "{what_to_do} `termgate policy explain {decision}` shows how each rule judged it."
    ))
}

/// What to do about a code whose advice is for models, where the error says nothing of its own.
fn of_any_call(code: Code) -> Option<&'static str> {
    match code {
        Code::PolicyDenied => Some("Do something else, or ask an operator to do it."),
        // A call ends with its command, and so does its approval.
        Code::ApprovalRequired => Some(
            "Run the same command again, with a longer --timeout if it has one, and approve it while it \
             waits: `termgate approve` lists the calls that wait.",
        ),
        Code::ApprovalStale => Some(
            "Look at it again. If the command is still right, run it again; one that was approved \
             needs another approval.",
        ),
        Code::InvalidArgument
        | Code::SessionNotFound
        | Code::SessionExists
        | Code::SessionExited
        | Code::TerminalSilent
        | Code::ReadOnly
        | Code::LeaseRequired
        | Code::LeaseHeld
        | Code::LeaseSuspended
        | Code::LeaseLost
        | Code::LeaseSuperseded
        | Code::ScreenChanged
        | Code::Busy
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::RateLimited
        | Code::TokenUnknown
        | Code::TokenExpired
        | Code::TokenFile
        | Code::StorageError
        | Code::UpstreamUnavailable
        | Code::UpstreamRestarted
        | Code::UpstreamError
        | Code::NotSupported
        | Code::UpgradeFailed
        | Code::Internal
        | Code::DaemonUnreachable
        | Code::DaemonRunning
        | Code::Timeout
        | Code::InvalidConfiguration
        | Code::ClientConfig
        | Code::ClientNotFound
        | Code::TokenExists
        | Code::TokenNotFound => None,
    }
}

/// What to do about the lease of a mounted server.
fn of_mount(code: Code, mount: &str) -> Option<String> {
    let acquire = format!("termgate lease acquire --surface {mount}");
    if [Code::LeaseRequired, Code::LeaseLost, Code::LeaseSuperseded].contains(&code) {
        // The call during which a lease was lost may have been made in part.
        let look = if code == Code::LeaseLost { "Look before you repeat the call. " } else { "" };
        return Some(format!(
            "{look}Take the lease with `{acquire}`, and give its id to `termgate call` with --lease-file."
        ));
    }
    let is_held = [Code::LeaseHeld, Code::LeaseSuspended].contains(&code);
    is_held.then(|| format!("Wait in line with `{acquire} --wait 30s`."))
}

fn of_cause(cause: RefusalCause, session: &str) -> Option<String> {
    Some(match cause {
        RefusalCause::NotAKey => {
            format!("Correct the name, or type text with `termgate send {session}`.")
        }
        RefusalCause::ControlCharacters => {
            format!("Press keys with `termgate keys {session}`.")
        }
        RefusalCause::SeveralLines => format!(
            "Run one command at a time, or send all of them with `termgate send {session}`."
        ),
        RefusalCause::NotConnected => "`termgate ls` shows the holders of leases by their names; \
            another daemon gives other numbers."
            .to_owned(),
        RefusalCause::OwnName => {
            "Give another principal's name, as `termgate ls` shows it.".to_owned()
        }
        RefusalCause::SwitchedOff => {
            "To switch writing on, run: termgate allow-write on. Where no daemon runs, `termgate new \
             --allow-write` starts one with writing on."
                .to_owned()
        }
        RefusalCause::Protected => {
            format!("To switch writing on there, run: termgate allow-write on --session {session}")
        }
        RefusalCause::CommandRunning => format!(
            "Wait for it with `termgate wait {session} --command-done`, look at it with `termgate \
             read {session}`, or interrupt it with `termgate keys {session} C-c`."
        ),
        RefusalCause::Asks => format!(
            "Answer it with `termgate attach {session}`, or `termgate send {session}` and the \
             answer; `termgate keys {session} C-c` gives it up."
        ),
        RefusalCause::NoPromptYet => format!(
            "It still reads its files or makes its prompt: `termgate read {session}` shows it. Wait \
             longer, or interrupt it with `termgate keys {session} C-c`."
        ),
        RefusalCause::Reclaimable => format!(
            "The daemon restarted, and the lease waits for its holder. If it was yours, give its id \
             in TERMGATE_LEASE; else wait with `termgate lease acquire {session} --wait 30s`."
        ),
        RefusalCause::Offered => format!(
            "It returns to you within 10 s if it is not taken up; `termgate lease acquire \
             {session}` takes it back."
        ),
        RefusalCause::NoSession
        | RefusalCause::LineTooLong
        | RefusalCause::ObserverSocket
        | RefusalCause::ReadOnlyToken
        | RefusalCause::ViewOnly
        | RefusalCause::SessionSocket
        | RefusalCause::OperatorSocket
        | RefusalCause::NotReading
        | RefusalCause::PersonTyped
        | RefusalCause::NoDescriptors
        | RefusalCause::NoProcesses
        | RefusalCause::NoTerminals
        | RefusalCause::NoMemory
        | RefusalCause::ShimDirectory
        | RefusalCause::NoSandbox
        | RefusalCause::NotFound
        | RefusalCause::DaemonLeaves
        | RefusalCause::Other => return None,
    })
}

/// What to run about a code, or what the code itself advises.
pub fn advice(code: Code) -> String {
    let own = of_code(code, SESSION).or_else(|| of_any_call(code).map(str::to_owned));
    own.unwrap_or_else(|| code.advice().to_owned())
}

fn of_code(code: Code, session: &str) -> Option<String> {
    Some(match code {
        Code::SessionNotFound => {
            "`termgate ls` shows the sessions there are, `termgate new` creates one, and `termgate run \
             -- COMMAND` runs a command in one of its own."
                .to_owned()
        }
        Code::LeaseRequired => format!(
            "Take the lease with `termgate lease acquire {session}`, and give its id in \
             TERMGATE_LEASE or with --lease-file."
        ),
        Code::LeaseHeld => format!(
            "Wait in line with `termgate lease acquire {session} --wait 30s`, or watch with \
             `termgate watch {session}` until the holder is done."
        ),
        Code::LeaseSuspended => format!(
            "Wait until the person is done with `termgate lease acquire {session} --wait 30s`, then look \
             with `termgate read {session}`."
        ),
        Code::LeaseLost => format!(
            "Look with `termgate read {session}`; if you still need to type, `termgate lease \
             acquire {session}`."
        ),
        Code::LeaseSuperseded => format!(
            "Forget the id in TERMGATE_LEASE or the file; `termgate lease acquire {session}` gives \
             another."
        ),
        Code::ScreenChanged => format!(
            "Read the screen with `termgate read {session} --json`, decide again, and write with \
             --expect and its watermark."
        ),
        Code::SessionExited => {
            format!("Read what it left with `termgate history {session}`, or run `termgate new`.")
        }
        Code::RateLimited => "Wait as long as retry_after_ms says; `termgate wait` and `termgate \
            watch` ask only once."
            .to_owned(),
        Code::TerminalSilent => {
            "`termgate doctor` names the process that does not answer, and how to \
            continue it if it was suspended."
                .to_owned()
        }
        Code::InvalidArgument
        | Code::ReadOnly
        | Code::SessionExists
        | Code::Busy
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::PolicyDenied
        | Code::ApprovalRequired
        | Code::ApprovalStale
        | Code::TokenUnknown
        | Code::TokenExpired
        | Code::TokenFile
        | Code::TokenExists
        | Code::TokenNotFound
        | Code::StorageError
        | Code::NotSupported
        | Code::UpstreamUnavailable
        | Code::UpstreamRestarted
        | Code::UpstreamError
        | Code::Internal
        | Code::DaemonUnreachable
        | Code::DaemonRunning
        | Code::Timeout
        | Code::InvalidConfiguration
        | Code::ClientConfig
        | Code::ClientNotFound
        | Code::UpgradeFailed => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::hint::for_models;
    use crate::wire::error::ErrorDetails;
    use crate::wire::word;

    fn names_a_tool(text: &str) -> bool {
        let tools = crate::surface::entries();
        // `why` and `run` are commands as well.
        tools.iter().any(|tool| tool.name.contains('_') && text.contains(&*tool.name))
    }

    fn error(code: &str, cause: Option<RefusalCause>) -> ErrorWire {
        let cause = cause.map(|cause| word(&cause).to_string());
        let error = json!({
            "error_code": code, "message": "m", "hint": "the daemon's own",
            "details": {"cause": cause},
        });
        serde_json::from_value(error).unwrap()
    }

    #[test]
    fn no_advice_at_the_command_line_names_a_tool() {
        for code in Code::ALL {
            assert!(!names_a_tool(&advice(code)), "{}: {}", code.as_str(), advice(code));
        }
    }

    #[test]
    fn each_cause_that_models_are_answered_with_tools_has_words_of_its_own_here() {
        // The codes of these have commands already.
        let by_code = [RefusalCause::NoSession, RefusalCause::PersonTyped];
        for cause in RefusalCause::ALL {
            let hint = for_models(cause).filter(|hint| names_a_tool(hint));
            let own = of_cause(cause, SESSION);
            assert!(hint.is_none() || own.is_some() || by_code.contains(&cause), "{cause:?}");
            assert!(!own.is_some_and(|own| names_a_tool(&own)), "{cause:?}");
        }
    }

    #[test]
    fn a_hint_about_the_lease_of_a_mount_names_the_mount() {
        let details = ErrorDetails { surface: Some("web".to_owned()), ..ErrorDetails::default() };
        for code in
            ["lease_required", "lease_held", "lease_suspended", "lease_lost", "lease_superseded"]
        {
            let error = ErrorWire { details: Some(details.clone()), ..error(code, None) };
            let hint = of_error(&error, None).unwrap();
            assert!(hint.contains("termgate lease acquire --surface web"), "{hint}");
            assert!(!hint.contains(SESSION), "{hint}");
        }
        let error = ErrorWire { details: Some(details), ..error("quota_exceeded", None) };
        assert_eq!(of_error(&error, None).as_deref(), Some("the daemon's own"));
    }

    #[test]
    fn a_refusal_of_the_rules_names_the_commands_that_explain_it_and_let_it_pass() {
        let hint = |code: Code, approval: Option<&str>, said: &str| {
            let details = ErrorDetails {
                decision_id: Some("1f3a2b4c".to_owned()),
                approval_id: approval.map(str::to_owned),
                ..ErrorDetails::default()
            };
            let error = ErrorWire { details: Some(details), ..ErrorWire::new(code, "no") };
            let hint = if said.is_empty() { error.hint.clone() } else { said.to_owned() };
            of_error(&ErrorWire { hint, ..error }, None).unwrap()
        };
        let denied = hint(Code::PolicyDenied, None, "");
        assert!(denied.contains("`termgate policy explain 1f3a2b4c`"), "{denied}");
        let asked = hint(Code::ApprovalRequired, Some("1f3a2b4c"), "");
        assert!(asked.contains("approve it while it waits: `termgate approve` lists"), "{asked}");
        assert!(!asked.contains("approve 1f3a2b4c"), "{asked}");
        let long = hint(Code::PolicyDenied, None, "Write it to a file.");
        assert!(long.starts_with("Write it to a file. `termgate policy explain"), "{long}");
        for told in [denied, asked, advice(Code::PolicyDenied), advice(Code::ApprovalRequired)] {
            assert!(!told.contains("why explains") && !told.contains("your user"), "{told}");
        }
    }

    #[test]
    fn a_hint_names_the_session_and_depends_on_the_cause() {
        let hint = |code, cause, session| of_error(&error(code, cause), session).unwrap();
        let held = hint("lease_held", None, Some("build"));
        assert!(held.contains("`termgate lease acquire build --wait 30s`"), "{held}");
        let offered = hint("lease_held", Some(RefusalCause::Offered), None);
        assert!(offered.contains("`termgate lease acquire SESSION` takes it back"), "{offered}");
        let running = hint("busy", Some(RefusalCause::CommandRunning), Some("build"));
        assert!(running.contains("`termgate wait build --command-done`"), "{running}");
        assert_eq!(hint("busy", None, None), "the daemon's own");
        assert_eq!(of_error(&error("invalid_argument", None), None), None);
        assert_eq!(hint("from_the_future", Some(RefusalCause::Other), None), "the daemon's own");
    }
}
