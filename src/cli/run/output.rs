//! Finds a running command in its session and shows its output as it arrives.
//!
//! The tool reports how the command ended, or [`Printed`] as of its last read.

use std::sync::Arc;

use tokio::sync::watch;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::output::{Form, Output};
use crate::cli::printed::Printed;
use crate::core::shell::commands::record::CommandRecord;
use crate::transport::client::ClientError;
use crate::wire::command::{CommandWire, KnownCommands};

/// A command that was sent or is about to be sent.
pub(super) struct Live<'a> {
    pub(super) session: String,
    daemon: Arc<Daemon>,
    output: &'a Output,
    /// Its text in the form that the session lists.
    text: String,
    /// The newest command before it.
    before: u64,
    news: watch::Receiver<u64>,
    /// Its number and output, once the session lists it.
    printed: Option<(u64, Printed)>,
}

impl<'a> Live<'a> {
    /// Starts to watch the session, before the command is sent.
    pub(super) async fn begin(
        daemon: Arc<Daemon>,
        output: &'a Output,
        session: String,
        line: &str,
    ) -> Result<Self, Failure> {
        let text = line.trim_end_matches(['\n', '\r']);
        let text = text[..text.floor_char_boundary(CommandRecord::TEXT_MAX)].to_owned();
        let news = daemon.client().news();
        let mut live = Self { session, daemon, output, text, before: 0, news, printed: None };
        live.daemon.subscribe(&live.list()).await?;
        let known: KnownCommands = live.daemon.read(&live.list()).await?;
        live.before = known.commands.iter().map(|it| it.command_id).max().unwrap_or_default();
        Ok(live)
    }

    /// Continues under the next daemon, without repeating output.
    pub(super) async fn resume(&mut self, daemon: Arc<Daemon>) -> Result<(), Failure> {
        self.news = daemon.client().news();
        self.daemon = daemon;
        self.daemon.subscribe(&self.list()).await?;
        if let Some((_, printed)) = &self.printed {
            self.daemon.subscribe(printed.uri()).await?;
        }
        Ok(())
    }

    /// Shows the output that arrived meanwhile.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        match self.output.form() {
            Form::Json => Ok(()),
            Form::People => self.show().await,
        }
    }

    /// The daemon in use.
    pub(super) fn daemon(&self) -> Arc<Daemon> {
        Arc::clone(&self.daemon)
    }

    /// The command's number, once it is known.
    pub(super) fn known(&self) -> Option<u64> {
        self.printed.as_ref().map(|(number, _)| *number)
    }

    /// The command's number, looked up in the session if necessary.
    pub(super) async fn number(&mut self) -> Result<Option<u64>, Failure> {
        if self.printed.is_none() {
            self.find().await?;
        }
        Ok(self.known())
    }

    /// Waits for new output and shows it. It never completes when nothing is to be shown.
    pub(super) async fn next(&mut self) -> Result<(), Failure> {
        match self.output.form() {
            Form::Json => std::future::pending().await,
            Form::People => self.advance().await,
        }
    }

    /// Shows the rest until the command ends, and returns the exit code if it is known.
    pub(super) async fn rest(&mut self) -> Result<Option<i64>, Failure> {
        self.show().await?;
        loop {
            if let Some((_, printed)) = self.printed.as_ref().filter(|(_, it)| it.has_ended()) {
                return Ok(printed.exit_code());
            }
            self.advance().await?;
        }
    }

    /// Shows the remaining output of the command with this number, which the tool reported.
    pub(super) async fn finish(&mut self, number: u64) -> Result<(), Failure> {
        if self.output.form() == Form::Json {
            return Ok(());
        }
        if self.printed.as_ref().is_none_or(|(found, _)| *found != number) {
            self.printed = Some((number, Printed::of(&self.session, number)));
        }
        self.show().await
    }

    /// Notes that the remaining output is lost.
    pub(super) fn give_up(&self) {
        self.output.note("[what it printed last is gone with its session]");
    }

    async fn advance(&mut self) -> Result<(), Failure> {
        // Without a daemon there are no changes, and the pending answer reports that as well.
        self.news.changed().await.map_err(|_| ClientError::Closed)?;
        self.show().await
    }

    async fn show(&mut self) -> Result<(), Failure> {
        self.number().await?;
        match &mut self.printed {
            Some((_, printed)) => printed.show(&self.daemon, self.output).await,
            None => Ok(()),
        }
    }

    /// Looks for the command. No other client can have sent the same text since, because sending requires
    /// the lease.
    async fn find(&mut self) -> Result<(), Failure> {
        let known: KnownCommands = self.daemon.read(&self.list()).await?;
        let is_it = |it: &&CommandWire| it.command_id > self.before && may_be(it, &self.text);
        let Some(number) = known.commands.iter().find(is_it).map(|it| it.command_id) else {
            return Ok(());
        };
        let printed = Printed::of(&self.session, number);
        self.daemon.subscribe(printed.uri()).await?;
        self.printed = Some((number, printed));
        Ok(())
    }

    fn list(&self) -> String {
        format!("termgate://session/{}/commands", self.session)
    }
}

/// Whether a listed command, which may be cut, can be the one with this text.
fn may_be(listed: &CommandWire, text: &str) -> bool {
    // If only the directory was cut, the text is complete.
    let beginning = listed.command.strip_suffix('…').filter(|_| listed.cut);
    listed.command == text || beginning.is_some_and(|beginning| text.starts_with(beginning))
}
