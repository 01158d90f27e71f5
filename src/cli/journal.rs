//! `journal`: shows, follows, checks and exports the record of every act.
//!
//! It reads the files and needs no daemon.

pub mod act;

use std::collections::VecDeque;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::CommandFinish;
use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis, parse_duration};
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::journal::act::{HEAD, RecordedAct, act_of, in_stream, is_act};
use crate::cli::number::number;
use crate::cli::output::{CommandReport, OutputForm, reader_gone};
use crate::cli::table::render;
use crate::config::paths::state_directory;
use crate::core::counted::counted;
use crate::core::ids::SessionId;
use crate::store::journal::line::{RecordHash, RecordLine};
use crate::store::journal::reader::{Checked, JournalTail, check};

/// How often to look for new records.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Look back at who did what
///
/// The journal records every act that changes a session or a switch, before it takes effect: who, through
/// which socket, under which lease, what, and the outcome. What is typed while a program reads without
/// echo is left out.
#[derive(Debug, Args)]
pub struct JournalCommand {
    /// The journal, if not the one of your daemon
    #[arg(long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    action: JournalAction,
}

#[derive(Debug, Subcommand)]
enum JournalAction {
    Show(ShowJournal),
    Follow(FollowJournal),
    Verify(VerifyJournal),
    Export(ExportJournal),
}

/// Print the newest acts, each with its outcome
///
/// With --json it prints the records, one per line.
#[derive(Debug, Args)]
struct ShowJournal {
    #[command(flatten)]
    filter: ActFilter,
    /// Print at most this many acts
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = number::<usize>)]
    tail: usize,
}

/// Print acts as they are recorded
#[derive(Debug, Args)]
struct FollowJournal {
    #[command(flatten)]
    filter: ActFilter,
}

