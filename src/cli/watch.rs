//! `watch`: follows what changes on a session's screen.

use std::pin::pin;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::cli::attach::view::Ended;
use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::reader;
use crate::cli::rows::of_delta;

/// Print the rows of a session as they change, until its program ends
///
/// With --json it prints each delta as one object a line.
#[derive(Debug, Args)]
pub struct Watch {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Only what changed after this watermark; without it the whole screen comes first
    #[arg(long, value_name = "WATERMARK")]
    since: Option<u64>,
    /// Which rows to follow: the screen, some of the history too, or all of it
    #[arg(long, value_enum, default_value_t = Lane::Foreground)]
    lane: Lane,
    /// Print so many deltas a second at most
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,
}

/// Which rows are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lane {
    Foreground,
    Recent,
    History,
}

impl Lane {
    fn word(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Recent => "recent",
            Self::History => "history",
        }
    }
}

impl Watch {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead, or that it has gone.
    pub async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let daemon = context.daemon().await?;
        let mut deltas = daemon.client().observe(&self.parameters())?;
        let mut gone = pin!(reader::gone());
        loop {
            tokio::select! {
                () = &mut gone => return Ok(Exit::Done),
                delta = deltas.next() => {
                    let Some(delta) = delta? else { return Ok(Exit::Done) };
                    context.output.item(&delta, &of_delta(&delta))?;
                    if let Some(ended) = end(&delta) {
                        context.output.note(&format!("[{} {ended}]", self.session));
                        return Ok(Exit::Done);
                    }
                }
            }
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "session": self.session,
            "since": self.since,
            "lane": self.lane.word(),
            "max_rate_hz": self.rate,
        })
    }
}

/// How the program has ended, if it has, after which nothing more is drawn.
fn end(delta: &Value) -> Option<Ended> {
    let updates = delta["updates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let exit = updates.iter().find(|update| update["type"] == "exit")?;
    Some(Ended::deserialize(&exit["status"]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_program_ends_the_watch() {
        let told = |status| {
            let ended = end(&json!({"updates": [{"type": "exit", "status": status}]}));
            ended.expect("it has ended").to_string()
        };
        assert_eq!(told(json!({"code": 3})), "ended with code 3");
        assert_eq!(told(json!({"signal": 9})), "ended by SIGKILL");
        assert!(told(json!({"cause": "holder_lost"})).contains("held its terminal is gone"));
        assert_eq!(told(json!({})), "ended, nobody knows how");
        assert_eq!(end(&json!({"updates": [{"type": "row", "row": 1, "text": "exit"}]})), None);
        assert_eq!(end(&json!({})), None);
    }
}
