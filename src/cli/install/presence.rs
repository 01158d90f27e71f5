//! Finds the installed clients and whether they have termgate configured. It changes nothing.

use std::path::{Path, PathBuf};

use crate::cli::install::client::{CLIENTS, Client};
use crate::cli::install::error::FileError;
use crate::cli::install::family::Found;
use crate::cli::install::file::ClientFile;
use crate::cli::install::place::{Scope, Surroundings};

/// Whether a client has termgate configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    Unknown,
    /// It starts this program; `there` is whether that exists.
    Starts {
        program: PathBuf,
        there: bool,
    },
    /// It has an entry that starts no program.
    Other,
    /// Its file cannot be read; contains the reason.
    Unreadable(String),
}

/// The state of a client in one scope.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub client: &'static Client,
    pub scope: Scope,
    pub file: PathBuf,
    pub knowledge: Knowledge,
}

/// The clients that seem installed.
pub fn present(around: &Surroundings) -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().filter(|client| is_present(client, around))
}

/// The clients that seem installed, and whether they have a server of this name. It includes the project
/// scope when the client has a file there.
pub fn sightings(around: &Surroundings, name: &str) -> Vec<Sighting> {
    let mut sightings = Vec::new();
    for client in present(around) {
        for scope in [Scope::User, Scope::Project] {
            let Some(place) = client.place(scope) else { continue };
            let file = around.path(place);
            // In the home directory, both scopes can have the same file.
            let again = file == around.path(client.user);
            if scope == Scope::User || !again && file.exists() {
                let knowledge = knowledge(client, &file, name);
                sightings.push(Sighting { client, scope, file, knowledge });
            }
        }
    }
    sightings
}

fn is_present(client: &Client, around: &Surroundings) -> bool {
    let has_program = || client.program.is_some_and(|name| around.program(name).is_some());
    around.path(client.sign).exists() || has_program()
}

fn knowledge(client: &Client, file: &Path, name: &str) -> Knowledge {
    match find(client, file, name) {
        Ok(None) => Knowledge::Unknown,
        Ok(Some(Found::Other)) => Knowledge::Other,
        Ok(Some(Found::Program(launch))) => {
            let program = PathBuf::from(launch.program);
            let there = program.is_file();
            Knowledge::Starts { program, there }
        }
        Err(why) => Knowledge::Unreadable(why.to_string()),
    }
}

fn find(client: &Client, file: &Path, name: &str) -> Result<Option<Found>, FileError> {
    let file = ClientFile::read(file)?;
    let Some(text) = file.text() else { return Ok(None) };
    Ok(client.family.find(text, name)?)
}

#[cfg(test)]
mod tests;
