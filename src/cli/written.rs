//! What came of a write, shared by the commands that type.

use serde_json::Value;

use crate::cli::daemon::Answer;
use crate::cli::exit::DAEMON_LEFT;
use crate::cli::exit::{Exit, WaitedFor};
use crate::cli::output::Report;
use crate::cli::rows::of_delta;

/// The end of a command that typed: what changed since, when it waited, and what went wrong.
pub fn report(answer: Answer) -> Report {
    let text = of_delta(&answer.data["changed"]);
    let notes = notes(&answer.data);
    let exit = exit(&answer.data);
    let report = answer.report(text);
    Report { notes, exit, ..report }
}

fn exit(written: &Value) -> Exit {
    let outcome = written["wait"]["outcome"].as_str();
    outcome.map_or(Exit::Done, |outcome| Exit::of_outcome(outcome, WaitedFor::OtherThings))
}

fn notes(written: &Value) -> Vec<String> {
    let count = |name: &str| written[name].as_u64().filter(|count| *count > 0);
    let queued = count("queued_bytes")
        .map(|bytes| format!("{bytes} bytes wait because the program does not read"));
    let discarded = count("discarded").map(|bytes| format!("{bytes} bytes were discarded"));
    let warning = written["warning"].as_str().map(|warning| format!("warning: {warning}"));
    let session = written["session"].as_str().unwrap_or_default();
    let wait = &written["wait"];
    let outcome = wait["outcome"].as_str().map(|outcome| match outcome {
        DAEMON_LEFT => format!(
            "the daemon was upgraded after {} bytes were typed; do not type them again: go on with \
             `termgate wait {session} ... --since {}`",
            written["written"], wait["watermark"]
        ),
        outcome => outcome.to_owned(),
    });
    let changed = &written["changed"];
    let left_out = changed["rows_left_out"].as_u64().map(|rows| {
        let from = &changed["from"];
        format!("{rows} more rows changed: `termgate read {session} --since {from}` prints all")
    });
    [queued, discarded, warning, outcome, left_out].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_that_went_out_whole_says_nothing() {
        let written = json!({"written": 5, "queued_bytes": 0, "discarded": 0, "watermark": 9});
        assert_eq!((notes(&written), exit(&written)), (Vec::new(), Exit::Done));
    }

    #[test]
    fn bytes_that_did_not_arrive_and_warnings_are_told() {
        let written = json!({"queued_bytes": 2, "discarded": 3, "warning": "the line is cut"});
        let notes = notes(&written);
        assert!(notes[0].starts_with("2 bytes wait"), "{notes:?}");
        assert!(notes[1].starts_with("3 bytes were discarded"), "{notes:?}");
        assert_eq!(notes[2], "warning: the line is cut");
    }

    #[test]
    fn changed_rows_that_are_left_out_are_told_with_the_way_to_them() {
        let changed = json!({"from": 7, "rows_left_out": 3, "next_top": 5, "updates": []});
        let notes = notes(&json!({"session": "0a", "changed": changed}));
        let expected = "3 more rows changed: `termgate read 0a --since 7` prints all";
        assert_eq!(notes, [expected]);
    }

    #[test]
    fn a_daemon_that_left_is_told_with_what_was_typed_and_the_way_to_go_on() {
        let wait = json!({"outcome": "daemon_left", "watermark": 9});
        let written = json!({"session": "0a", "written": 5, "wait": wait, "watermark": 9});
        let notes = notes(&written);
        assert!(notes[0].contains("after 5 bytes were typed"), "{notes:?}");
        assert!(notes[0].contains("`termgate wait 0a ... --since 9`"), "{notes:?}");
        assert_eq!(exit(&written), Exit::Unreachable);
    }

    #[test]
    fn a_wait_after_the_write_decides_how_the_command_ends() {
        assert_eq!(exit(&json!({"wait": {"outcome": "timeout"}})), Exit::TimedOut);
        assert_eq!(exit(&json!({"wait": {"outcome": "matched"}})), Exit::Done);
        assert_eq!(exit(&json!({"wait": {"outcome": "exited"}})), Exit::Failed);
    }
}
