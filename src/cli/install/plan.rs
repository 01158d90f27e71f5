//! Adds termgate to one client or removes it: by the client's own command first, otherwise in its file.
//!
//! [`crate::cli::install::edit`] computes the new text; this module writes or shows it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::cli::failure::CliFailure;
use crate::cli::install::client::McpClient;
use crate::cli::install::edit::{TextChange, install, uninstall};
use crate::cli::install::entry_format::{FoundEntry, ServerEntry};
use crate::cli::install::file::{ClientFile, FileError};
use crate::cli::install::own_command::{Writes, run, shown, words};
use crate::cli::install::place::{InstallScope, Surroundings};
use crate::wire::word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Install,
    Uninstall,
}

/// Whether to make the change or only show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Do,
    Tell,
}

#[derive(Clone, Debug)]
pub struct ChangeRequest {
    pub wish: Wish,
    pub manner: Manner,
    pub scope: InstallScope,
    pub server: ServerEntry,
    /// The wall clock time, for the names of backups.
    pub now: SystemTime,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    Added,
    Updated,
    AlreadyThere,
    Removed,
    NotThere,
    /// The user has changed it, so it stays.
    Kept,
}

/// The change that was made, or would be made.
#[derive(Clone, Debug)]
pub struct ClientChange {
    pub deed: Deed,
    pub file: PathBuf,
    pub backup: Option<PathBuf>,
    /// The client's own command that made the change, for display.
    pub command: Option<String>,
    /// The diff of the file, when the change is only shown.
    pub diff: Option<String>,
    /// Why the client's own command was not enough.
    pub note: Option<String>,
}

/// Adds termgate to a client, or removes it.
///
/// # Errors
/// Nothing was changed, with the reason and what to do by hand.
pub async fn hook_up(
    client: &McpClient,
    order: &ChangeRequest,
    around: &Surroundings,
) -> Result<ClientChange, CliFailure> {
    let path = file_of(client, order.scope, around)?;
    let failed = |why| failure(client, order, &path, why);
    let (file, planned) = look(client, order, &path).map_err(failed)?;
    let deed = deed_of(&planned, order.wish);
    let file_path = path.clone();
    let mut done =
        ClientChange { deed, file: file_path, backup: None, command: None, diff: None, note: None };
    if planned == TextChange::Unchanged {
        return Ok(done);
    }
    let commands = commands(client, order, deed, around);
    match (order.manner, commands) {
        (Manner::Tell, Some(commands)) => done.command = Some(commands.shown()),
        (Manner::Tell, None) => {
            let after = text_after(&planned).unwrap_or_default();
            let before = file.text().unwrap_or_default();
            done.diff = Some(diff(&around.shown(&path), before, after));
        }
        (Manner::Do, Some(commands)) => {
            match by_command(&commands, client, order, &file).await.map_err(failed)? {
                Ok(backup) => {
                    done.backup = backup;
                    done.command = Some(commands.shown());
                }
                Err(note) => {
                    done.note = Some(note);
                    // The command may have changed the file before it failed.
                    let (file, plan) = look(client, order, &path).map_err(failed)?;
                    done.backup = edit(&file, &plan, order.now).map_err(failed)?;
                }
            }
        }
        (Manner::Do, None) => done.backup = edit(&file, &planned, order.now).map_err(failed)?,
    }
    if (order.manner, order.wish) == (Manner::Do, Wish::Uninstall) {
        file.clean_up();
        done.backup = None;
    }
    Ok(done)
}

