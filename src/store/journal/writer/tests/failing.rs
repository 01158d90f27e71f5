//! Any call to a file of the journal fails, once.

use std::path::Path;

use super::*;
use crate::store::failing_calls::with_each_call_failing;

/// Files of 64 KiB, of which old ones are removed.
const SHORT: JournalLimits = JournalLimits { bytes_max: 256 << 10, ..LIMITS };

/// Acts while a call fails: those that are refused leave nothing, those that are recorded are there once, and the next
/// act after a failure is recorded.
fn act_while_a_call_fails(ground: &Path) {
    let path = ground.join("journal");
    let (mut recorded, mut refused) = (Vec::new(), Vec::new());
    for daemon in 0..3 {
        let journal = Journal::at(path.clone(), SHORT);
        let _ = journal.open(at(1));
        let (directory, second) = (tempfile::tempdir().unwrap(), Cell::new(9));
        let fixture = Fixture { directory, journal, second };
        for number in 0..4 {
            let act = format!("act {daemon}.{number}");
            // Another file begins after the third.
            let bytes = "x".repeat(if number == 2 { 140_000 } else { 0 }) + &act;
            match fixture.intend(bytes.as_bytes()) {
                Ok(of) => {
                    fixture.conclude(of, bytes.len());
                    recorded.push((of.0, act));
                }
                Err(_) => refused.push(act),
            }
            fixture.journal.sync(at(fixture.second.get()));
        }
    }
    assert!(refused.len() <= 1, "{refused:?}");
    let (intents, outcomes) = acts(&path).or_else(|_| acts(&path)).unwrap();
    // Old files were removed.
    assert!(intents.len() < recorded.len() && recorded.ends_with(&intents), "{intents:?}");
    let numbers: Vec<u64> = intents.iter().map(|(of, _)| *of).collect();
    assert!(outcomes.ends_with(&numbers), "{outcomes:?} of {numbers:?}");
    let checked = check(&path, None).or_else(|_| check(&path, None)).unwrap();
    assert!(checked.damage.is_empty(), "{:?}", checked.damage);
}

/// The number of an intent, and the end of its text.
type RecordedIntent = (u64, String);

/// All intents, and the intents of all outcomes.
fn acts(journal: &Path) -> io::Result<(Vec<RecordedIntent>, Vec<u64>)> {
    let (mut intents, mut outcomes) = (Vec::new(), Vec::new());
    JournalTail::of(journal).read(|line| -> io::Result<()> {
        let record: serde_json::Value = serde_json::from_str(line)?;
        let number = |key: &str| record[key].as_u64().unwrap();
        match record["kind"].as_str() {
            Some("intent") => {
                let text = record["text"].as_str().unwrap();
                intents.push((number("seq"), text.trim_start_matches('x').to_owned()));
            }
            Some("outcome") => {
                assert_ne!(record["result"], "unknown", "{record}");
                outcomes.push(number("of"));
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok((intents, outcomes))
}

#[test]
fn whichever_call_fails_one_act_is_refused_and_no_record_is_lost_or_twice() {
    let name = concat!(
        "store::journal::writer::tests::failing::",
        "whichever_call_fails_one_act_is_refused_and_no_record_is_lost_or_twice"
    );
    let calls = with_each_call_failing(name, act_while_a_call_fails);
    assert!(calls.is_none_or(|calls| calls > 50), "{calls:?}");
}
