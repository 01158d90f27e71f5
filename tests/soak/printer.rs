//! A program that prints numbered lines without an end, and who reads that none is missing, twice or wrong.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::outlive::client::{Client, Gone};
use crate::outlive::home::{Home, number_in};
use crate::soak::world::World;

const LETTERS: &str = "etaoinshrdlucmfwypvbgkqjxzETAOINSHRDLUCMFWYPVBGKQJXZ0123456789";
/// How often what was printed is read.
const READS: Duration = Duration::from_millis(500);

/// Such a program in its session.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) session: String,
    total: PathBuf,
}

impl Printer {
    /// A shell line that prints this many lines twenty times a second until the file `stop` is there, and then writes
    /// down how many there were.
    pub(crate) fn line(home: &Home, name: &str, burst: u32) -> String {
        let (stop, total) = (home.path("stop"), home.path(&format!("{name}.total")));
        let (stop, total) = (stop.display(), total.display());
        format!(
            "awk 'BEGIN {{ \
                 for (n = 0; ; ) {{ \
                     for (k = 0; k < {burst}; k++) {{ \
                         printf \"line %d %s\\n\", n, substr(\"{LETTERS}\", 1 + n % 31, 1 + n % 29); \
                         n++; \
                     }} \
                     fflush(); \
                     if (system(\"sleep 0.05; test -e {stop}\") == 0) break; \
                 }} \
                 print n > \"{total}\"; \
             }}'; exec sleep 100000"
        )
    }

    pub(crate) fn of(home: &Home, name: &str, session: &str) -> Self {
        Self { session: session.to_owned(), total: home.path(&format!("{name}.total")) }
    }
}

/// What the program prints as its `number`th line.
pub(crate) fn line(number: u64) -> String {
    let (start, length) = ((number % 31) as usize, 1 + (number % 29) as usize);
    let mut line = format!("line {number} ");
    write!(line, "{}", &LETTERS[start..start + length]).unwrap();
    line
}

/// Reads all that a printer prints, and at the end up to its last line.
pub(crate) async fn read_all(world: &World, printer: &Printer) {
    let mut client = world.home.client().await;
    let mut next = 0;
    while world.goes_on() {
        if read_on(world, &mut client, &printer.session, &mut next).await == Err(Gone) {
            client = world.home.gateway().find().await;
        }
        sleep(READS).await;
    }
    let total = number_in(&printer.total).await;
    for _ in 0..60 {
        if read_on(world, &mut client, &printer.session, &mut next).await == Err(Gone) {
            client = world.home.gateway().find().await;
        }
        if next >= total {
            return;
        }
        sleep(READS).await;
    }
    world.finds(format!("{} of {total} lines were printed in {}", next, printer.session));
}

/// Reads from row `next` on, and compares each row with the line of its number.
async fn read_on(
    world: &World,
    client: &mut Client,
    session: &str,
    next: &mut u64,
) -> Result<(), Gone> {
    loop {
        let asked = json!({"session": session, "start_row": *next, "count": 500});
        let before = world.faults();
        let part = match client.call("read_history", asked).await? {
            Ok(part) => part,
            Err(error) => {
                if world.is_calm_since(before) {
                    world.finds(format!("read_history of {session}: {error}"));
                }
                return Ok(());
            }
        };
        if part["lost_output"].as_array().is_some_and(|lost| !lost.is_empty()) {
            world.finds(format!("output of {session} was lost: {}", part["lost_output"]));
        }
        let first = part["first_row"].as_u64().unwrap();
        let is_whole = part["next_row"] != part["end_row"];
        // Trimmed before it was read is not lost: rows keep their numbers.
        *next = first;
        let text = part["text"].as_str().unwrap();
        for (row, shown) in (first..).zip(text.lines()) {
            let expected = line(row);
            if shown == expected {
                *next = row + 1;
                world.checked_rows.fetch_add(1, Ordering::Relaxed);
            } else if is_whole || !expected.starts_with(shown) {
                // After the last line there is none yet.
                world.finds(format!("row {row} of {session} is {shown:?}, not {expected:?}"));
                *next = row + 1;
            } else {
                break;
            }
        }
        if !is_whole {
            return Ok(());
        }
    }
}