/// Runs the client's own command and checks the result. Returns the backup's path if the file changed,
/// or why the command did not work.
async fn by_command(
    commands: &OwnCommandRun,
    client: &McpClient,
    order: &ChangeRequest,
    before: &ClientFile,
) -> Result<Result<Option<PathBuf>, String>, FileError> {
    let mut backup = before.back_up(order.now)?;
    let ran = commands.run().await;
    let after = ClientFile::read(before.path())?;
    if after.is_like(before)
        && let Some(backup) = backup.take()
    {
        fs::remove_file(backup)?;
    }
    if ran.is_ok() && commands.writes == Writes::File && !is_done(client, order, &after)? {
        let not_done = match order.wish {
            Wish::Install => "did not put it there",
            Wish::Uninstall => "did not take it out",
        };
        return Ok(Err(format!("`{}` ended well and {not_done}", commands.shown())));
    }
    Ok(ran.map(|()| backup))
}

/// Whether the file has the requested state, in any form that the client writes.
fn is_done(
    client: &McpClient,
    order: &ChangeRequest,
    file: &ClientFile,
) -> Result<bool, FileError> {
    let name = &order.server.name;
    let found = file.text().map(|text| client.entry_format.find(text, name)).transpose()?.flatten();
    Ok(match order.wish {
        Wish::Install => found == Some(FoundEntry::Program(order.server.launch.clone())),
        Wish::Uninstall => found.is_none(),
    })
}

/// The client's file in this scope.
pub fn file_of(
    client: &McpClient,
    scope: InstallScope,
    around: &Surroundings,
) -> Result<PathBuf, CliFailure> {
    let Some(place) = client.place(scope) else {
        let (wanted, has) = (word(&scope), word(&InstallScope::User));
        let problem = format!("{} has no {wanted} scope; it has: {has}", client.title);
        return Err(CliFailure::Usage(problem));
    };
    Ok(around.path(place))
}

fn look(
    client: &McpClient,
    order: &ChangeRequest,
    path: &Path,
) -> Result<(ClientFile, TextChange), FileError> {
    let file = ClientFile::read(path)?;
    let plan = plan(client, order, &file)?;
    Ok((file, plan))
}

fn plan(
    client: &McpClient,
    order: &ChangeRequest,
    file: &ClientFile,
) -> Result<TextChange, FileError> {
    let (entry_format, server) = (&client.entry_format, &order.server);
    Ok(match (order.wish, file.text()) {
        (Wish::Install, text) => install(entry_format, text, server)?,
        (Wish::Uninstall, Some(text)) => {
            uninstall(entry_format, text, &server.name, &file.earlier())?
        }
        (Wish::Uninstall, None) => TextChange::Unchanged,
    })
}

fn deed_of(change: &TextChange, wish: Wish) -> Deed {
    match (change, wish) {
        (TextChange::Unchanged, Wish::Install) => Deed::AlreadyThere,
        (TextChange::Unchanged, Wish::Uninstall) => Deed::NotThere,
        (TextChange::Added(_), _) => Deed::Added,
        (TextChange::Updated(_), _) => Deed::Updated,
        (TextChange::Removed(_) | TextChange::RemovedFile, _) => Deed::Removed,
    }
}

fn text_after(change: &TextChange) -> Option<&str> {
    match change {
        TextChange::Added(text) | TextChange::Updated(text) | TextChange::Removed(text) => {
            Some(text)
        }
        TextChange::Unchanged | TextChange::RemovedFile => None,
    }
}

/// The runs of a client's own command, in order.
#[derive(Clone, Debug)]
struct OwnCommandRun {
    name: &'static str,
    program: PathBuf,
    steps: Vec<CommandStep>,
    writes: Writes,
}

#[derive(Clone, Debug)]
struct CommandStep {
    words: Vec<String>,
    /// Whether the next step requires that this one succeeds.
    needed: bool,
}

