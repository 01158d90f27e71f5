//! Hints for people and scripts at a command line: what to run, where the daemon names tools.
//!
//! It knows codes and commands, and neither what failed nor how a hint is shown.

use serde_json::Value;

use crate::core::code::Code;

/// What to run about an error with this code and these details; none where the daemon's own hint
/// names no tool.
pub fn of_error(code: &str, details: &Value) -> Option<&'static str> {
    if details.pointer("/details/offered_to").is_some() {
        return Some(
            "It returns to you within 10 s if it is not taken up; `termgate lease acquire` takes \
             it back.",
        );
    }
    if details.pointer("/details/cause").is_some_and(|cause| cause == "command_running") {
        return Some(
            "Wait for it with `termgate wait S --command-done`, look at it with `termgate read S`, or \
             interrupt it with `termgate keys S C-c`.",
        );
    }
    Code::parse(code).and_then(of_code)
}

/// What to run about a code, or what the code itself advises.
pub fn advice(code: Code) -> &'static str {
    of_code(code).unwrap_or_else(|| code.advice())
}

fn of_code(code: Code) -> Option<&'static str> {
    match code {
        Code::SessionNotFound => {
            Some("`termgate ls` shows the sessions there are, and `termgate new` creates one.")
        }
        Code::LeaseRequired => {
            Some("Take the lease with `termgate lease acquire S`, and give its id with --lease.")
        }
        Code::LeaseHeld => Some(
            "Stand in line with `termgate lease acquire S --wait 30s`, or watch with `termgate watch \
             S` until the holder is done.",
        ),
        Code::LeaseSuspended => Some(
            "It comes back by itself: wait with `termgate lease acquire S --wait 30s`, then look with \
             `termgate read S`.",
        ),
        Code::LeaseLost => Some(
            "Look with `termgate read S`; if you still need to type, `termgate lease acquire S`.",
        ),
        Code::LeaseSuperseded => Some("Forget the id; `termgate lease acquire S` gives another."),
        Code::ScreenChanged => Some(
            "Read the screen with `termgate read S --json`, decide again, and write with --expect \
             and its watermark.",
        ),
        Code::SessionExited => {
            Some("Read what it left with `termgate history S`, or run `termgate new`.")
        }
        Code::RateLimited => Some(
            "Wait as long as retry_after_ms says; `termgate wait` and `termgate watch` ask only once.",
        ),
        Code::TerminalSilent => Some(
            "If its process `termgate hold` was stopped, `kill -CONT` lets it go on; `termgate kill S` \
             ends the session either way.",
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
    fn a_lease_that_is_on_offer_is_taken_back_by_a_command() {
        let details = json!({"details": {"offered_to": "ada#p2"}});
        let hint = of_error("lease_held", &details).unwrap();
        assert!(hint.contains("takes it back"), "{hint}");
        let hint = of_error("lease_held", &Value::Null).unwrap();
        assert!(hint.contains("--wait"), "{hint}");
    }

    #[test]
    fn a_command_that_runs_is_waited_for_by_a_command() {
        let details = json!({"details": {"cause": "command_running"}});
        assert!(of_error("busy", &details).unwrap().contains("termgate wait S --command-done"));
        assert_eq!(of_error("busy", &Value::Null), None);
    }

    #[test]
    fn a_code_from_the_future_keeps_the_daemons_own_hint() {
        assert_eq!(of_error("from_the_future", &Value::Null), None);
    }
}
