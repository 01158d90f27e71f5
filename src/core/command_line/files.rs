//! The files that `find` finds, and what it runs for them.

use crate::core::command_line::arguments::lists_word;
use crate::core::command_line::{CALLS_MAX, LineWord, ShapePiece, ShellLineReader, UnknownPart};

/// The options that run a command, in the directory of each file and elsewhere.
const RUNS_IN_DIRECTORY: &str = "-execdir -okdir";
const RUNS: &str = "-exec -ok";
/// Options that write something else than names.
const WRITES: &str = "-print -printf -ls";
/// What makes a test hold for other files than those for which the tests around it do.
const BRANCHES: &str = "( ) ! -not -o -or ,";

/// Whether an argument of `find` has it run what follows.
pub(super) fn runs_for_files(word: &LineWord) -> bool {
    runs_in_directory(word) || lists_word(RUNS, word)
}

fn runs_in_directory(word: &LineWord) -> bool {
    lists_word(RUNS_IN_DIRECTORY, word)
}

impl ShellLineReader {
    /// Reads the commands that are run for files which were found.
    pub(super) fn found_files(&mut self, arguments: &[LineWord]) {
        let mut rest = arguments;
        // A word that is not known may be one that runs something.
        if rest.iter().any(|it| !it.is_known() && it.may_be_flag()) {
            self.note(UnknownPart::Wrapper);
        }
        let found = found(arguments);
        while let Some(at) = rest.iter().position(runs_for_files)
            && self.found.calls.len() < CALLS_MAX
        {
            let unknown = || vec![ShapePiece::Words];
            let found = if runs_in_directory(&rest[at]) { unknown() } else { found.clone() };
            rest = &rest[at + 1..];
            let ends = |at: usize| match rest[at].text() {
                Some(";") => true,
                Some("+") => at > 0 && rest[at - 1].text() == Some("{}"),
                Some(_) | None => false,
            };
            let end = (0..rest.len()).find(|at| ends(*at)).unwrap_or(rest.len());
            let words = rest[..end].iter().map(|it| with_file(it, &found)).collect();
            self.inside("find", |reader| reader.call(words));
            rest = &rest[end..];
        }
    }

    /// The files whose names were written last, after so many `calls`, each ended by NUL.
    pub(super) fn listed_files(&self, calls: usize) -> Option<LineWord> {
        let [call] = self.found.calls.get(calls..)? else { return None };
        let arguments = &call.arguments;
        let is_listed = call.name.as_deref() == Some("find")
            && arguments.last().is_some_and(|it| it.text() == Some("-print0"))
            && !arguments.iter().any(|it| lists_word(WRITES, it));
        is_listed.then(|| LineWord::of_pieces(found(arguments)))
    }
}

/// A word with what is found instead of `{}`.
fn with_file(word: &LineWord, found: &[ShapePiece]) -> LineWord {
    let Some(text) = word.text() else { return word.clone() };
    let mut parts = text.split("{}").map(|it| vec![ShapePiece::Text(it.to_owned())]);
    let mut pieces = parts.next().unwrap_or_default();
    for part in parts {
        pieces.extend_from_slice(found);
        pieces.extend(part);
    }
    LineWord::of_pieces(pieces)
}

/// What the path of each file consists of that `find` finds: where it starts, what is below that, and how its name ends.
fn found(arguments: &[LineWord]) -> Vec<ShapePiece> {
    let begins = |it: &LineWord| !lists_word("-H -L -P", it);
    let rest = &arguments[arguments.iter().position(begins).unwrap_or(arguments.len())..];
    let is_test = |it: &LineWord| it.may_be_flag() || lists_word(BRANCHES, it);
    let (starts, tests) = rest.split_at(rest.iter().position(is_test).unwrap_or(rest.len()));
    let known: Option<Vec<&str>> = starts.iter().map(LineWord::text).collect();
    let own = &tests[..tests.iter().position(runs_for_files).unwrap_or(tests.len())];
    let mut pieces = match (starts, known.as_deref()) {
        _ if tests.iter().any(|it| lists_word("-files0-from", it)) => {
            return vec![ShapePiece::Words];
        }
        ([], _) => vec![ShapePiece::Text(".".to_owned())],
        ([start], _) => start.pieces(),
        (_, Some(starts)) => {
            vec![ShapePiece::OneOf(starts.iter().map(|it| (*it).to_owned()).collect())]
        }
        (_, None) => return vec![ShapePiece::Words],
    };
    pieces.push(ShapePiece::Path);
    // A file at which the search starts has its name before what is below it.
    let end = end_of_names(own).filter(|_| !tests.iter().any(|it| lists_word(BRANCHES, it)));
    let is_below = known.is_some_and(|it| it.iter().all(|start| !start.ends_with(['/', '*'])));
    if let Some(end) = end.filter(|_| is_below)
        && !starts.iter().any(|it| it.text().is_some_and(|it| ends_in(it, &end)))
    {
        pieces.push(ShapePiece::Text(end));
    }
    pieces
}

/// Whether the name of a file ends so, or is this behind a `/`.
fn ends_in(file: &str, end: &str) -> bool {
    file.ends_with(end) || end.strip_prefix('/') == Some(file)
}

/// How each name ends that passes these tests: with what follows the last sign of a pattern.
fn end_of_names(tests: &[LineWord]) -> Option<String> {
    let name = tests.windows(2).find(|it| it[0].text() == Some("-name"))?[1].text()?;
    let end = match name.rfind(['*', '?', ']', '\\']) {
        Some(at) => name[at + 1..].to_owned(),
        None => format!("/{name}"),
    };
    Some(end).filter(|it| !it.is_empty())
}
