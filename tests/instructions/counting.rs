//! Counts the instructions of a piece of work with valgrind's callgrind.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;

/// Names the path that this process is to run, if it was started to be counted.
const PATH: &str = "TERMGATE_COUNTED_PATH";

/// How far a count may be from its figure, in percent: hash tables have other seeds each time.
const TOLERANCE: u64 = 4;
/// With another compiler than that of the figures.
const TOLERANCE_OF_OTHERS: u64 = 30;

/// The figures of the unoptimized build, in instructions.
#[derive(Deserialize)]
struct Figures {
    rustc: String,
    figures: BTreeMap<String, u64>,
}

/// Checks what the work takes that `prepare` returns. The test that calls this has the path's name.
pub(crate) fn check<W: FnMut()>(path: &str, prepare: impl FnOnce() -> W) {
    if std::env::var(PATH).is_ok_and(|asked| asked == path) {
        return instructions_counted(&mut prepare());
    }
    let (figure, tolerance) = figure_of(path);
    let count = count(path);
    let shares = |count: u64| count * 100 / figure.max(1);
    assert!(
        (100 - tolerance..=100 + tolerance).contains(&shares(count)),
        "{path} takes {count} instructions, {} % of {figure} in tests/instructions/figures.toml",
        shares(count)
    );
}

/// What is counted: from the call of this function to its end.
#[inline(never)]
fn instructions_counted(work: &mut dyn FnMut()) {
    work();
}

fn count(path: &str) -> u64 {
    let test = std::thread::current().name().unwrap().to_owned();
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*instructions_counted*")
        .arg(std::env::current_exe().unwrap())
        .args([test.as_str(), "--exact", "--test-threads=1"])
        .env(PATH, path)
        .output()
        .expect("valgrind is installed");
    let said = String::from_utf8(counted.stderr).unwrap();
    assert!(counted.status.success(), "{said}");
    let (_, rest) = said.split_once("Collected : ").expect("valgrind says what it counted");
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// The figure of a path, and how far from it the count may be.
fn figure_of(path: &str) -> (u64, u64) {
    let figures: Figures = toml::from_str(include_str!("figures.toml")).unwrap();
    let compiler = Command::new("rustc").arg("--version").output().map(|said| said.stdout);
    let same = String::from_utf8(compiler.unwrap_or_default()).unwrap().trim() == figures.rustc;
    let figure = figures.figures.get(path).copied();
    (figure.unwrap_or_default(), if same { TOLERANCE } else { TOLERANCE_OF_OTHERS })
}
