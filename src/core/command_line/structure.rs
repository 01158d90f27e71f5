//! Lists, pipelines and compound commands: each command in them may run.

use std::mem;

use brush_parser::ast::{
    AndOr, AndOrList, Command, CompoundCommand, CompoundList, Pipeline, SeparatorOperator,
};

use crate::core::command_line::expressions::is_computed_number;
use crate::core::command_line::outputs::is_known_by_output;
use crate::core::command_line::redirections::writes_plainly;
use crate::core::command_line::shells::is_builtin;
use crate::core::command_line::{LineWord, ShapePiece, ShellLineReader, UnknownPart};

impl ShellLineReader {
    pub(super) fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            let AndOrList { first, additional } = &item.0;
            let is_sure = self.is_sure && matches!(item.1, SeparatorOperator::Sequence);
            self.pipeline(first, is_sure);
            for next in additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline, false),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, is_sure: bool) {
        self.has_other_input |= pipeline.seq.len() > 1;
        let is_sure = is_sure && pipeline.seq.len() == 1;
        let mut input = None;
        for command in &pipeline.seq {
            self.input = input.filter(|_| matches!(command, Command::Simple(_)));
            let before = self.found.calls.len();
            self.surely(is_sure, |reader| reader.command(command));
            input = match writes_plainly(command) {
                true => self.listed_files(before).or_else(|| self.listed_numbers(before)),
                false => None,
            };
        }
        self.input = None;
    }

    /// Reads what surely runs in the shell that reads the line, or may not.
    fn surely(&mut self, is_sure: bool, read: impl FnOnce(&mut Self)) {
        let before = mem::replace(&mut self.is_sure, is_sure);
        read(self);
        self.is_sure = before;
    }

    pub(super) fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.surely(false, |reader| reader.compound(compound));
                redirects.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
            }
            Command::Function(function) => {
                let before = self.found.calls.len();
                self.surely(false, |reader| reader.compound(&function.body.0));
                function.body.1.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
                self.defined(&function.fname.value, before);
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                redirects.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
            }
        }
    }

    /// Takes a function whose body has the calls behind so many. What it runs is known, unless its name stands for a program
    /// or builtin by which something else is known, or it calls itself.
    fn defined(&mut self, name: &str, calls: usize) {
        let is_plain = name.starts_with(|it: char| it.is_ascii_alphabetic())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-');
        let mut body = self.found.calls.iter().skip(calls);
        if is_plain
            && !is_builtin(name)
            && !is_known_by_output(name)
            && !body.any(|call| call.name.as_deref() == Some(name))
        {
            self.functions.insert(name.to_owned());
        } else {
            self.note(UnknownPart::Definition);
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(it) => self.arithmetic(&it.expr.value),
            CompoundCommand::ArithmeticForClause(it) => {
                for part in [&it.initializer, &it.condition, &it.updater].into_iter().flatten() {
                    self.arithmetic(&part.value);
                }
                self.list(&it.body.list);
            }
            CompoundCommand::BraceGroup(it) => self.list(&it.list),
            CompoundCommand::Subshell(it) => self.list(&it.list),
            CompoundCommand::ForClause(it) => {
                self.variable(&it.variable_name, None);
                let raw = it.values.iter().flatten();
                let words: Vec<LineWord> = raw.clone().map(|word| self.word(word)).collect();
                let mut values = raw.zip(&words);
                let is_number = it.values.is_some()
                    && values.all(|(raw, word)| is_computed_number(&raw.value) || word.is_number());
                let value = it.values.is_some().then(|| one_of(words)).flatten();
                self.variables.set_to(&it.variable_name, is_number, value);
                self.list(&it.body.list);
                self.variables.forget_value(&it.variable_name);
            }
            CompoundCommand::CaseClause(it) => {
                self.word(&it.value);
                for case in &it.cases {
                    case.patterns.iter().for_each(|word| _ = self.word(word));
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::IfClause(it) => {
                self.list(&it.condition);
                self.list(&it.then);
                for branch in it.elses.iter().flatten() {
                    branch.condition.iter().for_each(|list| self.list(list));
                    self.list(&branch.body);
                }
            }
            CompoundCommand::WhileClause(it) | CompoundCommand::UntilClause(it) => {
                self.list(&it.0);
                self.list(&it.1.list);
            }
            CompoundCommand::Coprocess(it) => {
                self.note(UnknownPart::Builtin);
                self.command(&it.body);
            }
        }
    }
}

/// What a variable is that is each of these words in turn.
fn one_of(words: Vec<LineWord>) -> Option<LineWord> {
    match words.as_slice() {
        [one] if one.pieces() == [ShapePiece::Numbers] => {
            Some(LineWord::of_pieces(vec![ShapePiece::Digits]))
        }
        [one] => Some(one.clone()),
        _ => {
            let texts: Option<Vec<String>> =
                words.iter().map(|word| word.text().map(str::to_owned)).collect();
            texts.map(|texts| LineWord::of_pieces(vec![ShapePiece::OneOf(texts)]))
        }
    }
}
