//! The part of a rule that is about a program and its arguments.

use crate::core::command_line::ProgramCall;
use crate::core::command_line::flags::canonical;
use crate::core::policy::rules::Matching;
use crate::core::policy::rules::facts::plain_path;
use crate::core::policy::rules::patterns::Patterns;

/// A program with its flags and operands.
///
/// A rule that denies or asks matches a program that has all of these flags, and one of these operands. A rule that allows
/// matches a program that has no other flags and no other operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    program: Patterns,
    /// Without dashes.
    flags: Option<Vec<String>>,
    /// Flags with none of which a rule that denies or asks matches, without dashes.
    without_flags: Vec<String>,
    /// The first operand, such as `push` of `git`. Where an option stands before it, whose value may be an operand, a rule
    /// that denies or asks looks for it among all operands.
    subcommand: Option<Patterns>,
    operands: Option<Patterns>,
}

impl CommandPattern {
    /// `flags` may be written with or without dashes, short or long.
    pub fn new(
        program: Patterns,
        flags: Option<Vec<String>>,
        subcommand: Option<Patterns>,
        operands: Option<Patterns>,
    ) -> Self {
        let flags = flags.map(plain);
        Self { program, flags, without_flags: Vec::new(), subcommand, operands }
    }

    /// The same, but for programs with one of these flags. For rules that deny or ask.
    pub fn without_flags(self, flags: Vec<String>) -> Self {
        Self { without_flags: plain(flags), ..self }
    }

    /// Whether programs with some flags are left out.
    pub fn leaves_out(&self) -> bool {
        !self.without_flags.is_empty()
    }

    /// The flags by the names that this program has for them.
    fn flags_of<'a>(&'a self, program: &'a str) -> Option<impl Iterator<Item = String> + 'a> {
        Some(self.flags.as_ref()?.iter().map(|flag| canonical(program, flag)))
    }

    /// Whether a program that is run is one that this denies or asks about.
    pub(super) fn matching(&self, call: &ProgramCall) -> Matching {
        let Some(name) = &call.name else { return Matching::Maybe };
        let path = call.path.as_deref();
        if !self.program.matches(name) && !path.is_some_and(|path| self.program.matches(path)) {
            return Matching::No;
        }
        let is_left_out = |flag: &String| call.flags.contains(&canonical(name, flag));
        if self.without_flags.iter().any(is_left_out) {
            return Matching::No;
        }
        let unclear = match call.arguments.iter().all(Option::is_some) {
            true => Matching::No,
            false => Matching::Maybe,
        };
        let flags =
            self.flags_of(name).is_none_or(|mut flags| flags.all(|it| call.flags.contains(&it)));
        let any_operand = |patterns: &Patterns| {
            let matches = |operand: &String| {
                patterns.matches(operand) || patterns.matches(&plain_path(operand))
            };
            call.operands.iter().flatten().any(matches)
        };
        let subcommand = match (&self.subcommand, &call.subcommand) {
            (None, _) => true,
            (Some(patterns), Some(Some(known))) if !patterns.matches(known) => return Matching::No,
            (Some(_), Some(Some(_))) => true,
            (Some(patterns), Some(None) | None) => any_operand(patterns),
        };
        let operands = self.operands.as_ref().is_none_or(any_operand);
        let conditions = [flags, subcommand, operands];
        conditions
            .map(|holds| Matching::from(holds).max(unclear))
            .into_iter()
            .min()
            .unwrap_or(unclear)
    }

    /// Whether a program that is run is one that this allows. All its arguments must be known.
    pub(super) fn allows(&self, call: &ProgramCall) -> bool {
        let Some(name) = call.name.as_ref().filter(|_| call.is_known()) else { return false };
        // A program of this name elsewhere may be another one.
        if !self.program.matches(call.path.as_ref().unwrap_or(name)) {
            return false;
        }
        let flags = self.flags_of(name).is_none_or(|flags| {
            let allowed: Vec<String> = flags.collect();
            call.flags.iter().all(|flag| allowed.contains(flag))
        });
        let mut operands = call.operands.iter().flatten();
        let subcommand = match &self.subcommand {
            Some(patterns) => operands.next().is_some_and(|first| patterns.matches(first)),
            None => true,
        };
        let rest = match &self.operands {
            Some(patterns) => operands.all(|operand| patterns.matches(operand)),
            None => true,
        };
        flags && subcommand && rest
    }
}

fn plain(flags: Vec<String>) -> Vec<String> {
    flags.into_iter().map(|flag| flag.trim_start_matches('-').to_owned()).collect()
}
