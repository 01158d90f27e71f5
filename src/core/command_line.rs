//! What a shell command line runs, as far as that can be known before it runs.
//!
//! A shell can build a command from anything: variables, output, files, its history. Whatever this cannot follow is
//! named in [`ParsedCommandLine::unknown`] and never guessed, so that a rule which allows can refuse to rely on it.

pub(crate) mod flags;
mod git;
mod interpreters;
mod nesting;
mod parser;
mod quoting;
mod redirections;
mod shells;
mod variables;
mod words;
mod wrappers;

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AndOrList, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList,
    ExtendedTestExpr, Pipeline, SimpleCommand,
};

pub use crate::core::command_line::shells::is_shell;

use crate::core::command_line::nesting::is_too_deep;

/// The longest line that is read, in bytes. What is longer is not parsed.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How many lines may be inside of each other, as in `sh -c 'sh -c …'`.
const LINES_DEEP_MAX: usize = 6;
/// How many commands a line may have.
const CALLS_MAX: usize = 256;

/// A word after all quotes are removed; `None` if it is known only when the command runs.
pub type KnownWord = Option<String>;

/// What a command line runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedCommandLine {
    /// The programs that it may run, in the order of the text. A wrapper, such as `sudo`, comes before what it runs.
    pub calls: Vec<ProgramCall>,
    /// The variables that it sets.
    pub sets: BTreeSet<String>,
    /// The files that it writes by redirection. `/dev/null` is none.
    pub writes: Vec<KnownWord>,
    /// Why not everything it does is known; empty if it is.
    pub unknown: BTreeSet<UnknownPart>,
}

/// One program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCall {
    /// Its name, without a path.
    pub name: KnownWord,
    /// Its path, if one was given.
    pub path: Option<String>,
    /// All words after its name.
    pub arguments: Vec<KnownWord>,
    /// Its flags by their shortest name and without dashes: `-rf`, `-r -f` and `--recursive --force` are the same.
    pub flags: BTreeSet<String>,
    /// The arguments that are no flags.
    pub operands: Vec<KnownWord>,
    /// The wrappers that run it, outermost first.
    pub through: Vec<String>,
}

impl ProgramCall {
    /// Whether each of its arguments is known.
    pub fn is_known(&self) -> bool {
        self.name.is_some() && self.arguments.iter().all(Option::is_some)
    }
}

/// A part of a command line whose effect is not known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum UnknownPart {
    #[error("it is not valid shell syntax")]
    Syntax,
    #[error("it is too long")]
    Length,
    #[error("it has too many brackets, loops and conditions, or lines inside of lines")]
    Nesting,
    #[error("it has control characters")]
    ControlCharacter,
    #[error("the shell may replace a part by its history, or not take `#` for a comment")]
    History,
    #[error("the name of a program is computed")]
    Program,
    #[error("it has arithmetic, patterns or expansions that are not followed")]
    Expansion,
    #[error("it defines a function")]
    Definition,
    #[error("a builtin may change the shell, or evaluate its arguments")]
    Builtin,
    #[error("it evaluates text that is not known")]
    Evaluation,
    #[error("it runs a file of commands in the shell")]
    Sourced,
    #[error("a shell or interpreter reads its commands from another input than the terminal")]
    ShellInput,
    #[error("it sets a variable that may change which programs run")]
    Variable,
    #[error("it sets a configuration that may change which programs run")]
    Configuration,
    #[error("a program takes it that is not known to be a shell")]
    OtherProgram,
    #[error("it is typed in a way, or behind something, that is not known")]
    Typing,
}

impl UnknownPart {
    /// The word for it, stable over releases.
    pub fn code(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Length => "length",
            Self::Nesting => "nesting",
            Self::ControlCharacter => "control_character",
            Self::History => "history",
            Self::Program => "program",
            Self::Expansion => "expansion",
            Self::Definition => "definition",
            Self::Builtin => "builtin",
            Self::Evaluation => "evaluation",
            Self::Sourced => "sourced",
            Self::ShellInput => "shell_input",
            Self::Variable => "variable",
            Self::Configuration => "configuration",
            Self::OtherProgram => "other_program",
            Self::Typing => "typing",
        }
    }
}

impl ParsedCommandLine {
    /// Parses a line of a POSIX shell or bash.
    pub fn parse(text: &str) -> Self {
        let mut reader = ShellLineReader::default();
        reader.typed(text);
        reader.end()
    }

    /// Takes a program that is started with these arguments, without a shell.
    pub fn of_arguments(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut reader = ShellLineReader::default();
        reader.call(arguments.into_iter().map(Some).collect());
        reader.end()
    }

    /// The same with these variables set first.
    pub fn with_variables(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut reader = ShellLineReader { found: self, ..ShellLineReader::default() };
        variables.into_iter().for_each(|(name, value)| reader.variable(&name, Some(&value)));
        reader.end()
    }

