//! Any call to a file of the index fails, once.

use super::*;
use crate::store::failing_calls::with_each_call_failing;

/// Stores and searches while a call fails. The caller continues at the row that the index expects, as sessions do, so
/// that each row is found once in the end.
fn index_while_a_call_fails(directory: &Path) {
    let one = session(1);
    let (mut refused, mut rounds) = (0, 0);
    for daemon in 0..2 {
        let index = index_in(directory);
        let until = (daemon + 1) * 4;
        let mut row = daemon * 4;
        while row < until {
            match store(&index, batch(&one, row, &[&format!("word {row}"), "more"])) {
                BatchOutcome::Stored => row += 2,
                BatchOutcome::Expected { from_row } => row = from_row,
                BatchOutcome::Refused => refused += 1,
            }
            rounds += 1;
            assert!(refused <= 1 && rounds <= 12, "{refused} of {rounds}");
            let _ = search(&index, &mut LineMatcher::words("word").unwrap());
        }
    }
    let found = || search(&index_in(directory), &mut LineMatcher::words("word").unwrap());
    let found = found().or_else(|_| found()).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.row).collect::<Vec<_>>(), [6, 4, 2, 0]);
}

#[test]
fn whichever_call_fails_no_row_is_lost_or_twice() {
    let name = "store::index::writer::tests::failing::whichever_call_fails_no_row_is_lost_or_twice";
    let calls = with_each_call_failing(name, index_while_a_call_fails);
    assert!(calls.is_none_or(|calls| calls > 50), "{calls:?}");
}
