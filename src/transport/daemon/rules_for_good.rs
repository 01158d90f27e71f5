//! Lets a call pass for good: writes a rule to the policy file whose rules ask about it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::policy;
use crate::config::policy::draft::draft;
use crate::config::sources::Sources;
use crate::core::policy::approvals::Approval;
use crate::core::policy::rules::PolicyRules;
use crate::mcp::settings::SettingsError;
use crate::surface::TOOL_NAMES;
use crate::wire::policy::RuleWritten;

/// What is written, and where.
pub(super) struct RuleForGood {
    path: PathBuf,
    /// What the file has now; none if there is no file.
    before: Option<String>,
    /// What follows that.
    added: String,
}

impl RuleForGood {
    /// The rule for a call that waits.
    ///
    /// # Errors
    /// No rule can be written that has this call pass and nothing more.
    pub(super) fn of(sources: &Sources, call: &Approval) -> Result<Self, SettingsError> {
        let request = &call.request;
        let command = request.command.as_ref().ok_or(SettingsError::Unknown)?;
        let directory = request.witness.directory.as_deref();
        let rule = draft(&call.id.to_string(), command, directory)?;
        let (path, before) = file_of(sources, &command.asked_by)?;
        let added = match before.as_deref() {
            None | Some("") => rule.trim_start().to_owned(),
            Some(text) if text.ends_with('\n') => rule,
            Some(_) => format!("\n{rule}"),
        };
        Ok(Self { path, before, added })
    }

    pub(super) fn wire(&self, written: bool) -> RuleWritten {
        let before = self.before.as_deref().unwrap_or_default();
        // The end of the last line is no line of its own.
        let ends_line = !before.is_empty() && !before.ends_with('\n');
        let added = if ends_line { self.added.trim_start_matches('\n') } else { &self.added };
        let (path, line) = (self.path.display().to_string(), before.lines().count() + 1);
        RuleWritten { path, line, added: added.to_owned(), written }
    }

    /// Adds the rule to the file.
    pub(super) fn write(&self) -> Result<WrittenRule, SettingsError> {
        let written = append(&self.path, self.before.as_deref(), &self.added);
        written.map_err(|source| SettingsError::Unwritable { path: self.path.clone(), source })
    }
}

/// A rule that was added, and can be taken back.
pub(super) struct WrittenRule {
    file: File,
    length_before: u64,
}

impl WrittenRule {
    /// Takes the rule out of the file.
    pub(super) fn undo(self) {
        if let Err(error) = self.file.set_len(self.length_before) {
            tracing::error!(%error, "a rule stays in the policy file that is not to hold");
        }
    }
}

fn append(path: &Path, before: Option<&str>, added: &str) -> io::Result<WrittenRule> {
    if let Some(directory) = path.parent().filter(|_| before.is_none()) {
        fs::create_dir_all(directory)?;
    }
    // Links, the owner and the mode stay as they are.
    let mut file = OpenOptions::new().append(true).create(before.is_none()).open(path)?;
    if fs::read_to_string(path)? != before.unwrap_or_default() {
        return Err(io::Error::other("it was changed meanwhile"));
    }
    let length_before = before.map_or(0, str::len) as u64;
    let written = file.write_all(added.as_bytes()).and_then(|()| file.sync_all());
    let rule = WrittenRule { file, length_before };
    match written {
        Ok(()) => Ok(rule),
        Err(error) => {
            rule.undo();
            Err(error)
        }
    }
}

/// The policy file with all of these rules, and its text. Without rules, the last one, which is the user's.
fn file_of(
    sources: &Sources,
    rules: &[Arc<str>],
) -> Result<(PathBuf, Option<String>), SettingsError> {
    for source in sources.policy_files().into_iter().rev() {
        let path = source.path;
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(SettingsError::Unreadable { path, source }),
        };
        let mut found = PolicyRules::default();
        policy::read(text.as_deref().unwrap_or_default(), &path, TOOL_NAMES, &mut found);
        if rules.iter().all(|name| found.rules.iter().any(|rule| rule.name == *name)) {
            return Ok((path, text));
        }
    }
    Err(SettingsError::Scattered)
}