    /// Whether all of it is known.
    pub fn is_known(&self) -> bool {
        let calls = self.calls.iter().all(ProgramCall::is_known);
        self.unknown.is_empty() && calls && self.writes.iter().all(Option::is_some)
    }
}

/// Reads lines, and those inside of them.
#[derive(Debug, Default)]
struct ShellLineReader {
    found: ParsedCommandLine,
    /// How many lines this is inside of.
    depth: usize,
    /// The wrappers around what is read, outermost first.
    through: Vec<String>,
    /// A shell or interpreter reads its commands from standard input.
    shell_reads: bool,
    /// Something of the line may be the standard input of something else.
    has_other_input: bool,
}

impl ShellLineReader {
    fn end(mut self) -> ParsedCommandLine {
        if self.shell_reads && self.has_other_input {
            self.note(UnknownPart::ShellInput);
        }
        self.found
    }

    fn note(&mut self, part: UnknownPart) {
        self.found.unknown.insert(part);
    }

    /// Reads a line that is typed at a prompt.
    fn typed(&mut self, text: &str) {
        if words::depends_on_history(text) {
            self.note(UnknownPart::History);
        }
        self.script(text);
    }

    /// Reads a line that no person types.
    fn script(&mut self, text: &str) {
        if text.len() > LINE_BYTES_MAX {
            return self.note(UnknownPart::Length);
        }
        if text.chars().any(|it| it.is_control() && it != '\n') {
            return self.note(UnknownPart::ControlCharacter);
        }
        if self.depth == LINES_DEEP_MAX || is_too_deep(text) {
            return self.note(UnknownPart::Nesting);
        }
        if nesting::has_inner_here_document(text) {
            return self.note(UnknownPart::Nesting);
        }
        // The parser looks for the end of a here-document before it joins continued lines.
        if text.contains("<<") && text.contains("\\\n") {
            self.note(UnknownPart::Syntax);
        }
        if words::has_inner_command(text) {
            self.note(UnknownPart::Expansion);
        }
        let Some(program) = parser::program(text) else { return self.note(UnknownPart::Syntax) };
        self.depth += 1;
        program.complete_commands.iter().for_each(|list| self.list(list));
        self.depth -= 1;
    }

    fn list(&mut self, list: &CompoundList) {
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

    fn command(&mut self, command: &Command) {
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

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            // Shells that do not know `[[` run what follows these.
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.note(UnknownPart::Syntax);
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
                let is_text = matches!(test.to_string().as_str(), "==" | "=" | "!=" | "=~" | "-ef");
                (!is_text).then(|| self.note(UnknownPart::Expansion));
                self.word(one);
                self.word(other);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let prefix = simple.prefix.iter().flat_map(|items| &items.0);
        prefix.for_each(|item| self.prefix(item));
        let mut words = Vec::new();
        words.extend(simple.word_or_name.as_ref().map(|word| self.word(word)));
        let suffix = simple.suffix.iter().flat_map(|items| &items.0);
        words.extend(suffix.filter_map(|item| self.argument(item)));
        if !words.is_empty() {
            self.call(words);
        }
    }

    /// Reads what comes after the name of a program, and returns the argument that it is.
    fn argument(&mut self, item: &CommandPrefixOrSuffixItem) -> Option<KnownWord> {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                self.redirect(redirect);
                None
            }
            CommandPrefixOrSuffixItem::Word(word)
            | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(self.word(word)),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, inner) => {
                self.has_other_input = true;
                self.list(&inner.list);
                Some(None)
            }
        }
    }

    /// Takes the words of one command, and what it runs in turn.
    fn call(&mut self, words: Vec<KnownWord>) {
        if self.found.calls.len() == CALLS_MAX {
            return self.note(UnknownPart::Length);
        }
        let mut words = words.into_iter();
        let Some(first) = words.next() else { return };
        // No program is named like an option, and `{x}>file` opens a descriptor in some shells.
        let first = first.filter(|it| !it.starts_with(['-', '{']));
        if first.is_none() {
            self.note(UnknownPart::Program);
        }
        let name = first.as_ref().map(|it| it.rsplit('/').next().unwrap_or_default().to_owned());
        let path = first.filter(|it| it.contains('/'));
        let arguments: Vec<KnownWord> = words.collect();
        let known = name.as_deref().unwrap_or_default();
        let (flags, operands) = flags::split(known, wrappers::own_arguments(known, &arguments));
        let through = self.through.clone();
        let call = ProgramCall { name, path, arguments, flags, operands, through };
        self.found.calls.push(call.clone());
        self.inner_calls(&call);
    }
}

#[cfg(test)]
mod tests;
