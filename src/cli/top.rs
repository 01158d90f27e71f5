//! `top`: shows the current sessions and repaints when they change.
//!
//! The daemon signals changes, and `top` reads them at most once per interval.

mod activity;

use std::collections::HashSet;
use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::cli::context::Context;
use crate::cli::daemon::{DaemonClient, RETURN_MAX};
use crate::cli::duration::parse_duration;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::{OutputForm, reader_gone};
use crate::cli::raw_terminal::RawTerminal;
use crate::cli::table::render;
use crate::cli::top::activity::{HEAD, SessionPicture};
use crate::session::clock::Clock;
use crate::transport::client::ClientError;
use crate::wire::session::SessionList;

/// The shortest time between two pictures.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The most subscribed sessions. With more sessions, `top` polls for each picture.
const SUBSCRIPTIONS_MAX: usize = 256;

/// Show the sessions and their activity until you press q or C-c
///
/// If the daemon exits, it continues under the next one, and ends with 7 if none returns. Without a
/// terminal it prints one table after the other; with --json, one object per line.
#[derive(Debug, Args)]
pub struct TopCommand {
    /// Print one table and exit
    #[arg(long)]
    once: bool,
    /// The time between updates, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
}

impl TopCommand {
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        if self.interval < INTERVAL_MIN {
            return Err(CliFailure::Usage("--interval: at least 100ms".to_owned()));
        }
        let daemon = context.daemon().await?;
        let clock = context.output.clock().clone();
        let mut feed = Feed::new(daemon, clock);
        feed.advance().await?;
        if self.once {
            print(context, &feed.picture)?;
            return Ok(CommandExit::Done);
        }
        let screen = match context.output.form() {
            OutputForm::People => TopScreen::take()?,
            OutputForm::Json => None,
        };
        self.watch(context, &mut feed, screen.as_ref()).await
    }

    async fn watch(
        &self,
        context: &Context,
        feed: &mut Feed,
        screen: Option<&TopScreen>,
    ) -> Result<CommandExit, CliFailure> {
        let left = left(screen).map_err(|error| CliFailure::Other(anyhow::Error::new(error)))?;
        tokio::select! {
            () = left => Ok(CommandExit::Done),
            shown = self.show(context, feed, screen) => shown,
        }
    }

    /// Shows picture after picture, under one daemon after the other.
    async fn show(
        &self,
        context: &Context,
        feed: &mut Feed,
        screen: Option<&TopScreen>,
    ) -> Result<CommandExit, CliFailure> {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first = true;
        loop {
            let told = tokio::select! {
                () = feed.daemon.client().closed() => Err(ClientError::Closed.into()),
                _ = ticks.tick() => feed.advance().await,
            };
            let changed = match told {
                Err(CliFailure::Request(ClientError::Closed)) => {
                    feed.resume().await?;
                    ticks.reset_immediately();
                    continue;
                }
                advanced => advanced?,
            };
            match screen {
                Some(screen) => paint(screen, &feed.picture)?,
                // An unchanged picture is not printed again.
                None if changed || first => print(context, &feed.picture)?,
                None => {}
            }
            first = false;
        }
    }
}

