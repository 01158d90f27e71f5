//! What the commands write whose output stands in a word.

use crate::core::command_line::arguments::lists;
use crate::core::command_line::{LineWord, ProgramCall, ShapePiece, ShellLineReader};

/// Commands that write one word without `/`.
const NAMES: [&str; 3] = ["whoami", "hostname", "uname -m"];
/// Commands that write one number.
const NUMBERS: [&str; 4] = ["nproc", "id -u", "id -g", "date +%s"];
/// Commands that write the id of a commit.
const COMMITS: [&str; 2] = ["git rev-parse HEAD", "git rev-parse --short HEAD"];
/// Commands that write the name of a branch.
const BRANCHES: [&str; 2] = ["git branch --show-current", "git rev-parse --abbrev-ref HEAD"];

/// Programs that write numbers, or one file that they make, and the options with which they write nothing else.
const OF_PGREP: &str = "f n o x i v u U P t g full newest oldest exact";
const OF_PIDOF: &str = "s x c q";
const OF_MKTEMP: &str = "d q u t directory quiet";

/// All of these.
const PROGRAMS: &str =
    "whoami hostname uname nproc id date git seq pgrep pidof lsof mktemp dirname find";

/// Whether something is known by the output of this program.
pub(super) fn is_known_by_output(program: &str) -> bool {
    lists(PROGRAMS, program)
}

impl ShellLineReader {
    /// What a command writes that was read last, after so many `calls`.
    pub(super) fn output(&mut self, line: &str, calls: usize, is_quoted: bool) -> Vec<ShapePiece> {
        let any = if is_quoted { ShapePiece::Any } else { ShapePiece::Words };
        let line = line.trim();
        let line = line.strip_suffix("2>/dev/null").unwrap_or(line).trim_end();
        // Not what several commands write, or one that writes elsewhere.
        let is_simple = !line.contains(['\n', ';', '|', '&', '<', '>', '(', ')', '{', '}', '`']);
        match &self.found.calls[calls.min(self.found.calls.len())..] {
            [call] if is_simple && call.path.is_none() => {
                let call = call.clone();
                self.written_by(line, &call, is_quoted).unwrap_or_else(|| vec![any])
            }
            _ => vec![any],
        }
    }

    fn written_by(
        &mut self,
        line: &str,
        call: &ProgramCall,
        is_quoted: bool,
    ) -> Option<Vec<ShapePiece>> {
        let piece = match line {
            _ if NUMBERS.contains(&line) => ShapePiece::Digits,
            _ if COMMITS.contains(&line) => ShapePiece::Letters,
            _ if NAMES.contains(&line) || is_short_date(line) => ShapePiece::Name,
            _ if BRANCHES.contains(&line) => ShapePiece::Branch,
            // Where a shell takes it apart, it may be several words.
            "pwd" => return Some(vec![self.directory().filter(|_| is_quoted)?]),
            _ => match call.name.as_deref()? {
                "mktemp" if has_only(call, OF_MKTEMP) => return self.temporary(call),
                "dirname" => parent(call)?,
                _ => numbers(call)?,
            },
        };
        Some(vec![piece])
    }

    /// The numbers that were written last, after so many `calls`.
    pub(super) fn listed_numbers(&self, calls: usize) -> Option<LineWord> {
        let [call] = self.found.calls.get(calls..)? else { return None };
        let piece = numbers(call).filter(|_| call.path.is_none())?;
        Some(LineWord::of_pieces(vec![piece]))
    }

    /// The directory in which a line begins, unless it sets the variable for it.
    pub(super) fn directory(&mut self) -> Option<ShapePiece> {
        self.is_outer("PWD").then(|| ShapePiece::Text(".".to_owned()))
    }

    fn is_outer(&mut self, name: &str) -> bool {
        !self.found.sets.contains(name) && self.variables.is_outer(name)
    }

    /// The file or directory that `mktemp` makes. It writes nothing if it makes none.
    fn temporary(&mut self, call: &ProgramCall) -> Option<Vec<ShapePiece>> {
        let template = match call.operands.as_slice() {
            [] => "tmp.XXXXXXXXXX",
            [LineWord::Known(template)] => template,
            _ => return None,
        };
        let (begin, rest) = template.split_once("XXX")?;
        let behind = rest.trim_start_matches('X');
        let is_below = call.operands.is_empty() || call.flags.contains("t");
        let has_directory = begin.contains('/') || !self.is_outer("TMPDIR");
        if !is_plain(template) || behind.contains('/') || is_below && has_directory {
            return None;
        }
        let begin = if is_below { format!("/tmp/{begin}") } else { begin.to_owned() };
        let begin = ShapePiece::OneOf(vec![begin, String::new()]);
        let mut pieces = vec![begin, ShapePiece::Letters];
        if !behind.is_empty() {
            pieces.push(ShapePiece::OneOf(vec![behind.to_owned(), String::new()]));
        }
        Some(pieces)
    }
}

/// What a program writes that writes numbers only.
fn numbers(call: &ProgramCall) -> Option<ShapePiece> {
    let is_numbers = match call.name.as_deref()? {
        "seq" => call.arguments.iter().all(LineWord::is_number),
        "pgrep" => has_only(call, OF_PGREP),
        "pidof" => has_only(call, OF_PIDOF),
        "lsof" => is_terse(call),
        _ => false,
    };
    is_numbers.then_some(ShapePiece::Numbers)
}

/// Whether a call surely has no other flags.
fn has_only(call: &ProgramCall, flags: &str) -> bool {
    let may_be_other = |it: &LineWord| !it.is_known() && it.may_be_flag();
    call.flags.iter().all(|flag| lists(flags, flag)) && !call.arguments.iter().any(may_be_other)
}

/// Whether a text is one word, and no pattern, where a shell takes it apart.
fn is_plain(text: &str) -> bool {
    text.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it))
}

/// Whether `lsof` writes the ids of processes and nothing else.
fn is_terse(call: &ProgramCall) -> bool {
    let is_told = |it: &LineWord| it.beginning().starts_with("-t");
    let may_say_more =
        |it: &LineWord| it.may_be_flag() && (!it.is_known() || it.beginning().contains('F'));
    call.arguments.iter().any(is_told) && !call.arguments.iter().any(may_say_more)
}

/// What `dirname` writes for a file that is known.
fn parent(call: &ProgramCall) -> Option<ShapePiece> {
    let [LineWord::Known(file)] = call.arguments.as_slice() else { return None };
    let (parent, name) = file.rsplit_once('/').unwrap_or((".", file));
    let is_whole = !parent.is_empty() && !parent.ends_with('/') && !name.is_empty();
    let is_fine = is_whole && is_plain(file) && !file.starts_with('-');
    is_fine.then(|| ShapePiece::Text(parent.to_owned()))
}

/// Whether a command writes the time in a format of such words.
fn is_short_date(command: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "%_.-".contains(it);
    // These write `/`, blanks and line ends.
    let is_plain = |format: &str| {
        !["%D", "%x", "%c", "%n", "%t", "%+"].iter().any(|it| format.contains(it))
            && format.starts_with('%')
            && format.chars().all(is_part)
    };
    command.strip_prefix("date +").is_some_and(is_plain)
}
