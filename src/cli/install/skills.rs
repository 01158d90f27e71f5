//! Skills: installs each prompt as a file for a client's agents, and removes it.
//!
//! A file that the user changed stays, and the output says so.

mod seal;
pub mod told;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::install::client::{CLIENTS, Client};
use crate::cli::install::error::{FileError, InstallError};
use crate::cli::install::file::ClientFile;
use crate::cli::install::hookup::{Deed, Manner, Wish};
use crate::cli::install::place::{Scope, Surroundings};
use crate::cli::install::presence::present;
use crate::cli::install::skills::seal::{is_intact, sealed};
use crate::mcp::prompt::{Prompt, prompts};

/// The file name in each skill's directory.
const FILE: &str = "SKILL.md";
/// The prefix of our skills' names.
const OURS: &str = "termgate-";

/// A directory of skills, and the client that reads it.
#[derive(Clone, Debug)]
pub struct Shelf {
    pub client: Option<&'static Client>,
    pub directory: PathBuf,
}

/// The result for one skill.
#[derive(Debug)]
pub struct Placed {
    pub client: Option<&'static Client>,
    pub skill: String,
    pub file: PathBuf,
    pub result: Result<Deed, FileError>,
}

/// A skill's file and text.
#[derive(Clone, Debug)]
pub struct SkillFile {
    pub skill: String,
    pub file: PathBuf,
    pub text: String,
}

impl Shelf {
    /// The client's skill directory.
    ///
    /// # Errors
    /// The client reads no skills.
    pub fn of(
        client: &'static Client,
        scope: Scope,
        around: &Surroundings,
    ) -> Result<Self, InstallError> {
        let place = client.skills(scope).ok_or(InstallError::NoSkills { title: client.title })?;
        Ok(Self { client: Some(client), directory: around.path(place) })
    }

    /// The skill directories of installed clients, each directory once.
    ///
    /// # Errors
    /// There is none.
    pub fn all(scope: Scope, around: &Surroundings) -> Result<Vec<Self>, InstallError> {
        let mut seen = BTreeSet::new();
        let shelves = present(around).filter_map(|client| Self::of(client, scope, around).ok());
        let shelves: Vec<_> = shelves.filter(|it| seen.insert(it.directory.clone())).collect();
        if shelves.is_empty() {
            let have = CLIENTS.iter().filter(|client| client.skills.is_some());
            let names: Vec<_> = have.map(|client| client.name).collect();
            let hint =
                format!("name one with --skills, or a directory with --dir: {}", names.join(", "));
            return Err(InstallError::Nobody { hint });
        }
        Ok(shelves)
    }

    /// Every skill with its file in this directory.
    pub fn files(&self) -> Vec<SkillFile> {
        let file = |prompt: &Prompt| {
            let skill = prompt.skill_name();
            SkillFile { file: self.file(&skill), skill, text: sealed(&prompt.skill()) }
        };
        prompts().iter().map(file).collect()
    }

    /// Installs or removes every skill. It also removes unchanged skills of other versions.
    pub fn place(&self, wish: Wish, manner: Manner) -> Vec<Placed> {
        let own = self.files().into_iter().map(|SkillFile { skill, file, text }| {
            let text = (wish == Wish::Install).then_some(text);
            (skill, file, text)
        });
        let others = self.others().into_iter().map(|skill| {
            let file = self.file(&skill);
            (skill, file, None)
        });
        let placed = own.chain(others).map(|(skill, file, text)| {
            let result = place(&file, text.as_deref(), manner);
            Placed { client: self.client, skill, file, result }
        });
        placed.collect()
    }

    /// Unchanged skills in this directory that termgate wrote and that this version does not have.
    fn others(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_other = |name: &String| {
            name.starts_with(OURS)
                && prompts().iter().all(|prompt| prompt.skill_name() != *name)
                && ClientFile::read(&self.file(name))
                    .is_ok_and(|file| file.text().is_some_and(is_intact))
        };
        let mut others: Vec<String> = names.filter(is_other).collect();
        others.sort();
        others
    }

    fn file(&self, skill: &str) -> PathBuf {
        self.directory.join(skill).join(FILE)
    }
}

/// Writes the wanted text to a file, or removes the file for none, unless the user changed it.
fn place(path: &Path, wanted: Option<&str>, manner: Manner) -> Result<Deed, FileError> {
    let file = ClientFile::read(path)?;
    let deed = deed(file.text(), wanted);
    let changes = matches!(deed, Deed::Added | Deed::Updated | Deed::Removed);
    match wanted {
        _ if !changes || manner == Manner::Tell => {}
        Some(text) => file.replace(text)?,
        None => {
            file.remove()?;
            // The directory stays when the user has other files in it.
            let _ = path.parent().map(fs::remove_dir);
        }
    }
    Ok(deed)
}

fn deed(there: Option<&str>, wanted: Option<&str>) -> Deed {
    match (there, wanted) {
        (None, None) => Deed::NotThere,
        (None, Some(_)) => Deed::Added,
        (Some(text), Some(wanted)) if text == wanted => Deed::AlreadyThere,
        (Some(text), _) if !is_intact(text) => Deed::Kept,
        (Some(_), Some(_)) => Deed::Updated,
        (Some(_), None) => Deed::Removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_changed_is_kept_and_everything_else_becomes_what_is_wanted() {
        let skill = |text: &str| sealed(&format!("---\nname: a\n---\n\n{text}\n"));
        let (old, new) = (skill("old"), skill("new"));
        let changed = old.clone() + "mine\n";
        for (there, wanted, expected) in [
            (None, Some(&new), Deed::Added),
            (Some(&old), Some(&new), Deed::Updated),
            (Some(&new), Some(&new), Deed::AlreadyThere),
            (Some(&changed), Some(&new), Deed::Kept),
            (None, None, Deed::NotThere),
            (Some(&old), None, Deed::Removed),
            (Some(&changed), None, Deed::Kept),
        ] {
            let deed = deed(there.map(String::as_str), wanted.map(String::as_str));
            assert_eq!(deed, expected, "{there:?} {wanted:?}");
        }
    }
}
