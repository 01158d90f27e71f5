//! Files that programs are told to write, change or remove.

use crate::core::command_line::redirections::is_shown_or_lost;
use crate::core::command_line::{KnownWord, ProgramCall, ShellLineReader, wrappers::lists};

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
const PROGRAMS: [(&str, &str, ChangedOperands); 9] = [
    (
        "tee rm unlink rmdir shred truncate touch vi vim nvim view nano emacs emacsclient ed ex micro helix hx code patch",
        "",
        ChangedOperands::All,
    ),
    ("chmod chown chgrp", "", ChangedOperands::Rest),
    ("cp ln install rsync scp", "t target-directory", ChangedOperands::Last),
    ("mv", "t target-directory", ChangedOperands::All),
    ("sort shuf", "o output", ChangedOperands::None),
    ("curl", "o output D dump-header c cookie-jar output-dir", ChangedOperands::None),
    ("wget", "O output-document P directory-prefix", ChangedOperands::None),
    ("find", "fprint fprint0 fprintf fls", ChangedOperands::None),
    ("gcc cc g++ clang ld rustc go", "o", ChangedOperands::None),
];

impl ShellLineReader {
    /// Takes the files that a call changes.
    pub(super) fn changed_files(&mut self, call: &ProgramCall) {
        self.take_changed_files(call);
        let is_file = |it: &KnownWord| !it.as_deref().is_some_and(is_shown_or_lost);
        self.found.targets.retain(is_file);
    }

    fn take_changed_files(&mut self, call: &ProgramCall) {
        let name = call.name.as_deref().unwrap_or_default();
        let operands = &call.operands;
        match name {
            "dd" => {
                let file = |it: &KnownWord| match it {
                    Some(it) => it.strip_prefix("of=").map(|file| Some(file.to_owned())),
                    None => Some(None),
                };
                self.found.targets.extend(operands.iter().filter_map(file));
            }
            // With a script as an operand, that is no file which rules are about.
            "sed" | "perl" if call.flags.contains("i") => {
                self.found.targets.extend(operands.iter().cloned());
            }
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
        for (at, word) in call.arguments.iter().enumerate() {
            let Some(option) = word.as_deref().and_then(|it| it.strip_prefix('-')) else {
                continue;
            };
            let long = option.trim_start_matches('-');
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let attached = match lists(options, name) {
                true => value,
                false => {
                    match long.char_indices().find(|(_, it)| lists(options, &it.to_string())) {
                        Some((at, letter)) if !option.starts_with('-') => {
                            &long[at + letter.len_utf8()..]
                        }
                        Some(_) | None => continue,
                    }
                }
            };
            let next = || call.arguments.get(at + 1).cloned();
            let file = Some(attached).filter(|it| !it.is_empty()).map(|it| Some(it.to_owned()));
            self.found.targets.extend(file.or_else(next));
        }
    }
}
