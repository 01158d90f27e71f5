//! How rules judge what a command line runs and writes.

use crate::core::command_line::{LineWord, ParsedCommandLine, ProgramCall, UnknownPart, WordShape};
use crate::core::policy::rules::command::CommandPattern;
use crate::core::policy::rules::facts::CallFacts;
use crate::core::policy::rules::patterns::Patterns;
use crate::core::policy::rules::{Condition, Matching, Rule, RuleEffect};

/// Whether these rules together allow all that a line does.
pub(super) fn all_allowed(line: &ParsedCommandLine, call: &CallFacts<'_>, rules: &[&Rule]) -> bool {
    let is_fine = |call: &_| {
        rules.iter().any(|rule| rule.command.as_ref().is_some_and(|command| command.allows(call)))
    };
    let is_written = |file: &LineWord| {
        let paths = file.text().and_then(|file| call.paths(line, file));
        let allows = |rule: &&Rule, path: &str| {
            rule.writes.as_ref().is_some_and(|patterns| patterns.matches(path))
        };
        let is_fine = |path: &String| rules.iter().any(|rule| allows(rule, path));
        paths.is_some_and(|paths| paths.iter().all(is_fine))
    };
    // A variable may change what a program does.
    !rules.is_empty()
        && line.is_known()
        && line.sets.is_empty()
        && line.calls.iter().all(is_fine)
        && line.writes.iter().all(is_written)
}

impl Rule {
    /// Whether the line is one that the rule is about. Typed input that is no known line is judged by `raw_input`
    /// alone.
    pub(super) fn judge_line(&self, call: &CallFacts<'_>) -> Option<(Matching, Condition)> {
        let condition = if self.command.is_some() { Condition::Command } else { Condition::Writes };
        if self.command.is_none() && self.writes.is_none() {
            return None;
        }
        let Some(line) = call.line else { return Some((Matching::No, condition)) };
        if self.effect == RuleEffect::Allow {
            // Whether the rules that allow cover the whole line is seen when all are known.
            let calls = || line.calls.iter().any(|call| self.allows(call));
            let matching = self.writes.is_some() && !line.writes.is_empty() || calls();
            return Some((matching.into(), condition));
        }
        let is_unclear = line.unknown.iter().copied().any(UnknownPart::hides_commands);
        let unclear = if is_unclear { Matching::Maybe } else { Matching::No };
        let command = self
            .command
            .as_ref()
            .map(|command| (command_of_line(command, line).max(unclear), Condition::Command));
        let writes = self
            .writes
            .as_ref()
            .map(|patterns| (files_of_line(patterns, call, line).max(unclear), Condition::Writes));
        match (command, writes) {
            (Some(command), Some(writes)) if writes.0 < command.0 => Some(writes),
            (Some(command), _) => Some(command),
            (None, writes) => writes,
        }
    }

    /// What it is that has the rule only perhaps match, in words for people.
    pub(super) fn what_is_unknown(&self, call: &CallFacts<'_>) -> Option<String> {
        let outcome = self.judge(call);
        let condition = outcome.condition.filter(|_| outcome.matching == Matching::Maybe)?;
        let line = match (call.line, &condition) {
            (Some(line), Condition::Command | Condition::Writes) => line,
            (_, condition) => return Some(format!("the {condition} is not known")),
        };
        let hidden = line.unknown.iter().filter(|part| part.hides_commands());
        let hidden: Vec<String> = hidden.map(ToString::to_string).collect();
        if !hidden.is_empty() {
            return Some(hidden.join("; "));
        }
        // A word of it may be one of a password.
        if line.unknown.contains(&UnknownPart::Unshown) {
            return Some(UnknownPart::Unshown.to_string());
        }
        let Some(command) = self.command.as_ref().filter(|_| condition == Condition::Command)
        else {
            let suspect = self.writes.as_ref().and_then(|it| suspect_file_of(it, call, line));
            return Some(match suspect {
                Some(file) => format!("a program that is not known may change `{file}`"),
                None => "a file that it writes is known only when it runs".to_owned(),
            });
        };
        let name = |call: &ProgramCall| call.name.clone().unwrap_or_default();
        if let Some(call) = line.calls.iter().find(|it| command.matching(it) == Matching::Maybe) {
            let name = name(call);
            return Some(format!("an argument of `{name}` is known only when it runs"));
        }
        let suspect = line.suspects.iter().find(|it| command.matching(it) == Matching::Yes)?;
        let inner = name(suspect);
        Some(match suspect.through.first() {
            Some(outer) => format!("`{outer}` may run `{inner}`"),
            None => format!("a shell may run `{inner}` when it reads this"),
        })
    }

    pub(super) fn allows(&self, call: &ProgramCall) -> bool {
        self.command.as_ref().is_some_and(|command| command.allows(call))
    }
}

/// Whether a line runs such a program. What a program may run that is not known to run others, may be one.
fn command_of_line(command: &CommandPattern, line: &ParsedCommandLine) -> Matching {
    let is_suspect = || line.suspects.iter().any(|call| command.matching(call) == Matching::Yes);
    most(line.calls.iter().map(|call| command.matching(call)), is_suspect)
}

/// The most that one of several says, or whether there is a suspect.
fn most(all: impl Iterator<Item = Matching>, is_suspect: impl Fn() -> bool) -> Matching {
    let most = all.max().unwrap_or(Matching::No);
    if most == Matching::No && is_suspect() { Matching::Maybe } else { most }
}

/// Whether a line writes, or has a program change, such a file.
fn files_of_line(patterns: &Patterns, call: &CallFacts<'_>, line: &ParsedCommandLine) -> Matching {
    let one = |file: &LineWord| match file {
        LineWord::Known(file) => match call.paths(line, file) {
            Some(paths) => paths.iter().any(|path| patterns.matches(path)).into(),
            None => Matching::Maybe,
        },
        LineWord::Computed(shape) => match may_be_in(patterns, call, line, shape) {
            true => Matching::Maybe,
            false => Matching::No,
        },
    };
    let files = line.writes.iter().chain(&line.targets).map(one);
    most(files, || suspect_file_of(patterns, call, line).is_some())
}

/// Whether a file of this shape may be such a file.
fn may_be_in(
    patterns: &Patterns,
    call: &CallFacts<'_>,
    line: &ParsedCommandLine,
    shape: &WordShape,
) -> bool {
    let shapes = shape.resolved(|directory| call.paths(line, directory));
    shapes.is_none_or(|shapes| shapes.iter().any(|it| patterns.may_match(it)))
}

/// Such a file which a program would change if it ran its operands.
fn suspect_file_of<'a>(
    patterns: &Patterns,
    call: &CallFacts<'_>,
    line: &'a ParsedCommandLine,
) -> Option<&'a str> {
    let is_such = |file: &&String| {
        let paths = call.paths(line, file);
        paths.is_some_and(|paths| paths.iter().any(|path| patterns.matches(path)))
    };
    line.suspect_files.iter().find(is_such).map(String::as_str)
}
