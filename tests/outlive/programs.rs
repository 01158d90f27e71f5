//! The programs that run in the sessions, and what each must have read or shown.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::outlive::home::{Home, number_in};

/// A shell line that writes whatever it is given into `log`, unchanged, after it said `recording`.
pub(crate) fn recorder(log: &Path) -> String {
    let log = log.display();
    format!("stty raw -echo; : > {log}; printf recording; exec cat >> {log}")
}

/// Prints numbered lines of a chance that anybody can compute, in bursts, until it is told to stop.
#[derive(Debug)]
pub(crate) struct Printer {
    /// When it is there, the program stops.
    stop: PathBuf,
    /// How many lines it printed, once it has stopped.
    total: PathBuf,
    burst: u32,
}

impl Printer {
    /// It never prints more lines than this.
    const LINES_MAX: u64 = 300_000;
    const LETTERS: &str = "etaoinshrdlucmfwypvbgkqjxzETAOINSHRDLUCMFWYPVBGKQJXZ0123456789";

    pub(crate) fn new(home: &Home, name: &str, burst: u32) -> Self {
        let total = home.path(&format!("{name}.total"));
        Self { stop: home.path("stop"), total, burst }
    }

    /// The shell line of the program.
    pub(crate) fn line(&self) -> String {
        let Self { stop, total, burst } = self;
        let (stop, total) = (stop.display(), total.display());
        let (letters, max) = (Self::LETTERS, Self::LINES_MAX);
        format!(
            "awk 'BEGIN {{ \
                 x = 1; n = 0; \
                 while (n < {max}) {{ \
                     for (k = 0; k < {burst}; k++) {{ \
                         x = (x * 16807) % 2147483647; \
                         printf \"line %d %d %s\\n\", n, x, substr(\"{letters}\", 1 + x % 31, x % 29); \
                         n++; \
                     }} \
                     fflush(); \
                     if (system(\"sleep 0.05; test -e {stop}\") == 0) break; \
                 }} \
                 print n > \"{total}\"; \
             }}'; exec sleep 1000"
        )
    }

    /// Every line it could print, in order.
    pub(crate) fn lines() -> Vec<String> {
        let mut random = 1_u64;
        let line = |number| {
            random = random * 16_807 % 2_147_483_647;
            let (start, length) = ((random % 31) as usize, (random % 29) as usize);
            let mut line = format!("line {number} {random} ");
            line.push_str(&Self::LETTERS[start..start + length]);
            line.truncate(line.trim_end().len());
            line
        };
        (0..Self::LINES_MAX).map(line).collect()
    }

    /// Waits until it has stopped, and gives back how many lines it printed.
    pub(crate) async fn total(&self) -> u64 {
        number_in(&self.total).await
    }
}

/// A shell line that paints all over the alternate screen until `stop` is there.
pub(crate) fn painter(stop: &Path) -> String {
    let mut colours = String::new();
    for colour in 31..38 {
        write!(colours, "{colour};").unwrap();
    }
    format!(
        "printf '\\033[?1049h'; awk 'BEGIN {{ \
             x = 7; \
             do {{ \
                 for (k = 0; k < 20; k++) {{ \
                     x = (x * 16807) % 2147483647; \
                     printf \"\\033[%d;%dH\\033[%d;1m%x\\033[m \", 1 + x % 39, 1 + x % 100, 31 + x % 7, x; \
                     if (x % 50 == 0) printf \"\\033[2J\"; \
                     if (x % 17 == 0) printf \"\\033[5;20r\\033[20;1H\\n\\033[r\"; \
                 }} \
                 fflush(); \
             }} while (system(\"sleep 0.04; test -e {}\") != 0); \
         }}'; exec sleep 1000",
        stop.display()
    )
}

/// Asks the terminal again and again where the cursor is, and writes the answers down.
#[derive(Debug)]
pub(crate) struct Asker {
    stop: PathBuf,
    pub(crate) log: PathBuf,
    total: PathBuf,
}

impl Asker {
    /// The answer, since it asks from the first cell only.
    pub(crate) const ANSWER: &str = "\x1b[1;1R";

    pub(crate) fn new(home: &Home) -> Self {
        let (log, total) = (home.path("answers"), home.path("asked"));
        Self { stop: home.path("stop"), log, total }
    }

    /// The shell line of the program.
    pub(crate) fn line(&self) -> String {
        let (stop, log) = (self.stop.display(), self.log.display());
        format!(
            "stty raw -echo; n=0; while [ ! -e {stop} ]; do \
                 printf '\\033[H\\033[6n'; head -c 6 >> {log}; n=$((n+1)); sleep 0.02; \
             done; echo $n > {}; exec cat >> {log}",
            self.total.display()
        )
    }

    /// Waits until it has stopped, and gives back how often it asked.
    pub(crate) async fn total(&self) -> u64 {
        number_in(&self.total).await
    }
}
