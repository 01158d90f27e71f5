//! Adds termgate to one client or removes it: by the client's own command first, otherwise in its file.
//!
//! [`crate::cli::install::change`] computes the new text; this module writes or shows it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cli::install::change::{Installed, Uninstalled, install, uninstall};
use crate::cli::install::client::Client;
use crate::cli::install::diff::diff;
use crate::cli::install::error::{FileError, InstallError};
use crate::cli::install::family::Found;
use crate::cli::install::file::ClientFile;
use crate::cli::install::own_command::{Writes, run, shown, words};
use crate::cli::install::place::{Scope, Surroundings};
use crate::cli::install::server::Server;

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

/// The requested change for each client.
#[derive(Clone, Debug)]
pub struct Order {
    pub wish: Wish,
    pub manner: Manner,
    pub scope: Scope,
    pub server: Server,
    /// The wall clock time, for the names of backups.
    pub now: SystemTime,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub struct Done {
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

/// The planned change of a file.
#[derive(Clone, Debug)]
struct Plan {
    deed: Deed,
    /// The new text; none to remove the file.
    after: Option<String>,
}

/// Adds termgate to a client, or removes it.
///
/// # Errors
/// Nothing was changed, with the reason and what to do by hand.
pub async fn hook_up(
    client: &Client,
    order: &Order,
    around: &Surroundings,
) -> Result<Done, InstallError> {
    let path = file_of(client, order.scope, around)?;
    let failed = |why| failure(client, order, &path, why);
    let (file, planned) = look(client, order, &path).map_err(failed)?;
    let mut done = Done {
        deed: planned.deed,
        file: path.clone(),
        backup: None,
        command: None,
        diff: None,
        note: None,
    };
    if matches!(planned.deed, Deed::AlreadyThere | Deed::NotThere) {
        return Ok(done);
    }
    let commands = commands(client, order, planned.deed, around);
    match (order.manner, commands) {
        (Manner::Tell, Some(commands)) => done.command = Some(commands.shown()),
        (Manner::Tell, None) => {
            let after = planned.after.as_deref().unwrap_or_default();
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
    Ok(done)
}

/// Runs the client's own command and checks the result. Returns the backup's path if the file changed,
/// or why the command did not work.
async fn by_command(
    commands: &Commands,
    client: &Client,
    order: &Order,
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
fn is_done(client: &Client, order: &Order, file: &ClientFile) -> Result<bool, FileError> {
    let name = &order.server.name;
    let found = file.text().map(|text| client.family.find(text, name)).transpose()?.flatten();
    Ok(match order.wish {
        Wish::Install => found == Some(Found::Program(order.server.launch.clone())),
        Wish::Uninstall => found.is_none(),
    })
}

/// The client's file in this scope.
///
/// # Errors
/// The client lacks this scope; the error contains those it has.
pub fn file_of(
    client: &Client,
    scope: Scope,
    around: &Surroundings,
) -> Result<PathBuf, InstallError> {
    let Some(place) = client.place(scope) else {
        let has = Scope::User.word();
        return Err(InstallError::NoScope { title: client.title, wanted: scope.word(), has });
    };
    Ok(around.path(place))
}

fn look(client: &Client, order: &Order, path: &Path) -> Result<(ClientFile, Plan), FileError> {
    let file = ClientFile::read(path)?;
    let plan = plan(client, order, &file)?;
    Ok((file, plan))
}

fn plan(client: &Client, order: &Order, file: &ClientFile) -> Result<Plan, FileError> {
    let (family, server) = (&client.family, &order.server);
    let keep = |deed| Plan { deed, after: file.text().map(str::to_owned) };
    Ok(match order.wish {
        Wish::Install => match install(family, file.text(), server)? {
            Installed::AlreadyThere => keep(Deed::AlreadyThere),
            Installed::Added(after) => Plan { deed: Deed::Added, after: Some(after) },
            Installed::Updated(after) => Plan { deed: Deed::Updated, after: Some(after) },
        },
        Wish::Uninstall => {
            let Some(text) = file.text() else { return Ok(keep(Deed::NotThere)) };
            match uninstall(family, text, &server.name, &file.earlier())? {
                Uninstalled::NotThere => keep(Deed::NotThere),
                Uninstalled::Left(after) => Plan { deed: Deed::Removed, after: Some(after) },
                Uninstalled::Nothing => Plan { deed: Deed::Removed, after: None },
            }
        }
    })
}

/// The runs of a client's own command, in order.
#[derive(Clone, Debug)]
struct Commands {
    name: &'static str,
    program: PathBuf,
    steps: Vec<Step>,
    writes: Writes,
}

#[derive(Clone, Debug)]
struct Step {
    words: Vec<String>,
    /// Whether the next step requires that this one succeeds.
    needed: bool,
}

/// The client's own commands for this deed, if it has them.
fn commands(client: &Client, order: &Order, deed: Deed, around: &Surroundings) -> Option<Commands> {
    let own = client.command.filter(|own| own.scopes.contains(&order.scope))?;
    let step = |template: &[&str], needed| Step {
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
    Some(Commands { name: own.program, program, steps, writes: own.writes })
}

impl Commands {
    /// Runs the steps. The error contains the failed step and the reason.
    async fn run(&self) -> Result<(), String> {
        for Step { words, needed } in &self.steps {
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

/// Applies the plan to a file and returns the backup's path.
fn edit(file: &ClientFile, plan: &Plan, now: SystemTime) -> Result<Option<PathBuf>, FileError> {
    match &plan.after {
        Some(after) if Some(after.as_str()) == file.text() => Ok(None),
        Some(after) => {
            let backup = file.back_up(now)?;
            file.replace(after).map(|()| backup)
        }
        None if file.text().is_none() => Ok(None),
        None => file.remove().map(|()| None),
    }
}

fn failure(client: &Client, order: &Order, file: &Path, why: FileError) -> InstallError {
    let hint = match order.wish {
        Wish::Install => {
            format!("put this into it yourself:\n{}", client.family.snippet(&order.server))
        }
        Wish::Uninstall => {
            let (name, container) = (&order.server.name, client.family.container);
            format!("remove `{name}` below `{container}` from it yourself")
        }
    };
    InstallError::File { file: file.to_owned(), why, hint }
}
