//! Hints for the command line, with commands in place of the daemon's tool names.

use serde_json::Value;

use crate::core::code::Code;

/// The placeholder for an unknown session.
const SESSION: &str = "SESSION";

/// The command for each tool.
const COMMANDS: [(&str, &str); 17] = [
    ("acquire_lease", "`termgate lease acquire`"),
    ("create_session", "`termgate new`"),
    ("find_lease", "`termgate lease ls`"),
    ("follow_command", "`termgate run`"),
    ("list_sessions", "`termgate ls`"),
    ("manage_session", "`termgate kill`"),
    ("preempt_lease", "`termgate lease preempt`"),
    ("read_commands", "`termgate commands`"),
    ("read_history", "`termgate history`"),
    ("read_screen", "`termgate read`"),
    ("release_lease", "`termgate lease release`"),
    ("renew_lease", "`termgate lease renew`"),
    ("send_keys", "`termgate keys`"),
    ("send_mouse", "`termgate attach`"),
    ("send_text", "`termgate send`"),
    ("set_write", "`termgate allow-write`"),
    ("wait_for", "`termgate wait`"),
];

/// Replaces tool names in the daemon's text with commands.
pub fn in_commands(text: &str) -> String {
    let mut told = text.to_owned();
    for (tool, command) in COMMANDS {
        told = replaced(&told.replace(&format!("`{tool}`"), command), tool, command);
    }
    told
}

/// Replaces a whole word. It skips parts of names and paths, and quoted words.
fn replaced(text: &str, word: &str, by: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '"');
    let (mut told, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(word) {
        told.push_str(before);
        let named = told.ends_with(|c| part(c) || c == '.') || after.starts_with(part);
        told.push_str(if named { word } else { by });
        rest = after;
    }
    told + rest
}

/// The hint for an error with this code and these details in this session. Returns none when the
/// daemon's own hint says the same.
pub fn of_error(code: &str, details: &Value, session: Option<&str>) -> Option<String> {
    let hint = of_details(details).or_else(|| Code::parse(code).and_then(of_code))?;
    Some(hint.replace(SESSION, session.unwrap_or(SESSION)))
}

fn of_details(details: &Value) -> Option<&'static str> {
    if details.pointer("/details/offered_to").is_some() {
        return Some(
            "It returns to you within 10 s if it is not taken up; `termgate lease acquire SESSION` \
             takes it back.",
        );
    }
    match details.pointer("/details/cause")?.as_str()? {
        "command_running" => Some(
            "Wait for it with `termgate wait SESSION --command-done`, look at it with `termgate read \
             SESSION`, or interrupt it with `termgate keys SESSION C-c`.",
        ),
        "asks" => Some(
            "Answer it with `termgate attach SESSION`, or `termgate send SESSION` and the answer; \
             `termgate keys SESSION C-c` gives it up.",
        ),
        _ => None,
    }
}

/// The hint for a code, or the code's general advice.
pub fn advice(code: Code) -> &'static str {
    of_code(code).unwrap_or_else(|| code.advice())
}

