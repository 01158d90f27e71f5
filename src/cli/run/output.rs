//! Finds a running command in its session and shows its output as it arrives.
//!
//! The tool reports how the command ended, or [`Printed`] as of its last read.

use serde::Deserialize as _;

use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::cli::output::{CommandOutput, OutputForm};
use crate::core::counted::counted;
use crate::core::shell::commands::record::CommandRecord;
use crate::transport::client::ClientError;
use crate::wire::command::{CommandStatus, CommandWire, KnownCommands, OutputFacts};

/// A command that was sent or is about to be sent.
pub(super) struct LiveCommand<'a> {
    pub(super) session: String,
    pub(super) daemon: &'a mut DaemonClient,
    output: &'a CommandOutput,
    /// Its text in the form that the session lists.
    text: String,
    /// The newest command before it.
    before: u64,
    /// Its number and output, once the session lists it.
    printed: Option<(u64, Printed)>,
}

impl<'a> LiveCommand<'a> {
    /// Starts to watch the session, before the command is sent.
    pub(super) async fn begin(
        daemon: &'a mut DaemonClient,
        output: &'a CommandOutput,
        session: String,
        line: &str,
    ) -> Result<Self, CliFailure> {
        let text = line.trim_end_matches(['\n', '\r']);
        let text = text[..text.floor_char_boundary(CommandRecord::TEXT_MAX)].to_owned();
        let mut live = Self { session, daemon, output, text, before: 0, printed: None };
        live.subscribe().await?;
        let known: KnownCommands = live.daemon.read(&live.list()).await?;
        live.before = known.commands.iter().map(|it| it.command_id).max().unwrap_or_default();
        Ok(live)
    }

    /// Subscribes to the command under a new daemon.
    pub(super) async fn subscribe(&self) -> Result<(), CliFailure> {
        self.daemon.subscribe(&self.list()).await?;
        if let Some((_, printed)) = &self.printed {
            self.daemon.subscribe(printed.uri()).await?;
        }
        Ok(())
    }

    /// Shows the output that arrived meanwhile.
    pub(super) async fn catch_up(&mut self) -> Result<(), CliFailure> {
        match self.output.form() {
            OutputForm::Json => Ok(()),
            OutputForm::People => self.show().await,
        }
    }

    /// The command's number, once it is known.
    pub(super) fn known(&self) -> Option<u64> {
        self.printed.as_ref().map(|(number, _)| *number)
    }

    /// The command's number, looked up in the session if necessary.
    pub(super) async fn number(&mut self) -> Result<Option<u64>, CliFailure> {
        if self.printed.is_none() {
            self.find().await?;
        }
        Ok(self.known())
    }

    /// Waits for new output and shows it. It never completes when nothing is to be shown.
    pub(super) async fn next(&mut self) -> Result<(), CliFailure> {
        match self.output.form() {
            OutputForm::Json => std::future::pending().await,
            OutputForm::People => self.advance().await,
        }
    }

    /// Shows the rest until the command ends, and returns the exit code if it is known.
    pub(super) async fn rest(&mut self) -> Result<Option<i64>, CliFailure> {
        self.show().await?;
        loop {
            if let Some((_, printed)) = self.printed.as_ref().filter(|(_, it)| it.has_ended()) {
                return Ok(printed.exit_code());
            }
            self.advance().await?;
        }
    }

    /// Shows the remaining output of the command with this number, which the tool reported.
    pub(super) async fn finish(&mut self, number: u64) -> Result<(), CliFailure> {
        if self.output.form() == OutputForm::Json {
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

    async fn advance(&mut self) -> Result<(), CliFailure> {
        // Without a daemon there are no changes, and the pending answer reports that as well.
        self.daemon.news().changed().await.map_err(|_| ClientError::Closed)?;
        self.show().await
    }

    async fn show(&mut self) -> Result<(), CliFailure> {
        self.number().await?;
        match &mut self.printed {
            Some((_, printed)) => printed.show(self.daemon, self.output).await,
            None => Ok(()),
        }
    }

    /// Looks for the command. No other client can have sent the same text since, because sending requires
    /// the lease.
    async fn find(&mut self) -> Result<(), CliFailure> {
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

/// The member of `_meta` with the facts about an output.
const FACTS: &str = "dev.termgate/output";

/// The output of one command, with the position up to which it was shown.
#[derive(Clone, Debug)]
pub struct Printed {
    uri: String,
    next_line: u64,
    /// The facts about the command, as of the last read.
    facts: Option<OutputFacts>,
}

impl Printed {
    /// Starts at the beginning of a command's output.
    pub fn of(session: &str, command: u64) -> Self {
        let uri = format!("termgate://session/{session}/command/{command}/output");
        Self { uri, next_line: 0, facts: None }
    }

    /// The URI of its resource.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Shows all new, complete lines.
    pub async fn show(
        &mut self,
        daemon: &DaemonClient,
        output: &CommandOutput,
    ) -> Result<(), CliFailure> {
        loop {
            let uri = format!("{}?from_line={}", self.uri, self.next_line);
            let (text, meta) = daemon.read_text(&uri).await?;
            let facts = OutputFacts::deserialize(&meta[FACTS]);
            let facts = facts.map_err(|_| ClientError::Malformed)?;
            if facts.lines_trimmed > 0 {
                let lines = counted(facts.lines_trimmed, "line");
                output.note(&format!("[{lines} went by before they could be read]"));
            }
            // Each reading of the end tells of all of them.
            let told = self.facts.as_ref().is_some_and(|before| !before.lost_output.is_empty());
            if !told {
                facts.lost_output.iter().for_each(|gap| output.note(&gap.remark()));
            }
            // Without an await in between, so that cancelling here never shows lines twice.
            output.text(&text)?;
            self.next_line = facts.next_line.max(self.next_line);
            let more = facts.lines_left_out > 0;
            self.facts = Some(facts);
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether the command had ended at the last read.
    pub fn has_ended(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.status != CommandStatus::Running)
    }

    pub fn exit_code(&self) -> Option<i64> {
        self.facts.as_ref().and_then(|facts| facts.exit_code).map(i64::from)
    }
}
