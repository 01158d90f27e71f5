//! The part of a rule that is about a program and its arguments.

use crate::core::command_line::flags::{canonical, lettered_values, may_be_flags, named_values};
use crate::core::command_line::{LineWord, ProgramCall};
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
        let may_be_flag = |word: &LineWord| !word.is_known() && may_be_flags(name, word);
        let mut wanted = self.flags_of(name).into_iter().flatten();
        let flags = match wanted.all(|it| call.flags.contains(&it)) {
            true => Matching::Yes,
            false if call.arguments.iter().any(may_be_flag) => Matching::Maybe,
            false => Matching::No,
        };
        let any_operand = |patterns: &Patterns| {
            let values = named_values(&call.arguments)
                .chain(lettered_values(name, &call.arguments))
                .map(|value| matching_word(patterns, &value));
            let operands = call.operands.iter().map(|operand| matching_word(patterns, operand));
            operands.chain(values).max().unwrap_or(Matching::No)
        };
        let subcommand = match (&self.subcommand, &call.subcommand) {
            (None, _) => Matching::Yes,
            (Some(patterns), Some(LineWord::Known(known))) => patterns.matches(known).into(),
            (Some(patterns), Some(LineWord::Computed(_)) | None) => any_operand(patterns),
        };
        let operands = self.operands.as_ref().map_or(Matching::Yes, any_operand);
        flags.min(subcommand).min(operands)
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
        let mut operands = call.operands.iter().filter_map(LineWord::text);
        let subcommand = match &self.subcommand {
            Some(patterns) => operands.next().is_some_and(|first| patterns.matches(first)),
            None => true,
        };
        let rest = match &self.operands {
            Some(patterns) => {
                let is_meant = |it: LineWord| it.text().is_some_and(|it| patterns.matches(it));
                operands.all(|operand| patterns.matches(operand))
                    && named_values(&call.arguments).all(is_meant)
            }
            None => true,
        };
        flags && subcommand && rest
    }
}

/// Whether an operand is, or may be, one that these patterns are about.
fn matching_word(patterns: &Patterns, word: &LineWord) -> Matching {
    match word {
        LineWord::Known(text) => {
            (patterns.matches(text) || patterns.matches(&plain_path(text))).into()
        }
        LineWord::Computed(shape) => {
            let plain = shape.resolved(|directory| Some(vec![plain_path(directory)]));
            let may_match = plain.is_none_or(|plain| {
                let mut all = [shape.pieces()].into_iter().chain(plain.iter().map(Vec::as_slice));
                all.any(|pieces| patterns.may_match(pieces))
            });
            if may_match { Matching::Maybe } else { Matching::No }
        }
    }
}

fn plain(flags: Vec<String>) -> Vec<String> {
    flags.into_iter().map(|flag| flag.trim_start_matches('-').to_owned()).collect()
}
