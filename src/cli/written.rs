//! The result of a write, for the commands that type.

use crate::cli::daemon::Answer;
use crate::cli::exit::{Exit, WaitedFor};
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::rows::of_delta;
use crate::wire::wait::WaitOutcome;
use crate::wire::wait::WriteResult;
use crate::wire::word;

/// The report of a command that typed: the changes, if it waited, and any problems.
///
/// # Errors
/// The answer has another form than that of a write.
pub fn report(answer: Answer) -> Result<Report, Failure> {
    let written: WriteResult = answer.read()?;
    let text = written.changed.as_ref().map_or_else(String::new, of_delta);
    let report = answer.report(text);
    Ok(Report { notes: notes(&written), exit: exit(&written), ..report })
}

fn exit(written: &WriteResult) -> Exit {
    let wait = written.wait.as_ref();
    wait.map_or(Exit::Done, |wait| Exit::of_outcome(wait.outcome, WaitedFor::OtherThings))
}

fn notes(written: &WriteResult) -> Vec<String> {
    let session = &written.session;
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    let queued = some(written.queued_bytes)
        .map(|bytes| format!("{bytes} bytes wait because the program does not read"));
    let discarded = some(written.discarded).map(|bytes| format!("{bytes} bytes were discarded"));
    let warning = written.warning.as_ref().map(|warning| format!("warning: {warning}"));
    let outcome = written.wait.as_ref().map(|wait| {
        if wait.outcome != WaitOutcome::DaemonLeft {
            return word(&wait.outcome);
        }
        format!(
            "the daemon was upgraded after {} bytes were typed; do not type them again: go on with \
             `termgate wait {session} ... --since {}`",
            written.written, wait.watermark
        )
    });
    let left_out = written.changed.as_ref().and_then(|changed| {
        let (rows, from) = (changed.rows_left_out?, changed.from);
        Some(format!(
            "{rows} more rows changed: `termgate read {session} --since {from}` prints all"
        ))
    });
    [queued, discarded, warning, outcome, left_out].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(more: Value) -> WriteResult {
        let mut written = json!({
            "session": "0a", "written": 5, "queued_bytes": 0, "discarded": 0, "watermark": 9,
        });
        written.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(written).unwrap()
    }

    fn waited(outcome: &str) -> WriteResult {
        let activity =
            json!({"state": "running", "evidence": "kernel", "echo": true, "canonical": true});
        written(json!({"wait": {
            "outcome": outcome, "session": "0a", "activity": activity, "last_rows": [],
            "watermark": 9, "elapsed_ms": 1,
        }}))
    }

    #[test]
    fn a_write_that_was_sent_whole_says_nothing() {
        let written = written(json!({}));
        assert_eq!((notes(&written), exit(&written)), (Vec::new(), Exit::Done));
    }

    #[test]
    fn bytes_that_did_not_arrive_and_warnings_are_reported() {
        let more = json!({"queued_bytes": 2, "discarded": 3, "warning": "the line is cut"});
        let notes = notes(&written(more));
        assert!(notes[0].starts_with("2 bytes wait"), "{notes:?}");
        assert!(notes[1].starts_with("3 bytes were discarded"), "{notes:?}");
        assert_eq!(notes[2], "warning: the line is cut");
    }

    #[test]
    fn changed_rows_that_are_left_out_are_reported_with_the_way_to_them() {
        let changed = json!({
            "from": 7, "watermark": 9, "base_row": 0, "rows_left_out": 3, "next_top": 5,
            "updates": [],
        });
        let notes = notes(&written(json!({"changed": changed})));
        assert_eq!(notes, ["3 more rows changed: `termgate read 0a --since 7` prints all"]);
    }

    #[test]
    fn a_daemon_that_left_says_what_was_typed_and_how_to_go_on() {
        let written = waited("daemon_left");
        let notes = notes(&written);
        assert!(notes[0].contains("after 5 bytes were typed"), "{notes:?}");
        assert!(notes[0].contains("`termgate wait 0a ... --since 9`"), "{notes:?}");
        assert_eq!(exit(&written), Exit::Unreachable);
    }

    #[test]
    fn a_wait_after_the_write_decides_how_the_command_ends() {
        assert_eq!(exit(&waited("timeout")), Exit::TimedOut);
        assert_eq!(exit(&waited("matched")), Exit::Done);
        assert_eq!(exit(&waited("exited")), Exit::Failed);
    }
}
