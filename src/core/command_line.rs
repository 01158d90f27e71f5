//! What a shell command line runs, as far as that can be known before it runs.
//!
//! A shell can build a command from anything: variables, output, files, its history. Whatever this cannot follow is
//! named in [`ParsedCommandLine::unknown`] and never guessed, so that a rule which allows can refuse to rely on it.

mod arguments;
mod documents;
mod expressions;
mod files;
pub(crate) mod flags;
mod git;
mod interpreters;
mod languages;
mod multiplexers;
mod nesting;
mod options;
mod outputs;
mod parser;
mod quoting;
mod redirections;
mod remote;
mod shells;
mod structure;
mod suspects;
mod unknown;
mod variables;
mod word;
mod words;
mod wrappers;
mod written;

use std::collections::BTreeSet;
use std::mem;

use brush_parser::ast::{CommandPrefixOrSuffixItem, IoRedirect, SimpleCommand};

pub use crate::core::command_line::shells::{is_shell, reads_otherwise};
pub use crate::core::command_line::unknown::UnknownPart;
pub use crate::core::command_line::word::{LineWord, ShapePiece, WordShape};

use crate::core::command_line::arguments::lists;
use crate::core::command_line::expressions::KnownVariables;
use crate::core::command_line::nesting::is_too_deep;

/// The longest line that is read, in bytes. What is longer is not parsed.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How many lines may be inside of each other, as in `sh -c 'sh -c …'`.
const LINES_DEEP_MAX: usize = 6;
/// How many commands a line may have.
const CALLS_MAX: usize = 256;

/// What a command line runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedCommandLine {
    /// The programs that it may run, in the order of the text. A wrapper, such as `sudo`, comes before what it runs.
    pub calls: Vec<ProgramCall>,
    /// The variables that it sets.
    pub sets: BTreeSet<String>,
    /// The files that it writes by redirection. `/dev/null` is none.
    pub writes: Vec<LineWord>,
    /// The files that its programs are told to write, change or remove.
    pub targets: Vec<LineWord>,
    /// What the operands of programs that are not known would run, if these programs run their operands.
    pub suspects: Vec<ProgramCall>,
    /// The files that these would write or change.
    pub suspect_files: Vec<String>,
    /// Why not everything it does is known; empty if it is.
    pub unknown: BTreeSet<UnknownPart>,
}

/// Programs of which the first operand says what they do.
const HAVE_SUBCOMMANDS: &str = "git hg svn cargo rustup go npm pnpm yarn bun deno npx uv uvx pip pip3 poetry docker podman \
    docker-compose kubectl oc helm terraform tofu pulumi gh glab aws gcloud gsutil az systemctl brew apt apt-get dnf yum \
    pacman apk make just ninja cmake tmux termgate";

/// One program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCall {
    /// Its name, without a path; `None` if that is computed.
    pub name: Option<String>,
    /// Its path, if one was given.
    pub path: Option<String>,
    /// All words after its name.
    pub arguments: Vec<LineWord>,
    /// Its flags by their shortest name and without dashes: `-rf`, `-r -f` and `--recursive --force` are the same.
    pub flags: BTreeSet<String>,
    /// The arguments that are no flags.
    pub operands: Vec<LineWord>,
    /// The first operand, such as `push` of `git`. `None` if options before it may have values.
    pub subcommand: Option<LineWord>,
    /// The wrappers that run it, outermost first.
    pub through: Vec<String>,
}

impl ProgramCall {
    /// Whether each of its arguments is known.
    pub fn is_known(&self) -> bool {
        self.name.is_some() && self.arguments.iter().all(LineWord::is_known)
    }

    /// The program with its flags, and with its first operand where that says what the program does.
    pub fn kind(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let does = lists(HAVE_SUBCOMMANDS, name).then_some(self.subcommand.as_ref()).flatten();
        let does = does.and_then(LineWord::text);
        let flags = self.flags.iter().map(String::as_str);
        let program = self.path.as_deref().or(self.name.as_deref()).into_iter();
        program.chain(does).chain(flags).collect::<Vec<_>>().join(" ")
    }
}

impl ParsedCommandLine {
    /// Parses a line of a POSIX shell or bash.
    pub fn parse(text: &str) -> Self {
        ShellLineReader::read(|reader| reader.typed(text))
    }

    /// Takes a program that is started with these arguments, without a shell.
    pub fn of_arguments(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut reader = ShellLineReader::default();
        reader.call(arguments.into_iter().map(LineWord::Known).collect());
        reader.end()
    }