fn of_code(code: Code) -> Option<&'static str> {
    match code {
        Code::SessionNotFound => {
            Some("`termgate ls` shows the sessions there are, and `termgate new` creates one.")
        }
        Code::LeaseRequired => Some(
            "Take the lease with `termgate lease acquire SESSION`, and give its id in TERMGATE_LEASE or \
             with --lease-file.",
        ),
        Code::LeaseHeld => Some(
            "Stand in line with `termgate lease acquire SESSION --wait 30s`, or watch with `termgate \
             watch SESSION` until the holder is done.",
        ),
        Code::LeaseSuspended => Some(
            "It comes back by itself: wait with `termgate lease acquire SESSION --wait 30s`, then look \
             with `termgate read SESSION`.",
        ),
        Code::LeaseLost => Some(
            "Look with `termgate read SESSION`; if you still need to type, `termgate lease acquire \
             SESSION`.",
        ),
        Code::LeaseSuperseded => Some(
            "Forget the id in TERMGATE_LEASE or the file; `termgate lease acquire SESSION` gives \
                 another.",
        ),
        Code::ScreenChanged => Some(
            "Read the screen with `termgate read SESSION --json`, decide again, and write with \
             --expect and its watermark.",
        ),
        Code::SessionExited => {
            Some("Read what it left with `termgate history SESSION`, or run `termgate new`.")
        }
        Code::RateLimited => Some(
            "Wait as long as retry_after_ms says; `termgate wait` and `termgate watch` ask only once.",
        ),
        Code::TerminalSilent => Some(
            "It goes on by itself; `termgate doctor` names the process that does not answer, and how to \
             let it go on if it was stopped.",
        ),
        Code::InvalidArgument
        | Code::ReadOnly
        | Code::SessionExists
        | Code::Busy
        | Code::TooLarge
        | Code::QuotaExceeded
        | Code::PolicyDenied
        | Code::TokenUnknown
        | Code::TokenExpired
        | Code::TokenFile
        | Code::TokenExists
        | Code::TokenNotFound
        | Code::StorageError
        | Code::NotSupported
        | Code::UpstreamUnavailable
        | Code::UpstreamRestarted
        | Code::Internal
        | Code::DaemonUnreachable
        | Code::DaemonRunning
        | Code::Timeout
        | Code::InvalidConfiguration
        | Code::ClientConfig
        | Code::ClientNotFound
        | Code::UpgradeFailed => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_advice_at_the_command_line_names_a_tool() {
        let tools = crate::surface::entries();
        for code in Code::ALL {
            let advice = advice(code);
            // `why` is a command as well.
            for tool in tools.iter().filter(|tool| tool.name.contains('_')) {
                assert!(!advice.contains(tool.name), "{}: {advice}", code.as_str());
            }
        }
    }

    #[test]
    fn what_the_daemon_says_of_tools_is_said_in_commands() {
        let said = "keys are sent with send_keys; call `wait_for`, then `run`";
        let told = "keys are sent with `termgate keys`; call `termgate wait`, then `run`";
        assert_eq!(in_commands(said), told);
        for tool in crate::surface::entries().iter().filter(|tool| tool.name.contains('_')) {
            let told = in_commands(&format!("call {} now", tool.name));
            assert!(told.starts_with("call `termgate "), "{told}");
        }
    }

    #[test]
    fn names_and_paths_that_have_a_tools_name_in_them_stay() {
        for said in [
            "no session `wait_for_build`",
            "no session \"read_screen\"",
            "cannot run /opt/read_screen/x",
            "cannot run ./send_keys",
        ] {
            assert_eq!(in_commands(said), said);
        }
        assert_eq!(
            in_commands("See read_screen. Or wait_for"),
            "See `termgate read`. Or `termgate wait`"
        );
    }

    #[test]
    fn a_lease_that_is_on_offer_is_taken_back_by_a_command() {
        let details = json!({"details": {"offered_to": "ada#p2"}});
        let hint = of_error("lease_held", &details, None).unwrap();
        assert!(hint.contains("takes it back"), "{hint}");
        let hint = of_error("lease_held", &Value::Null, None).unwrap();
        assert!(hint.contains("--wait"), "{hint}");
    }

    #[test]
    fn a_command_that_runs_is_waited_for_by_a_command() {
        let details = json!({"details": {"cause": "command_running"}});
        let hint = of_error("busy", &details, Some("build")).unwrap();
        assert!(hint.contains("`termgate wait build --command-done`"), "{hint}");
        assert!(!hint.contains(SESSION), "{hint}");
        assert_eq!(of_error("busy", &Value::Null, None), None);
        let details = json!({"details": {"cause": "asks", "prompt": "Name: "}});
        let hint = of_error("busy", &details, Some("build")).unwrap();
        assert!(hint.contains("`termgate send build`"), "{hint}");
    }

    #[test]
    fn a_code_from_the_future_keeps_the_daemons_own_hint() {
        assert_eq!(of_error("from_the_future", &Value::Null, None), None);
    }
}
