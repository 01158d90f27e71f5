//! Lists, pipelines and compound commands: each command in them may run.

use brush_parser::ast::{AndOr, AndOrList, Command, CompoundCommand, CompoundList, Pipeline};

use crate::core::command_line::expressions::is_number;
use crate::core::command_line::{ShellLineReader, UnknownPart};

impl ShellLineReader {
    pub(super) fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            let AndOrList { first, additional } = &item.0;
            self.pipeline(first);
            for next in additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        self.has_other_input |= pipeline.seq.len() > 1;
        pipeline.seq.iter().for_each(|command| self.command(command));
    }

    pub(super) fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                redirects.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
            }
            Command::Function(function) => {
                self.note(UnknownPart::Definition);
                self.compound(&function.body.0);
                function.body.1.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                redirects.iter().flat_map(|list| &list.0).for_each(|it| self.redirect(it));
            }
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
                let mut values = it.values.iter().flatten();
                let is_number = it.values.is_some() && values.all(|it| is_number(&it.value));
                self.variables.set(&it.variable_name, is_number);
                it.values.iter().flatten().for_each(|word| _ = self.word(word));
                self.list(&it.body.list);
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
