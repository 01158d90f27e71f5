//! How much is done, for how long, and what is asked of it.

use std::path::PathBuf;
use std::time::Duration;

use crate::soak::fault::Fault;

/// The load, and how long it lasts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The program of the daemon.
    pub(crate) program: PathBuf,
    pub(crate) span: Duration,
    pub(crate) sessions: usize,
    /// Sessions whose programs print as fast as they can.
    pub(crate) flooding: usize,
    pub(crate) readers: usize,
    /// Each has a session of its own.
    pub(crate) writers: usize,
    /// They take turns with the lease of one session.
    pub(crate) churners: usize,
    /// All of one busy session.
    pub(crate) observers: usize,
    pub(crate) reads_per_second: u64,
    pub(crate) writes_per_second: u64,
    /// From the end of a fault to the next one.
    pub(crate) between_faults: Duration,
    pub(crate) between_samples: Duration,
    /// Whether times and growth are judged, which takes minutes.
    pub(crate) judges_figures: bool,
    /// What does not go wrong.
    pub(crate) without: Option<Fault>,
}

/// How slow the slowest of a hundred may be between faults.
pub(crate) const READ_P99_MAX: Duration = Duration::from_millis(25);
pub(crate) const WRITE_P99_MAX: Duration = Duration::from_millis(50);

/// What is run without being asked for more.
const MINIATURE: Duration = Duration::from_secs(10);
/// Nothing shorter is judged by its figures.
const JUDGED: Duration = Duration::from_secs(300);

impl Plan {
    /// Reads `--for DURATION` (`90s`, `10m`, `1h`), `--full`, and `--without FAULT` by its name in the table; other words
    /// are those of a test runner. The program is that of the environment's `SOAK_PROGRAM`, else the one that was built
    /// with the test.
    pub(crate) fn of(words: &[String]) -> Result<Self, String> {
        let program = std::env::var_os("SOAK_PROGRAM")
            .map_or_else(|| crate::harness::processes::PROGRAM.into(), PathBuf::from);
        let after = |option| words.iter().skip_while(move |word| *word != option).nth(1);
        let Some(span) = after("--for") else { return Ok(Self::miniature(program)) };
        let span = duration_of(span).ok_or_else(|| format!("invalid duration `{span}`"))?;
        let full = words.iter().any(|word| word == "--full");
        let without = after("--without").map(|name| Fault::named(name)).transpose()?;
        Ok(Self { without, ..Self::long(program, span, if full { 10 } else { 1 }) })
    }

    fn miniature(program: PathBuf) -> Self {
        Self {
            program,
            span: MINIATURE,
            sessions: 10,
            flooding: 1,
            readers: 4,
            writers: 2,
            churners: 2,
            observers: 4,
            reads_per_second: 80,
            writes_per_second: 20,
            between_faults: Duration::from_millis(200),
            between_samples: Duration::from_millis(500),
            judges_figures: false,
            without: None,
        }
    }

    /// The base load, or several times that; the calls grow three times at most.
    fn long(program: PathBuf, span: Duration, times: usize) -> Self {
        let calls = times.min(3) as u64;
        Self {
            program,
            span,
            sessions: 50 * times,
            flooding: if times == 1 { 2 } else { 8 },
            readers: 40 * times,
            writers: 6 * times,
            churners: 4 * times,
            observers: 50 * times,
            reads_per_second: 800 * calls,
            writes_per_second: 200 * calls,
            between_faults: Duration::from_secs(10),
            between_samples: Duration::from_secs(5),
            judges_figures: span >= JUDGED,
            without: None,
        }
    }

    /// The part of the span from which on no fault ends the daemon, so that one process is measured.
    pub(crate) fn one_daemon_from(&self) -> Duration {
        self.span / 2
    }

    /// When what grows is measured from: programs and caches have settled by then.
    pub(crate) fn measured_from(&self) -> Duration {
        self.span * 6 / 10
    }
}

fn duration_of(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    (number > 0).then(|| Duration::from_secs(number * seconds))
}