    /// The same with these variables set first.
    pub fn with_variables(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut reader = ShellLineReader { found: self, ..ShellLineReader::default() };
        variables.into_iter().for_each(|(name, value)| reader.variable(&name, Some(&value)));
        reader.end()
    }

    /// What it does if a shell reads it later, of which nothing is sure.
    pub fn for_later(self) -> Self {
        let files = self.writes.iter().chain(&self.targets).filter_map(LineWord::text);
        let suspect_files = files.map(str::to_owned).collect();
        Self { suspects: self.calls, suspect_files, ..Self::default() }
    }

    /// What two readings of a line do together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.calls.extend(other.calls);
        self.sets.extend(other.sets);
        self.writes.extend(other.writes);
        self.targets.extend(other.targets);
        self.suspects.extend(other.suspects);
        self.suspect_files.extend(other.suspect_files);
        self.unknown.extend(other.unknown);
        self
    }

    /// What of it is surely there, where it may as well be a password: that is often no valid line.
    #[must_use]
    pub fn unshown(mut self) -> Self {
        self.calls.retain(|call| call.name.is_some());
        self.writes.retain(LineWord::is_known);
        self.targets.retain(LineWord::is_known);
        self.unknown = [UnknownPart::Unshown].into();
        self
    }

    /// Whether all of it is known.
    pub fn is_known(&self) -> bool {
        let calls = self.calls.iter().all(ProgramCall::is_known);
        self.unknown.is_empty() && calls && self.writes.iter().all(LineWord::is_known)
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
    /// A shell reads its commands from standard input.
    shell_reads: bool,
    /// Another interpreter does.
    interpreter_reads: bool,
    /// The files of which the next program gets the names, each ended by NUL, or the numbers that it gets, if that is all that
    /// it gets.
    input: Option<LineWord>,
    /// Something of the line may be the standard input of something else.
    has_other_input: bool,
    variables: KnownVariables,
    /// The functions that the line defines.
    functions: BTreeSet<String>,
    /// What is read surely runs, in the shell that reads the line.
    is_sure: bool,
    /// What is read is only what a program may run that is not known.
    is_suspecting: bool,
}

impl ShellLineReader {
    /// Has a line be read, with the values of its variables where these are sure.
    fn read(read: impl Fn(&mut Self)) -> ParsedCommandLine {
        let mut reader = Self::default();
        read(&mut reader);
        if reader.variables.is_ambiguous(reader.found.unknown.contains(&UnknownPart::Sourced)) {
            reader = Self { variables: KnownVariables::without_values(), ..Self::default() };
            read(&mut reader);
        }
        reader.end()
    }

    fn end(mut self) -> ParsedCommandLine {
        if (self.shell_reads || self.interpreter_reads) && self.has_other_input {
            self.note(UnknownPart::ShellInput);
        }
        // Whatever else is typed may call it.
        let calls =
            |name: &String| self.found.calls.iter().any(|it| it.name.as_ref() == Some(name));
        if !self.functions.iter().all(calls) {
            self.note(UnknownPart::Definition);
        }
        self.evaluated();
        self.found
    }

    fn note(&mut self, part: UnknownPart) {
        self.found.unknown.insert(part);
    }

    /// Reads a line that is typed at a prompt.
    fn typed(&mut self, text: &str) {
        let other = words::without_comments(text);
        if words::depends_on_history(text, other.is_some()) {
            self.note(UnknownPart::History);
        }
        self.script(text);
        // Some shells take `#` for no comment at a prompt.
        if let Some(other) = other {
            self.also(&other);
        }
    }

    /// Adds what a line does if it is read in another way, too.
    fn also(&mut self, text: &str) {
        let mut found = Self::read(|reader| reader.script(text));
        if found.unknown.remove(&UnknownPart::Syntax) {
            self.note(UnknownPart::History);
        }
        found.calls.retain(|call| !self.found.calls.contains(call));
        self.found.calls.extend(found.calls);
        self.found.suspects.extend(found.suspects);
        self.found.suspect_files.extend(found.suspect_files);
        self.found.sets.extend(found.sets);
        self.found.unknown.extend(found.unknown);
        for (own, more) in
            [(&mut self.found.writes, found.writes), (&mut self.found.targets, found.targets)]
        {
            let more: Vec<_> = more.into_iter().filter(|file| !own.contains(file)).collect();
            own.extend(more);
        }
    }