/// Completes when the user leaves, standard output is closed, or a signal ends `top`.
fn left(screen: Option<&TopScreen>) -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let person = async move {
        match screen {
            Some(screen) => screen.left().await,
            None => std::future::pending().await,
        }
    };
    Ok(async move {
        tokio::select! {
            () = person => {}
            () = reader_gone() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// The sessions and the signal that they changed.
struct Feed {
    daemon: DaemonClient,
    clock: Clock,
    picture: SessionPicture,
    subscribed: HashSet<String>,
    /// Whether the subscriptions to both lists succeeded.
    lists: bool,
    /// Whether to read the next picture even without a signal.
    due: bool,
}

impl Feed {
    fn new(daemon: DaemonClient, clock: Clock) -> Self {
        let (picture, subscribed) = (SessionPicture::default(), HashSet::new());
        Self { daemon, clock, picture, subscribed, lists: false, due: true }
    }

    /// Continues under the next daemon.
    async fn resume(&mut self) -> Result<(), CliFailure> {
        self.daemon.resume(RETURN_MAX).await.map_err(|_| ClientError::Closed)?;
        // Rates start again with each daemon.
        self.picture = SessionPicture::default();
        self.subscribed.clear();
        (self.lists, self.due) = (false, true);
        Ok(())
    }

    /// Updates the picture. Returns whether anything but the time changed.
    async fn advance(&mut self) -> Result<bool, CliFailure> {
        let told = self.daemon.news().has_changed().unwrap_or(true);
        if !self.due && !told {
            self.picture = self.picture.still(self.clock.now());
            return Ok(false);
        }
        self.daemon.news().mark_unchanged();
        if !self.lists {
            self.lists = subscribe(&self.daemon, "termgate://sessions").await?
                && subscribe(&self.daemon, "termgate://leases").await?;
        }
        let list: SessionList = self.daemon.call("list_sessions", json!({})).await?.read()?;
        self.picture = SessionPicture::of(list.sessions, self.clock.now(), &self.picture);
        self.follow().await?;
        Ok(true)
    }

    /// Subscribes to new sessions, within the bound.
    async fn follow(&mut self) -> Result<(), CliFailure> {
        self.due = !self.lists;
        let ids: HashSet<String> = self.picture.ids().map(str::to_owned).collect();
        self.subscribed.retain(|id| ids.contains(id));
        for id in ids {
            if self.subscribed.contains(&id) {
                continue;
            }
            // Changes between the picture and the subscription are not signalled, so one more picture is due.
            self.due = true;
            let uri = format!("termgate://session/{id}/grid");
            let room = self.subscribed.len() < SUBSCRIPTIONS_MAX;
            if room && subscribe(&self.daemon, &uri).await? {
                self.subscribed.insert(id);
            }
        }
        Ok(())
    }
}

/// Subscribes to a resource. Returns whether it succeeded.
async fn subscribe(daemon: &DaemonClient, uri: &str) -> Result<bool, CliFailure> {
    match daemon.client().request("resources/subscribe", json!({"uri": uri})).await {
        Ok(_) => Ok(true),
        // The session ended at the same moment, or there are too many subscriptions.
        Err(ClientError::Refused { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn paint(screen: &TopScreen, picture: &SessionPicture) -> Result<(), CliFailure> {
    let table = render(HEAD, &picture.rows());
    let summary = format!("termgate  {}  (q to leave)", picture.summary());
    let lines: Vec<&str> = std::iter::once(summary.as_str()).chain(table.lines()).collect();
    screen.paint(&lines)
}

fn print(context: &Context, picture: &SessionPicture) -> Result<(), CliFailure> {
    let table = render(HEAD, &picture.rows());
    context.output.item(&picture.data(), &format!("{}\n{table}", picture.summary()))
}

/// The alternate screen, without a cursor and without line wrap.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The keys that leave `top`; the last one is C-c.
const LEAVING: [u8; 3] = [b'q', b'Q', 0x03];

/// A terminal that was taken over. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct TopScreen {
    terminal: RawTerminal,
    coloured: bool,
}

impl TopScreen {
    /// Takes the terminal over. Returns none when standard input or output is not a terminal.
    pub(super) fn take() -> Result<Option<Self>, CliFailure> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let terminal = RawTerminal::open().map_err(CliFailure::Output)?;
        terminal.enter().map_err(CliFailure::Output)?;
        let coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Self { terminal, coloured };
        put(ENTER)?;
        Ok(Some(screen))
    }

    /// Shows only these lines; the second one is the head of a table.
    pub(super) fn paint(&self, lines: &[&str]) -> Result<(), CliFailure> {
        let (height, width) = self.terminal.size();
        let (height, width) = (usize::from(height), usize::from(width));
        let (on, off) = if self.coloured { ("\x1b[7m", "\x1b[0m") } else { ("", "") };
        let mut text = "\x1b[H".to_owned();
        for (index, line) in fitting(lines, height).into_iter().enumerate() {
            let line: String = line.chars().take(width).collect();
            let end = if index == 0 { "" } else { "\r\n" };
            let (on, off) = if index == 1 { (on, off) } else { ("", "") };
            write!(text, "{end}{on}{line}{off}\x1b[K")
                .expect("text takes all that is written to it");
        }
        text.push_str("\x1b[J");
        put(&text)
    }

    /// Waits until the user leaves or the terminal is gone.
    pub(super) async fn left(&self) {
        let mut keys = [0; 64];
        while let Ok(count @ 1..) = self.terminal.read(&mut keys).await {
            if keys[..count].iter().any(|key| LEAVING.contains(key)) {
                return;
            }
        }
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        self.terminal.leave();
        // A closed terminal cannot show anything.
        let _ = put(LEAVE);
    }
}

/// The lines that fit. If some do not, the last line shows how many.
fn fitting<'a>(lines: &[&'a str], height: usize) -> Vec<std::borrow::Cow<'a, str>> {
    let mut shown: Vec<_> = lines.iter().take(height).map(|line| (*line).into()).collect();
    let hidden = lines.len() - shown.len();
    if let (true, Some(last)) = (hidden > 0, shown.last_mut()) {
        *last = format!("… and {} more", hidden + 1).into();
    }
    shown
}

fn put(text: &str) -> Result<(), CliFailure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliFailure::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_in_the_last_line() {
        assert_eq!(fitting(&["a", "b", "c"], 3), ["a", "b", "c"]);
        assert_eq!(fitting(&["a", "b", "c", "d"], 3), ["a", "b", "… and 2 more"]);
        assert!(fitting(&["a"], 0).is_empty());
    }
}