/// Check that no record was changed, removed or inserted
///
/// Ends with 1 if one was. The check cannot find that all files were replaced: note the number and hash
/// that it prints, and compare them later with --expect.
#[derive(Debug, Args)]
struct VerifyJournal {
    /// A record and its hash, as printed earlier
    #[arg(long, value_name = "NUMBER:HASH", value_parser = parse_expected)]
    expect: Option<(u64, RecordHash)>,
    /// Check this export instead
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print all records as they are stored, for `verify FILE`
#[derive(Debug, Args)]
struct ExportJournal {}

/// Which acts are wanted.
#[derive(Debug, Args)]
struct ActFilter {
    /// Only of this session: id, unique prefix of one, or name
    #[arg(long, add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// Only of principals whose name contains this
    #[arg(long, value_name = "TEXT")]
    by: Option<String>,
    /// Only this kind, such as text, command, typing, kill, lease or set_write
    #[arg(long)]
    act: Option<String>,
    /// Only of this last time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
}

/// A filter whose session is known by the beginning of its id.
struct KnownFilter {
    session: Option<String>,
    by: Option<String>,
    act: Option<String>,
    since_ms: u64,
}

impl KnownFilter {
    fn takes(&self, record: &RecordLine<'_>) -> bool {
        let is = |wanted: &Option<String>, given: &Option<_>, fits: fn(&str, &str) -> bool| {
            let given = given.as_deref().unwrap_or_default();
            wanted.as_ref().is_none_or(|wanted| fits(given, wanted))
        };
        record.at_ms >= self.since_ms
            && is_act(record)
            && is(&self.session, &record.session, |given, wanted| given.starts_with(wanted))
            && is(&self.by, &record.by, |given, wanted| given.contains(wanted))
            && self.act.as_ref().is_none_or(|wanted| act_of(record) == wanted)
    }
}

impl JournalCommand {
    pub(super) async fn run(self, context: &Context) -> Result<CommandFinish, CliFailure> {
        let directory = match self.directory {
            Some(directory) => directory,
            None => {
                let (paths, _) = context.place()?;
                paths.journal(state_directory(|name| env::var_os(name)).as_deref())
            }
        };
        let needs_directory = match &self.action {
            JournalAction::Verify(verify) => verify.file.is_none(),
            JournalAction::Show(_) | JournalAction::Follow(_) | JournalAction::Export(_) => true,
        };
        if needs_directory && !directory.is_dir() {
            let directory = directory.display();
            return Err(anyhow::anyhow!("there is no journal in {directory}").into());
        }
        match self.action {
            JournalAction::Show(show) => show.run(context, &directory).await,
            JournalAction::Follow(follow) => follow.run(context, &directory).await,
            JournalAction::Verify(verify) => Ok(verify.run(&directory)?.into()),
            JournalAction::Export(ExportJournal {}) => export(context, &directory),
        }
    }
}

impl ActFilter {
    async fn known(self, context: &Context) -> Result<KnownFilter, CliFailure> {
        let Self { session, by, act, since } = self;
        let now = context.output.clock().wall_time().duration_since(UNIX_EPOCH);
        let now_ms = millis(now.unwrap_or_default());
        let since_ms = since.map_or(0, |since| now_ms.saturating_sub(millis(since)));
        let session = match session {
            None => None,
            Some(given) => Some(id_of(context, given).await?),
        };
        Ok(KnownFilter { session, by, act, since_ms })
    }
}

/// The id of a session that may have been removed, or the beginning of one.
pub(super) async fn id_of(context: &Context, given: String) -> Result<String, CliFailure> {
    if given.parse::<SessionId>().is_ok() {
        return Ok(given);
    }
    let found = async { context.running_daemon().await?.session(&given).await };
    match found.await {
        Ok(session) => Ok(session.id),
        Err(_) if given.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(given),
        Err(failure) => Err(failure),
    }
}

impl ShowJournal {
    async fn run(self, context: &Context, directory: &Path) -> Result<CommandFinish, CliFailure> {
        let filter = self.filter.known(context).await?;
        let mut acts = VecDeque::<RecordedAct>::new();
        JournalTail::of(directory).read(|line| -> Result<(), CliFailure> {
            let Ok(record) = serde_json::from_str::<RecordLine<'_>>(line) else { return Ok(()) };
            if let Some(of) = record.of {
                let act = acts.binary_search_by_key(&of, |act| act.number).ok();
                if let Some(act) = act.and_then(|at| acts.get_mut(at)) {
                    act.add(&record, line);
                }
            } else if filter.takes(&record)
                && let Some(act) = RecordedAct::of(&record, line)
            {
                acts.push_back(act);
                if acts.len() > self.tail {
                    acts.pop_front();
                }
            }
            Ok(())
        })?;
        if context.output.form() == OutputForm::Json {
            for line in acts.iter().flat_map(|act| &act.lines) {
                context.output.item(&record_of(line)?, "")?;
            }
            return Ok(CommandExit::Done.into());
        }
        let rows: Vec<_> = acts.iter().map(RecordedAct::row).collect();
        let mut report = CommandReport::new(Value::Null, render(HEAD, &rows));
        if rows.is_empty() {
            report.text.clear();
            report.notes.push("no such act is recorded".to_owned());
        }
        Ok(report.into())
    }
}

impl FollowJournal {
    async fn run(self, context: &Context, directory: &Path) -> Result<CommandFinish, CliFailure> {
        let filter = self.filter.known(context).await?;
        let mut tail = JournalTail::of(directory);
        // What was there before is not new.
        let mut shown = VecDeque::<u64>::new();
        tail.read(|_| Ok::<(), io::Error>(())).context("the journal cannot be read")?;
        let following = async {
            loop {
                tail.read(|line| -> Result<(), CliFailure> {
                    let Ok(record) = serde_json::from_str::<RecordLine<'_>>(line) else {
                        return Ok(());
                    };
                    let wanted = match record.of {
                        Some(of) => shown.binary_search(&of).is_ok(),
                        None => filter.takes(&record),
                    };
                    if !wanted {
                        return Ok(());
                    }
                    if record.of.is_none() {
                        shown.push_back(record.seq);
                        if shown.len() > SHOWN_MAX {
                            shown.pop_front();
                        }
                    }
                    context.output.item(&record_of(line)?, &in_stream(&record))
                })?;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            () = reader_gone() => Ok(CommandExit::Done.into()),
            ended = following => ended,
        }
    }
}

/// How many acts that were shown are remembered, so that their outcomes are shown as well.
const SHOWN_MAX: usize = 10_000;

impl VerifyJournal {
    fn run(self, directory: &Path) -> Result<CommandReport, CliFailure> {
        let path = self.file.as_deref().unwrap_or(directory);
        let asked = self.expect.map(|(number, _)| number);
        let checked = check(path, asked).with_context(|| path.display().to_string())?;
        let mut problems: Vec<String> = checked
            .damage
            .iter()
            .map(|it| format!("{}:{}: {}", it.file.display(), it.line, it.error))
            .collect();
        if let Some((number, hash)) = self.expect
            && checked.asked != Some(hash)
        {
            problems.push(match checked.asked {
                Some(found) => format!("record {number} has another hash: {found}"),
                None => format!("record {number} is not in the journal"),
            });
        }
        let text = in_words(&checked, problems.len());
        let mut report = CommandReport::new(member(&checked, &problems), text);
        if !problems.is_empty() {
            report.notes = problems;
            report.exit = CommandExit::Failed;
        }
        Ok(report)
    }
}

fn member(checked: &Checked, problems: &[String]) -> Value {
    let last = checked.chain.last();
    json!({
        "sound": problems.is_empty(),
        "problems": problems,
        "files": checked.files,
        "first": checked.chain.first(),
        "last": last.map(|(last, _)| last),
        "hash": last.map(|(_, hash)| hash.to_string()),
        "without_outcome": checked.chain.open(),
        "replaced_daemons": checked.chain.void(),
    })
}

fn in_words(checked: &Checked, problems: usize) -> String {
    let (Some(first), Some((last, hash))) = (checked.chain.first(), checked.chain.last()) else {
        return "the journal has no record".to_owned();
    };
    let records = counted(last.saturating_sub(first).saturating_add(1), "record");
    let files = counted(checked.files, "file");
    let mut text = format!("{records} in {files}, from {first} to {last}");
    if first > 1 {
        text += "; earlier ones were removed to make room";
    }
    let open = checked.chain.open().len();
    if open > 0 {
        text += &format!("; {} without an outcome yet", counted(open, "act"));
    }
    match checked.chain.void() {
        0 => {}
        count => {
            let records = counted(count, "record");
            text += &format!("; without {records} of a daemon that had already been replaced");
        }
    }
    match problems {
        0 => text += "; all hashes match",
        count => text += &format!("; {}", counted(count, "problem")),
    }
    format!("{text}\nlast record: {last}:{hash}")
}

fn export(context: &Context, directory: &Path) -> Result<CommandFinish, CliFailure> {
    JournalTail::of(directory).read(|line| context.output.raw_line(line))?;
    Ok(CommandExit::Done.into())
}

fn record_of(line: &str) -> Result<Value, CliFailure> {
    Ok(serde_json::from_str(line).context("a record")?)
}

fn parse_expected(text: &str) -> Result<(u64, RecordHash), String> {
    let parsed = text
        .split_once(':')
        .and_then(|(number, hash)| Some((number.parse().ok()?, RecordHash::parse(hash)?)));
    parsed.ok_or_else(|| "write NUMBER:HASH, as `termgate journal verify` prints it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_journal_with_any_numbers_is_put_in_words() {
        let mut checked = Checked::default();
        let zeros = "0".repeat(64);
        for seq in [0, u64::MAX] {
            let line =
                format!(r#"{{"seq":{seq},"kind":"segment","after":"{zeros}","hash":"{zeros}"}}"#);
            assert!(checked.chain.push(&line).is_err());
        }
        let text = in_words(&checked, 2);
        assert!(text.starts_with("18446744073709551615 records in 0 files"), "{text}");
    }
}
