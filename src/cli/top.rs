//! `top`: shows the current sessions and repaints when they change.
//!
//! The daemon signals changes, and `top` reads them at most once per interval.

mod activity;
mod choice;
mod screen;

use std::collections::HashSet;
use std::env;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::cli::context::Context;
use crate::cli::daemon::{DaemonClient, RETURN_MAX};
use crate::cli::duration::parse_duration;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::{OutputForm, reader_gone};
use crate::cli::table::render;
use crate::cli::top::activity::{HEAD, SessionPicture};
use crate::cli::top::choice::{Choice, TopWish};
use crate::cli::top::screen::{Painting, TopScreen};
use crate::session::clock::Clock;
use crate::transport::client::ClientError;
use crate::wire::mount::MountList;
use crate::wire::session::SessionList;

/// The shortest time between two pictures.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The most subscribed sessions. With more sessions, `top` polls for each picture.
const SUBSCRIPTIONS_MAX: usize = 256;

/// Show the sessions and their activity until you press q or C-c
///
/// Select a session with the arrow keys. Enter attaches to it, and detaching comes back; k kills it, after a question.
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
        let left = left().map_err(|error| CliFailure::Other(anyhow::Error::new(error)))?;
        let mut view = View { context, screen, choice: Choice::default() };
        tokio::select! {
            () = left => Ok(CommandExit::Done),
            shown = self.show(&mut feed, &mut view) => shown,
        }
    }

    /// Shows picture after picture, under one daemon after the other.
    async fn show(&self, feed: &mut Feed, view: &mut View<'_>) -> Result<CommandExit, CliFailure> {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first = true;
        loop {
            let told = tokio::select! {
                () = feed.daemon.client().closed() => Err(ClientError::Closed.into()),
                _ = ticks.tick() => feed.advance().await,
                wish = view.wish() => match wish {
                    Some(TopWish::Leave) => return Ok(CommandExit::Done),
                    wish => view.grant(wish, feed).await.map(|()| false),
                },
            };
            let changed = match told {
                Err(CliFailure::Request(ClientError::Closed)) => {
                    feed.resume().await?;
                    ticks.reset_immediately();
                    continue;
                }
                advanced => advanced?,
            };
            match view.screen {
                Some(_) => view.paint(&feed.picture)?,
                // An unchanged picture is not printed again.
                None if changed || first => print(view.context, &feed.picture)?,
                None => {}
            }
            first = false;
        }
    }
}

/// What a person sees and has chosen.
struct View<'a> {
    context: &'a Context,
    /// None without a terminal.
    screen: Option<TopScreen>,
    choice: Choice,
}

impl View<'_> {
    /// Waits for keys, and returns what they ask for, if anything.
    async fn wish(&mut self) -> Option<TopWish> {
        let Some(screen) = &self.screen else { return std::future::pending().await };
        let mut keys = [0; 64];
        match screen.read(&mut keys).await {
            count @ 1.. => self.choice.on_keys(&keys[..count]),
            // The terminal is gone.
            0 => Some(TopWish::Leave),
        }
    }

    async fn grant(&mut self, wish: Option<TopWish>, feed: &Feed) -> Result<(), CliFailure> {
        match wish {
            Some(TopWish::Attach { session }) => self.attach(&session).await,
            Some(TopWish::Kill { session }) => {
                let kill = json!({"session": session, "action": "kill"});
                let told = match feed.daemon.call("manage_session", kill).await {
                    Ok(answer) => answer.text,
                    Err(failure @ CliFailure::Request(ClientError::Closed)) => return Err(failure),
                    Err(failure) => failure.to_string(),
                };
                self.choice.tell(&told);
                Ok(())
            }
            Some(TopWish::Leave) | None => Ok(()),
        }
    }

    /// Gives the terminal to `attach` until that ends.
    async fn attach(&mut self, session: &str) -> Result<(), CliFailure> {
        self.screen = None;
        let mut attach =
            Command::new(env::current_exe().context("the program's own file is unknown")?);
        attach.arg("--socket").arg(self.context.operator_socket()?).args(["attach", session]);
        // It would be painted over.
        attach.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::piped());
        let ended = attach.spawn().context("cannot attach")?.wait_with_output().await;
        let said = String::from_utf8_lossy(&ended.context("cannot attach")?.stderr).into_owned();
        self.choice.tell(&said);
        self.screen = TopScreen::take()?;
        Ok(())
    }

    fn paint(&mut self, picture: &SessionPicture) -> Result<(), CliFailure> {
        self.choice.on_picture(picture.named());
        let table = render(HEAD, &picture.rows());
        let (head, rows) = table.split_once('\n').unwrap_or((&table, ""));
        let Some(screen) = &self.screen else { return Ok(()) };
        screen.paint(&Painting {
            summary: &format!("termgate  {}", picture.summary()),
            head,
            rows: &rows.lines().collect::<Vec<_>>(),
            selected: self.choice.selected(),
            bottom: &self.choice.bottom(screen.cols()),
        })
    }
}

/// Completes when standard output is closed, or a signal ends `top`.
fn left() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
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
    /// Whether the subscriptions to all lists succeeded.
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
                && subscribe(&self.daemon, "termgate://leases").await?
                && subscribe(&self.daemon, "termgate://mounts").await?;
        }
        let list: SessionList = self.daemon.call("list_sessions", json!({})).await?.read()?;
        let mounts = self.daemon.call("manage_mounts", json!({"action": "list"})).await?;
        let mounts = mounts.read::<MountList>()?.mounts;
        let picture = SessionPicture::of(list.sessions, self.clock.now(), &self.picture);
        self.picture = picture.with_mounts(mounts);
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
            // With `since`, also signals that a program began to wait, which nothing on the screen shows.
            let uri = format!("termgate://session/{id}/grid?since=0");
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

fn print(context: &Context, picture: &SessionPicture) -> Result<(), CliFailure> {
    let table = render(HEAD, &picture.rows());
    context.output.item(&picture.data(), &format!("{}\n{table}", picture.summary()))
}
