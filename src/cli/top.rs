//! `top`: shows the current sessions and repaints when they change.
//!
//! The daemon signals changes, and `top` reads them at most once per interval.

mod activity;
mod screen;

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::cli::context::Context;
use crate::cli::daemon::Daemon;
use crate::cli::duration::parse_duration;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Form;
use crate::cli::reader;
use crate::cli::table::render;
use crate::cli::top::activity::{HEAD, Picture};
use crate::cli::top::screen::Screen;
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
pub struct Top {
    /// Print one table and exit
    #[arg(long)]
    once: bool,
    /// The time between updates, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
}

impl Top {
    /// Runs the command.
    ///
    /// # Errors
    /// No daemon runs, or it exited and none returned.
    pub async fn run(self, context: &Context) -> Result<Exit, Failure> {
        if self.interval < INTERVAL_MIN {
            return Err(Failure::Usage("--interval: 100ms is the least".to_owned()));
        }
        let daemon = context.daemon().await?;
        let clock = context.output.clock().clone();
        let mut feed = Feed::open(daemon, clock).await?;
        if self.once {
            print(context, feed.picture())?;
            return Ok(Exit::Done);
        }
        let screen = match context.output.form() {
            Form::People => Screen::take()?,
            Form::Json => None,
        };
        self.watch(context, &mut feed, screen.as_ref()).await
    }

    async fn watch(
        &self,
        context: &Context,
        feed: &mut Feed,
        screen: Option<&Screen>,
    ) -> Result<Exit, Failure> {
        let left = left(screen).map_err(|error| Failure::Other(anyhow::Error::new(error)))?;
        tokio::select! {
            () = left => Ok(Exit::Done),
            shown = self.show(context, feed, screen) => shown,
        }
    }

    /// Shows picture after picture, under one daemon after the other.
    async fn show(
        &self,
        context: &Context,
        feed: &mut Feed,
        screen: Option<&Screen>,
    ) -> Result<Exit, Failure> {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first = true;
        loop {
            let told = tokio::select! {
                () = feed.closed() => Err(ClientError::Closed.into()),
                _ = ticks.tick() => feed.advance().await,
            };
            let changed = match told {
                Err(Failure::Request(ClientError::Closed)) => {
                    let daemon = context.daemon_after().await.map_err(|_| ClientError::Closed)?;
                    *feed = Feed::open(daemon, feed.clock.clone()).await?;
                    true
                }
                advanced => advanced?,
            };
            match screen {
                Some(screen) => paint(screen, feed.picture())?,
                // An unchanged picture is not printed again.
                None if changed || first => print(context, feed.picture())?,
                None => {}
            }
            first = false;
        }
    }
}

/// Completes when the user leaves, standard output is closed, or a signal ends `top`.
fn left(screen: Option<&Screen>) -> io::Result<impl Future<Output = ()>> {
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
            () = reader::gone() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// The sessions and the signal that they changed.
struct Feed {
    daemon: Daemon,
    clock: Clock,
    picture: Picture,
    news: tokio::sync::watch::Receiver<u64>,
    subscribed: HashSet<String>,
    /// Whether the subscriptions to both lists succeeded.
    lists: bool,
    /// Whether to read the next picture even without a signal.
    due: bool,
}

impl Feed {
    async fn open(daemon: Daemon, clock: Clock) -> Result<Self, Failure> {
        let news = daemon.client().news();
        let mut lists = true;
        for list in ["termgate://sessions", "termgate://leases"] {
            lists &= subscribe(&daemon, list).await?;
        }
        let picture = picture(&daemon, &clock, None).await?;
        let subscribed = HashSet::new();
        let mut feed = Self { daemon, clock, picture, news, subscribed, lists, due: false };
        feed.follow().await?;
        Ok(feed)
    }

    fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Updates the picture. Returns whether anything but the time changed.
    async fn advance(&mut self) -> Result<bool, Failure> {
        let told = self.news.has_changed().unwrap_or(true);
        if !self.due && !told {
            self.picture = self.picture.still(self.clock.now());
            return Ok(false);
        }
        self.news.borrow_and_update();
        self.picture = picture(&self.daemon, &self.clock, Some(&self.picture)).await?;
        self.follow().await?;
        Ok(true)
    }

    /// Subscribes to new sessions, within the bound.
    async fn follow(&mut self) -> Result<(), Failure> {
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

    fn closed(&self) -> impl Future<Output = ()> {
        self.daemon.client().closed()
    }
}

/// Subscribes to a resource. Returns whether it succeeded.
async fn subscribe(daemon: &Daemon, uri: &str) -> Result<bool, Failure> {
    match daemon.client().request("resources/subscribe", json!({"uri": uri})).await {
        Ok(_) => Ok(true),
        // The session ended at the same moment, or there are too many subscriptions.
        Err(ClientError::Refused { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn picture(
    daemon: &Daemon,
    clock: &Clock,
    before: Option<&Picture>,
) -> Result<Picture, Failure> {
    let list: SessionList = daemon.call("list_sessions", json!({})).await?.read()?;
    Ok(Picture::of(list.sessions, clock.now(), before))
}

fn paint(screen: &Screen, picture: &Picture) -> Result<(), Failure> {
    let table = render(HEAD, &picture.rows());
    let summary = format!("termgate  {}  (q to leave)", picture.summary());
    let lines: Vec<&str> = std::iter::once(summary.as_str()).chain(table.lines()).collect();
    screen.paint(&lines)
}

fn print(context: &Context, picture: &Picture) -> Result<(), Failure> {
    let table = render(HEAD, &picture.rows());
    context.output.item(&picture.data(), &format!("{}\n{table}", picture.summary()))
}