/// The client's own commands for this deed, if it has them.
fn commands(
    client: &McpClient,
    order: &ChangeRequest,
    deed: Deed,
    around: &Surroundings,
) -> Option<OwnCommandRun> {
    let own = client.command.filter(|own| own.scopes.contains(&order.scope))?;
    let step = |template: &[&str], needed| CommandStep {
        words: words(template, &order.server, order.scope),
        needed,
    };
    let remove = |needed| own.remove.map(|template| step(template, needed));
    let steps = match deed {
        Deed::Added => vec![step(own.add, true)],
        // Some commands reject an existing name.
        Deed::Updated => remove(false).into_iter().chain([step(own.add, true)]).collect(),
        Deed::Removed => vec![remove(true)?],
        Deed::AlreadyThere | Deed::NotThere | Deed::Kept => return None,
    };
    let program = around.program(own.program)?;
    Some(OwnCommandRun { name: own.program, program, steps, writes: own.writes })
}

impl OwnCommandRun {
    /// Runs the steps. The error contains the failed step and the reason.
    async fn run(&self) -> Result<(), String> {
        for CommandStep { words, needed } in &self.steps {
            let ran = run(&self.program, words).await;
            if let Err(error) = ran
                && *needed
            {
                return Err(format!("`{}` failed: {error}", shown(self.name, words)));
            }
        }
        Ok(())
    }

    /// The steps in shell syntax, for display.
    fn shown(&self) -> String {
        let lines: Vec<_> = self.steps.iter().map(|step| shown(self.name, &step.words)).collect();
        lines.join(" && ")
    }
}

/// Applies a change to a file and returns the backup's path.
fn edit(
    file: &ClientFile,
    change: &TextChange,
    now: SystemTime,
) -> Result<Option<PathBuf>, FileError> {
    match text_after(change) {
        Some(after) => {
            let backup = file.back_up(now)?;
            file.replace(after).map(|()| backup)
        }
        None if *change == TextChange::RemovedFile => file.remove().map(|()| None),
        None => Ok(None),
    }
}

fn failure(client: &McpClient, order: &ChangeRequest, file: &Path, why: FileError) -> CliFailure {
    let hint = match order.wish {
        Wish::Install => {
            format!("put this into it yourself:\n{}", client.entry_format.snippet(&order.server))
        }
        Wish::Uninstall => {
            let (name, container) = (&order.server.name, client.entry_format.container);
            format!("remove `{name}` below `{container}` from it yourself")
        }
    };
    CliFailure::ClientFile { file: file.to_owned(), why: why.to_string(), hint }
}

/// The number of unchanged lines on each side.
const CONTEXT: usize = 3;

/// The lines that differ in unified form, or an empty text when the texts are equal.
pub fn diff(name: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = old.iter().zip(&new).take_while(same).count();
    let shorter = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(shorter);
    if start + end == old.len() && old.len() == new.len() {
        return String::new();
    }
    let (first, last) = (start.saturating_sub(CONTEXT), end.saturating_sub(CONTEXT));
    let lines = |sign: char, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    let range = |lines: usize| format!("{},{}", first + usize::from(lines > first), lines - first);
    format!(
        "--- {name}\n+++ {name}\n@@ -{} +{} @@\n{}{}{}{}",
        range(old.len() - last),
        range(new.len() - last),
        lines(' ', &old[first..start]),
        lines('-', &old[start..old.len() - end]),
        lines('+', &new[start..new.len() - end]),
        lines(' ', &old[old.len() - end..old.len() - last]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_stand_between_three_that_stayed() {
        let shown = diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n");
        assert_eq!(shown, "--- f\n+++ f\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n");
    }

    #[test]
    fn a_line_that_became_another_is_shown_twice() {
        assert_eq!(diff("f", "a\nb\n", "a\nc\n"), "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }

    #[test]
    fn a_file_that_begins_has_no_lines_before() {
        assert_eq!(diff("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
    }

    #[test]
    fn a_repeated_line_is_not_counted_from_both_ends() {
        assert_eq!(diff("f", "a\na\n", "a\na\na\n"), "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
    }

    #[test]
    fn nothing_is_shown_where_nothing_differs() {
        assert_eq!(diff("f", "a\n", "a\n"), "");
    }
}
