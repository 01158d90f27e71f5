//! Files that programs are told to write, change or remove.

use crate::core::command_line::arguments::{lists, values};
use crate::core::command_line::git::made_directory;
use crate::core::command_line::redirections::is_shown_or_lost;
use crate::core::command_line::{LineWord, ProgramCall, ShellLineReader};

/// Which of its operands a program changes.
#[derive(Clone, Copy)]
enum ChangedOperands {
    All,
    /// All but the first, which says how.
    Rest,
    /// The last one, of at least two.
    Last,
    None,
}

/// Programs, their options whose value is a file that they change, and their operands which are.
const PROGRAMS: [(&str, &str, ChangedOperands); 14] = [
    (
        "tee sponge rm unlink mkdir rmdir mkfifo shred truncate touch vi vim nvim view nano emacs emacsclient ed ex \
         micro helix hx kak joe mcedit code sudoedit dos2unix unix2dos gzip gunzip bzip2 bunzip2 xz unxz",
        "",
        ChangedOperands::All,
    ),
    ("patch", "o output d directory", ChangedOperands::All),
    ("chmod chown chgrp chattr chcon setfacl setfattr", "", ChangedOperands::Rest),
    ("cp ln install rsync scp", "t target-directory", ChangedOperands::Last),
    ("tar bsdtar gtar", "C directory one-top-level", ChangedOperands::None),
    ("unzip", "d", ChangedOperands::None),
    ("mv", "t target-directory", ChangedOperands::All),
    ("sort shuf", "o output", ChangedOperands::None),
    (
        "curl",
        "o output D dump-header c cookie-jar output-dir trace trace-ascii",
        ChangedOperands::None,
    ),
    (
        "wget",
        "O output-document P directory-prefix o output-file a append-output",
        ChangedOperands::None,
    ),
    ("aria2c", "d dir o out", ChangedOperands::None),
    ("find", "fprint fprint0 fprintf fls", ChangedOperands::None),
    (
        "hyperfine",
        "export-json export-markdown export-csv export-asciidoc export-orgmode",
        ChangedOperands::None,
    ),
    ("gcc cc g++ clang ld rustc go", "o", ChangedOperands::None),
];

impl ShellLineReader {
    /// Takes the files that a call changes.
    pub(super) fn changed_files(&mut self, call: &ProgramCall) {
        self.take_changed_files(call);
        let is_file = |it: &LineWord| !it.text().is_some_and(is_shown_or_lost);
        self.found.targets.retain(is_file);
    }

    fn take_changed_files(&mut self, call: &ProgramCall) {
        let name = call.name.as_deref().unwrap_or_default();
        let operands = &call.operands;
        match name {
            "dd" => {
                let file = |it: &LineWord| match it.text() {
                    Some(it) => it.strip_prefix("of=").map(LineWord::from),
                    None => Some(LineWord::unknown()),
                };
                self.found.targets.extend(operands.iter().filter_map(file));
            }
            "sed" | "gsed" | "perl" | "ruby" if call.flags.contains("i") => {
                // The first one is the script, if no option gives it. Else a script may be among them, which is no file that
                // rules are about.
                let has_script = ["e", "f", "E"].iter().any(|it| call.flags.contains(*it));
                let files = operands.iter().skip(usize::from(!has_script));
                self.found.targets.extend(files.cloned());
            }
            "awk" | "gawk"
                if values(&call.arguments, "i include").contains(&LineWord::from("inplace")) =>
            {
                self.found.targets.extend(operands.iter().cloned());
            }
            "install" if call.flags.contains("d") || call.flags.contains("directory") => {
                self.found.targets.extend(operands.iter().cloned());
            }
            "git" => self.found.targets.extend(made_directory(call)),
            "tar" | "bsdtar" | "gtar" => self.found.targets.extend(archive(&call.arguments)),
            _ => {}
        }
        let Some((_, options, changed)) = PROGRAMS.iter().find(|(names, ..)| lists(names, name))
        else {
            return;
        };
        let changed = match changed {
            ChangedOperands::All => operands.as_slice(),
            ChangedOperands::Rest => operands.get(1..).unwrap_or_default(),
            ChangedOperands::Last if operands.len() > 1 => &operands[operands.len() - 1..],
            ChangedOperands::Last | ChangedOperands::None => &[],
        };
        self.found.targets.extend(changed.iter().cloned());
        let files = values(&call.arguments, options);
        self.found.targets.extend(files);
    }
}

/// The archive that `tar` writes, if it does: its options may begin without a dash.
fn archive(arguments: &[LineWord]) -> Option<LineWord> {
    let mut arguments = arguments.to_vec();
    if let Some(LineWord::Known(first)) = arguments.first_mut()
        && !first.starts_with('-')
    {
        first.insert(0, '-');
    }
    let writes = |word: &str| {
        let is_short = word.starts_with('-') && !word.starts_with("--");
        let is_long = ["--create", "--append", "--update", "--concatenate"].contains(&word);
        is_long || is_short && word.contains(['c', 'r', 'u', 'A'])
    };
    let files = values(&arguments, "f file");
    let writes = arguments.iter().filter_map(LineWord::text).any(writes);
    files.into_iter().next().filter(|_| writes)
}
