//! Arithmetic and tests. A shell evaluates the values of variables in them, which may run commands: `x='a[$(rm y)]'`.

use std::collections::{BTreeMap, BTreeSet};

use brush_parser::ast::ExtendedTestExpr;

use crate::core::command_line::arguments::lists;
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// Variables that shells set by themselves.
const SET_BY_SHELLS: &str = "_ PWD OLDPWD REPLY reply MATCH MBEGIN MEND match mbegin mend BASH_REMATCH BASH_ARGV0 OPTARG \
    OPTIND LINENO RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME PIPESTATUS pipestatus status argv path cdpath fpath \
    manpath mailpath module_path psvar dirstack DIRSTACK FUNCNAME HISTCMD COLUMNS LINES UID EUID GID EGID PPID MAPFILE \
    COPROC TTYIDLE ZSH_ARGZERO";

/// What is known about the values of variables.
#[derive(Debug, Default)]
pub(super) struct KnownVariables {
    numbers: BTreeSet<String>,
    others: BTreeSet<String>,
    /// Those whose value is evaluated.
    evaluated: BTreeSet<String>,
    /// What those are that surely have a value of this line; none for those that are set more than once, or perhaps.
    values: BTreeMap<String, Option<LineWord>>,
    /// Those whose value was taken, and those that are set more than once, or behind that.
    used: BTreeSet<String>,
    set_again: BTreeSet<String>,
    /// No value is taken.
    is_without_values: bool,
}

impl KnownVariables {
    /// Takes a variable that a line sets.
    pub(super) fn set(&mut self, name: &str, is_number: bool) {
        self.set_to(name, is_number, None);
    }

    /// Takes a variable that a line surely sets to this value, if that is known.
    pub(super) fn set_to(&mut self, name: &str, is_number: bool, value: Option<LineWord>) {
        let names = if is_number { &mut self.numbers } else { &mut self.others };
        names.insert(name.to_owned());
        let is_own = !self.is_without_values && !lists(SET_BY_SHELLS, name);
        let before = self.values.insert(name.to_owned(), value.filter(|_| is_own));
        if before.is_some() || self.used.contains(name) {
            self.set_again.insert(name.to_owned());
        }
    }

    /// Whether a variable has the value that it had before the line, which is taken.
    pub(super) fn is_outer(&mut self, name: &str) -> bool {
        let is_outer = !self.is_without_values && !self.values.contains_key(name);
        if is_outer {
            self.used.insert(name.to_owned());
        }
        is_outer
    }

    /// The value of a variable, if it is surely one of this line.
    pub(super) fn value(&mut self, name: &str) -> Option<&LineWord> {
        let value = self.values.get(name)?.as_ref()?;
        self.used.insert(name.to_owned());
        Some(value)
    }

    /// Takes no value of a variable any more: what gave it may not have been reached.
    pub(super) fn forget_value(&mut self, name: &str) {
        self.values.insert(name.to_owned(), None);
    }

    /// Whether a value was taken that may be another one, since the variable is set again, such as later in a loop, or
    /// perhaps by a `file` of commands.
    pub(super) fn is_ambiguous(&self, file: bool) -> bool {
        !self.used.is_disjoint(&self.set_again) || file && !self.used.is_empty()
    }

    /// Variables of which no value is taken.
    pub(super) fn without_values() -> Self {
        Self { is_without_values: true, ..Self::default() }
    }
}

/// Whether a word is computed to be a number.
pub(super) fn is_computed_number(raw: &str) -> bool {
    let computed = raw.strip_prefix("$((").and_then(|it| it.strip_suffix("))"));
    let is_range = raw.strip_prefix('{').and_then(|it| it.strip_suffix('}')).is_some_and(|range| {
        range.split("..").all(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
    });
    computed.is_some_and(|it| !it.contains(['(', ')', '$', '`'])) || is_range
}

impl ShellLineReader {
    pub(super) fn arithmetic(&mut self, expression: &str) {
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let plain = expression.replace("${", "").replace(['$', '}'], "");
        if plain.contains(|it: char| !is_name(it) && !" +-*/%()<>=&|^~,!?:;".contains(it)) {
            return self.note(UnknownPart::Expansion);
        }
        if let Some((name, value)) = plain.split_once('=')
            && !value.starts_with('=')
            && name.trim().chars().all(is_name)
        {
            self.variables.set(name.trim(), true);
        }
        let names = plain.split(|it| !is_name(it)).filter(|it| !it.is_empty());
        let is_digit = |it: &&str| it.starts_with(|it: char| it.is_ascii_digit());
        self.variables.evaluated.extend(names.filter(|it| !is_digit(it)).map(str::to_owned));
    }

    /// Notes whether something is evaluated that may be no number.
    pub(super) fn evaluated(&mut self) {
        let KnownVariables { numbers, others, evaluated, .. } = &self.variables;
        if evaluated.iter().any(|name| others.contains(name) || !numbers.contains(name)) {
            self.note(UnknownPart::Expansion);
        }
    }

    pub(super) fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            // A shell that does not know `[[` runs what follows `||`, and with it what follows a further `&&`. No program
            // is called like the operator at its beginning.
            ExtendedTestExpr::Or(one, other) => {
                if !begins_with_operator(other) {
                    self.note(UnknownPart::Syntax);
                }
                self.test(one);
                self.test(other);
            }
            ExtendedTestExpr::And(one, other) => {
                self.test(one);
                self.test(other);
            }
            ExtendedTestExpr::Parenthesized(inner) => {
                self.note(UnknownPart::Syntax);
                self.test(inner);
            }
            ExtendedTestExpr::Not(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(test, word) => {
                // Other than files and texts: they evaluate names.
                let evaluates = ["-v", "-R", "-o", "-t"].contains(&test.to_string().as_str());
                evaluates.then(|| self.note(UnknownPart::Expansion));
                self.word(word);
            }
            ExtendedTestExpr::BinaryTest(test, one, other) => {
                self.word(one);
                self.word(other);
                match test.to_string().as_str() {
                    "==" | "=" | "!=" | "=~" | "-ef" => {}
                    "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                        self.arithmetic(one.value.trim_matches('"'));
                        self.arithmetic(other.value.trim_matches('"'));
                    }
                    _ => self.note(UnknownPart::Expansion),
                }
            }
        }
    }
}

fn begins_with_operator(test: &ExtendedTestExpr) -> bool {
    match test {
        // A word alone is read as `-n` with it.
        ExtendedTestExpr::UnaryTest(test, _) => test.to_string() != "-n",
        ExtendedTestExpr::And(first, _) | ExtendedTestExpr::Or(first, _) => {
            begins_with_operator(first)
        }
        ExtendedTestExpr::BinaryTest(..)
        | ExtendedTestExpr::Not(_)
        | ExtendedTestExpr::Parenthesized(_) => false,
    }
}
