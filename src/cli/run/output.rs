//! A command's output while it runs: found among the commands of its session, and shown as it comes.
//!
//! It never says how the command ended; that is for the tool, and for what [`Printed`] was told last.

use std::sync::Arc;

use tokio::sync::watch;

use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::output::{Form, Output};
use crate::cli::printed::Printed;
use crate::core::shell::commands::record::CommandRecord;
use crate::transport::client::ClientError;
use crate::wire::command::{CommandWire, KnownCommands};

/// A command that was sent, or is about to be.
pub(super) struct Live<'a> {
    pub(super) session: String,
    daemon: Arc<Daemon>,
    output: &'a Output,
    /// Its text, as the session has it.
    text: String,
    /// The newest command before it.
    before: u64,
    news: watch::Receiver<u64>,
    /// Its number and its output, once it is known to the session.
    printed: Option<(u64, Printed)>,
}

impl<'a> Live<'a> {
    /// Begins to look, before the command is sent.
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

    /// Goes on under the next daemon; what was shown is not shown again.
    pub(super) async fn resume(&mut self, daemon: Arc<Daemon>) -> Result<(), Failure> {
        self.news = daemon.client().news();
        self.daemon = daemon;
        self.daemon.subscribe(&self.list()).await?;
        if let Some((_, printed)) = &self.printed {
            self.daemon.subscribe(printed.uri()).await?;
        }
        Ok(())
    }

    /// Shows what came while nobody looked.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        match self.output.form() {
            Form::Json => Ok(()),
            Form::People => self.show().await,
        }
    }

    /// The daemon that it is shown by.
    pub(super) fn daemon(&self) -> Arc<Daemon> {
        Arc::clone(&self.daemon)
    }

    /// Its number, once it is known.
    pub(super) fn known(&self) -> Option<u64> {
        self.printed.as_ref().map(|(number, _)| *number)
    }

    /// Its number, looked for among the commands of its session.
    pub(super) async fn number(&mut self) -> Result<Option<u64>, Failure> {
        if self.printed.is_none() {
            self.find().await?;
        }
        Ok(self.known())
    }

    /// Waits for something new and shows it; for ever where nothing is to be shown.
    pub(super) async fn next(&mut self) -> Result<(), Failure> {
        match self.output.form() {
            Form::Json => std::future::pending().await,
            Form::People => self.advance().await,
        }
    }

    /// Shows the rest until the command has ended, and gives back its code, where anybody says.
    pub(super) async fn rest(&mut self) -> Result<Option<i64>, Failure> {
        self.show().await?;
        loop {
            if let Some((_, printed)) = self.printed.as_ref().filter(|(_, it)| it.has_ended()) {
                return Ok(printed.exit_code());
            }
            self.advance().await?;
        }
    }

    /// Shows what is left of the command that has this number, as the tool says.
    pub(super) async fn finish(&mut self, number: u64) -> Result<(), Failure> {
        if self.output.form() == Form::Json {
            return Ok(());
        }
        if self.printed.as_ref().is_none_or(|(found, _)| *found != number) {
            self.printed = Some((number, Printed::of(&self.session, number)));
        }
        self.show().await
    }

    /// Says that what is left of the output cannot be shown any more.
    pub(super) fn give_up(&self) {
        self.output.note("[what it printed last is gone with its session]");
    }

    async fn advance(&mut self) -> Result<(), Failure> {
        // Without a daemon there are no news, and the answer says so as well.
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

    /// Looks for the command. Nobody else can have sent one of this text since: whoever runs one has
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

/// Whether this command of a list, which may have only its beginning, can be the one of this text.
fn may_be(listed: &CommandWire, text: &str) -> bool {
    // Where only the directory was cut, the text is whole.
    let beginning = listed.command.strip_suffix('…').filter(|_| listed.cut);
    listed.command == text || beginning.is_some_and(|beginning| text.starts_with(beginning))
}
