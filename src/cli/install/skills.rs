//! Skills: installs each prompt as a file for a client's agents, and removes it.
//!
//! A file that the user changed stays, and the output says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::install::client::{CLIENTS, McpClient, present};
use crate::cli::install::file::{ClientFile, FileError, leave_directory, make_directory};
use crate::cli::install::place::{InstallScope, Surroundings};
use crate::cli::install::plan::{Deed, Manner, Wish};
use crate::cli::install::{report, said};
use crate::cli::output::CommandReport;
use crate::core::code::Code;
use crate::mcp::prompt::{Prompt, prompts};

/// The file name in each skill's directory.
const FILE: &str = "SKILL.md";
/// The prefix of our skills' names.
const OURS: &str = "termgate-";

/// What to do where skills cannot be written.
const SKILLS_HINT: &str = "Make the directory writable, or name another one with --dir. `termgate install --skills --print` \
     prints the texts.";

/// A directory of skills, and the client that reads it.
#[derive(Clone, Debug)]
pub struct Shelf {
    pub client: Option<&'static McpClient>,
    pub directory: PathBuf,
}

/// The result for one skill.
#[derive(Debug)]
pub struct Placed {
    pub client: Option<&'static McpClient>,
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
    pub fn of(
        client: &'static McpClient,
        scope: InstallScope,
        around: &Surroundings,
    ) -> Result<Self, CliFailure> {
        let place = client.skills(scope).ok_or(CliFailure::NoSkills { title: client.title })?;
        Ok(Self { client: Some(client), directory: around.path(place) })
    }

    /// The skill directories of installed clients, each directory once.
    pub fn all(scope: InstallScope, around: &Surroundings) -> Result<Vec<Self>, CliFailure> {
        let mut seen = BTreeSet::new();
        let shelves = present(around).filter_map(|client| Self::of(client, scope, around).ok());
        let shelves: Vec<_> = shelves.filter(|it| seen.insert(it.directory.clone())).collect();
        if shelves.is_empty() {
            let have = CLIENTS.iter().filter(|client| client.skills.is_some());
            let names: Vec<_> = have.map(|client| client.name).collect();
            let hint =
                format!("name one with --skills, or a directory with --dir: {}", names.join(", "));
            return Err(CliFailure::NoClient { hint });
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
    let shelf = path.parent().and_then(Path::parent);
    let changes = matches!(deed, Deed::Added | Deed::Updated | Deed::Removed);
    match wanted {
        _ if !changes || manner == Manner::Tell => {}
        Some(text) => {
            shelf.map_or(Ok(()), make_directory)?;
            // This one has our name, and needs no mark.
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            file.replace(text)?;
        }
        None => {
            file.remove()?;
            // The directory stays when the user has other files in it.
            let _ = path.parent().map(fs::remove_dir);
            shelf.into_iter().for_each(leave_directory);
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
const FRONT_MATTER_END: &str = "\n---\n";
const BEFORE_DIGEST: &str = "\nmetadata:\n  termgate: sha256:";

fn sealed(text: &str) -> String {
    let (head, body) = text.split_once(FRONT_MATTER_END).expect("a skill has front matter");
    format!("{head}{BEFORE_DIGEST}{}{FRONT_MATTER_END}{body}", digest(text))
}

/// Whether the text is unchanged since it was sealed.
fn is_intact(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(BEFORE_DIGEST) else { return false };
    let Some((seal, body)) = rest.split_once(FRONT_MATTER_END) else { return false };
    seal == digest(&format!("{head}{FRONT_MATTER_END}{body}"))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every skill's text, each below its file name.
pub fn printed_skills(shelves: &[Shelf], around: &Surroundings) -> CommandReport {
    let (mut texts, mut items) = (Vec::new(), Vec::new());
    for shelf in shelves {
        for SkillFile { skill, file, text } in shelf.files() {
            texts.push(format!("{}:\n{text}", around.shown(&file)));
            let client = shelf.client.map(|client| client.name);
            items.push(json!({"client": client, "skill": skill, "file": file, "text": text}));
        }
    }
    report("skills", items, texts.join("\n"), CommandExit::Done)
}

/// The result for each skill.
pub fn told_skills(placed: &[Placed], manner: Manner, around: &Surroundings) -> CommandReport {
    let items = placed.iter().map(|placed| placed.item(manner)).collect();
    let lines: Vec<_> = placed.iter().map(|placed| placed.line(manner, around)).collect();
    let failed = placed.iter().any(|placed| placed.result.is_err());
    let hint = failed.then(|| SKILLS_HINT.to_owned());
    let lines: Vec<_> = lines.into_iter().chain(hint).collect();
    report(
        "skills",
        items,
        lines.join("\n"),
        if failed { CommandExit::Failed } else { CommandExit::Done },
    )
}

impl Placed {
    /// The result for programs.
    fn item(&self, manner: Manner) -> Value {
        let client = self.client.map(|client| client.name);
        match &self.result {
            Ok(deed) => json!({
                "client": client,
                "skill": self.skill,
                "result": deed,
                "dry_run": manner == Manner::Tell,
                "file": self.file,
            }),
            Err(problem) => json!({
                "client": client,
                "skill": self.skill,
                "result": "failed",
                "file": self.file,
                "error": problem.to_string(),
                "error_code": Code::ClientConfig.as_str(),
                "hint": SKILLS_HINT,
            }),
        }
    }

    /// The result for people.
    fn line(&self, manner: Manner, around: &Surroundings) -> String {
        let client = self.client.map(|client| format!("{}: ", client.name)).unwrap_or_default();
        let file = around.shown(&self.file);
        match &self.result {
            Ok(deed) => format!("{client}{} {file}", said(*deed, manner)),
            Err(problem) => {
                let code = Code::ClientConfig.as_str();
                format!("{client}{file} is left as it is: {problem} ({code})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::prompt::prompts;

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

    #[test]
    fn a_file_is_intact_until_anything_of_it_is_changed() {
        for prompt in prompts() {
            let text = sealed(&prompt.skill());
            assert!(is_intact(&text));
            assert!(text.starts_with(&format!("---\nname: {}\n", prompt.skill_name())));
            for changed in [
                text.replace("description: Use", "description: Never use"),
                text.replace("termgate: sha256:", "termgate: sha256:0"),
                text.replace('\n', "\r\n"),
                text.clone() + "\n",
                prompt.skill(),
            ] {
                assert!(!is_intact(&changed), "{changed}");
            }
        }
    }
}
