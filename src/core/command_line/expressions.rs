//! Arithmetic and tests. A shell evaluates the values of variables in them, which may run commands: `x='a[$(rm y)]'`.

use std::collections::BTreeSet;

use brush_parser::ast::ExtendedTestExpr;

use crate::core::command_line::{ShellLineReader, UnknownPart};

/// What is known about the values of variables.
#[derive(Debug, Default)]
pub(super) struct KnownVariables {
    numbers: BTreeSet<String>,
    others: BTreeSet<String>,
    /// Those whose value is evaluated.
    evaluated: BTreeSet<String>,
}

impl KnownVariables {
    /// Takes a variable that a line sets.
    pub(super) fn set(&mut self, name: &str, is_number: bool) {
        let names = if is_number { &mut self.numbers } else { &mut self.others };
        names.insert(name.to_owned());
    }
}

/// Whether a word is a number, or computed to be one.
pub(super) fn is_number(raw: &str) -> bool {
    let computed = raw.strip_prefix("$((").and_then(|it| it.strip_suffix("))"));
    let is_range = raw.strip_prefix('{').and_then(|it| it.strip_suffix('}')).is_some_and(|range| {
        range.split("..").all(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
    });
    computed.is_some_and(|it| !it.contains(['(', ')', '$', '`']))
        || is_range
        || !raw.is_empty() && raw.bytes().all(|it| it.is_ascii_digit())
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
        let KnownVariables { numbers, others, evaluated } = &self.variables;
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
