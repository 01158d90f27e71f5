//! Lets a call pass for good: writes a rule to the policy file whose rules ask about it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::policy::draft::draft;
use crate::config::policy::{self};
use crate::config::problem::ConfigError;
use crate::config::sources::Sources;
use crate::core::policy::approvals::Approval;
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::{Matching, PolicyRules, RuleEffect};
use crate::mcp::settings::SettingsError;
use crate::wire::policy::RuleWritten;

/// What is written, and where.
pub(super) struct RuleForGood {
    path: PathBuf,
    /// What the file has now; none if there is no file.
    before: Option<String>,
    added: String,
}

impl RuleForGood {
    /// The rule for a call that waits, about which the rules decided like this.
    ///
    /// # Errors
    /// No rule can be written that has this call pass and nothing more.
    pub(super) fn of(
        sources: &Sources,
        call: &Approval,
        decision: &Decision,
    ) -> Result<Self, SettingsError> {
        let request = &call.request;
        let command = request.command.as_ref().ok_or(SettingsError::Unknown)?;
        let asking = decision.verdict.trace.iter().filter(|outcome| {
            outcome.effect != RuleEffect::Allow
                && outcome.matching != Matching::No
                && !outcome.overridden
        });
        if asking.clone().any(|it| it.effect == RuleEffect::Deny || it.matching == Matching::Maybe)
        {
            return Err(SettingsError::Unknown);
        }
        let asking: Vec<Arc<str>> = asking.map(|outcome| Arc::clone(&outcome.rule)).collect();
        let directory = request.witness.directory.as_deref();
        let added = draft(&call.id.to_string(), &asking, command, directory)?;
        let (path, before) = file_of(sources, &asking)?;
        let rule = Self { path, before, added };
        let problems = policy::read(&rule.after(), &rule.path, &mut PolicyRules::default());
        if problems.is_empty() { Ok(rule) } else { Err(ConfigError(problems).into()) }
    }

    fn after(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let added = if before.is_empty() { self.added.trim_start() } else { &self.added };
        format!("{before}{end}{added}")
    }

    pub(super) fn wire(&self, written: bool) -> RuleWritten {
        let before = self.before.as_deref().unwrap_or_default();
        let after = self.after();
        let added = &after[before.len()..];
        let ends_line = !before.is_empty() && !before.ends_with('\n');
        let added = added.strip_prefix('\n').filter(|_| ends_line).unwrap_or(added);
        let (path, line) = (self.path.display().to_string(), before.lines().count() + 1);
        RuleWritten { path, line, added: added.to_owned(), written }
    }

    /// Adds the rule to the file, which stays as it was if that fails.
    pub(super) fn write(&self) -> Result<(), SettingsError> {
        let unwritable = |source| SettingsError::Unwritable { path: self.path.clone(), source };
        append(&self.path, self.before.as_deref(), &self.after()).map_err(unwritable)
    }
}

fn append(path: &Path, before: Option<&str>, after: &str) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|_| before.is_none()) {
        fs::create_dir_all(directory)?;
    }
    // Links, the owner and the mode stay as they are.
    let mut file = OpenOptions::new().append(true).create(before.is_none()).open(path)?;
    let length = before.map_or(0, str::len);
    if file.metadata()?.len() != length as u64 {
        return Err(io::Error::other("it was changed meanwhile"));
    }
    let added = &after.as_bytes()[length..];
    file.write_all(added).and_then(|()| file.sync_all()).inspect_err(|_| {
        // Half a rule would be no policy at all.
        if let Err(error) = file.set_len(length as u64) {
            tracing::error!(path = %path.display(), %error, "the policy file has half a rule");
        }
    })
}

/// The policy file with all of these rules, and its text. Without rules, the last file that exists, or else the last.
fn file_of(
    sources: &Sources,
    rules: &[Arc<str>],
) -> Result<(PathBuf, Option<String>), SettingsError> {
    let mut files = Vec::new();
    for source in sources.policy_files() {
        let text = match fs::read_to_string(&source.path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(SettingsError::Unwritable { path: source.path, source: error });
            }
        };
        files.push((source.path, text));
    }
    if rules.is_empty() {
        let last = files.iter().rposition(|(_, text)| text.is_some());
        let at = last.or(files.len().checked_sub(1)).ok_or(SettingsError::Scattered)?;
        return Ok(files.swap_remove(at));
    }
    let has_all = |(path, text): &(PathBuf, Option<String>)| {
        let mut found = PolicyRules::default();
        policy::read(text.as_deref().unwrap_or_default(), path, &mut found);
        rules.iter().all(|name| found.rules.iter().any(|rule| rule.name == *name))
    };
    files.into_iter().find(has_all).ok_or(SettingsError::Scattered)
}