    /// Reads a line that no person types.
    fn script(&mut self, text: &str) {
        if text.len() > LINE_BYTES_MAX {
            return self.note(UnknownPart::Length);
        }
        if text.chars().any(|it| it.is_control() && it != '\n') {
            return self.note(UnknownPart::ControlCharacter);
        }
        let text = &documents::without_inner(text);
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
        // What a line inside of this one sets is not set outside.
        let is_sure = mem::replace(&mut self.is_sure, self.depth == 1);
        program.complete_commands.iter().for_each(|list| self.list(list));
        self.is_sure = is_sure;
        self.depth -= 1;
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let reads = simple.word_or_name.as_ref().is_some_and(|it| it.value == "read");
        // In front of a program, a variable is that program's alone.
        let is_alone = simple.word_or_name.is_none();
        let is_sure = self.is_sure;
        self.is_sure &= is_alone;
        let prefix = simple.prefix.iter().flat_map(|items| &items.0);
        prefix.for_each(|item| self.prefix(item, reads));
        self.is_sure = is_sure;
        let mut words = Vec::new();
        words.extend(simple.word_or_name.as_ref().map(|word| self.word(word)));
        let suffix = simple.suffix.iter().flat_map(|items| &items.0);
        words.extend(suffix.clone().filter_map(|item| self.argument(item)));
        let read_before = self.interpreter_reads;
        let mut inputs = suffix.filter_map(redirections::input_of);
        if inputs.clone().next().is_some() {
            self.input = None;
        }
        if !words.is_empty() {
            self.call(words);
        }
        if let (Some(IoRedirect::HereDocument(..)), None) = (inputs.next(), inputs.next())
            && self.interpreter_reads
            && !read_before
        {
            self.interpreter_reads = false;
            self.note(UnknownPart::Foreign);
        }
    }

    /// Reads what comes after the name of a program, and returns the argument that it is.
    fn argument(&mut self, item: &CommandPrefixOrSuffixItem) -> Option<LineWord> {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                self.redirect(redirect);
                None
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _)
                if self.appends_to_path(assignment) =>
            {
                None
            }
            CommandPrefixOrSuffixItem::Word(word)
            | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(self.word(word)),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, inner) => {
                self.has_other_input = true;
                self.list(&inner.list);
                Some(LineWord::unknown())
            }
        }
    }

    /// Takes the words of one command, and what it runs in turn.
    fn call(&mut self, words: Vec<LineWord>) {
        if self.found.calls.len() == CALLS_MAX {
            return self.note(UnknownPart::Length);
        }
        let mut words = words.into_iter();
        let Some(first) = words.next() else { return };
        // No program is named like an option, and `{x}>file` opens a descriptor in some shells.
        let first = first.text().filter(|it| !it.starts_with(['-', '{']));
        // zsh looks for the program behind it.
        let first = first.map(|it| it.strip_prefix('=').filter(|it| !it.is_empty()).unwrap_or(it));
        if first.is_none() {
            self.note(UnknownPart::Program);
        }
        let name = first.map(|it| it.rsplit('/').next().unwrap_or_default().to_owned());
        let path = first.filter(|it| it.contains('/') || it.starts_with("git-"));
        let path = path.map(str::to_owned);
        let mut arguments: Vec<LineWord> = words.collect();
        let name = git::whole_name(name, &mut arguments);
        let call = self.program_call(name, path, arguments);
        self.found.calls.push(call.clone());
        self.changed_files(&call);
        self.inner_calls(&call);
    }

    fn program_call(
        &self,
        name: Option<String>,
        path: Option<String>,
        arguments: Vec<LineWord>,
    ) -> ProgramCall {
        let known = name.as_deref().unwrap_or_default();
        let (before, own) = git::behind_options(known, wrappers::own_arguments(known, &arguments));
        let (mut flags, _) = flags::split(known, before);
        let (own_flags, operands) = flags::split(known, own);
        flags.extend(own_flags);
        let is_first = |it: &LineWord| it.text().is_none_or(|it| !it.starts_with('-'));
        // It names a toolchain.
        let is_before =
            |it: &LineWord| known == "cargo" && it.text().is_some_and(|it| it.starts_with('+'));
        let first = own.iter().find(|it| !is_before(it));
        let subcommand = first.filter(|first| is_first(first)).cloned();
        let through = self.through.clone();
        ProgramCall { name, path, arguments, flags, operands, subcommand, through }
    }
}

#[cfg(test)]
mod tests;
