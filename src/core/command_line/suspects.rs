//! Operands that would be a command if the program in front of them ran its operands.
//!
//! No table has all wrappers. What follows a program that is in none is taken for a command that may run; rules then ask
//! where they are about that command. A table has the programs that are known to run none of their operands.

use std::iter;

use crate::core::command_line::arguments::lists;
use crate::core::command_line::shells::is_builtin;
use crate::core::command_line::{LineWord, ProgramCall, ShellLineReader, UnknownPart};

/// Programs whose operands are text, files, hosts, packages or subcommands, and run nothing.
const RUN_NOTHING: &str = "grep egrep fgrep rg ag ack ls cat bat head tail less more wc sort uniq cut tr tee \
    nl od xxd hexdump strings file stat du df diff cmp comm patch jq yq sed awk gawk mawk cp mv ln rm rmdir mkdir touch \
    chmod chown chgrp install truncate shred dd tar zip unzip gzip gunzip zstd xz rsync scp sftp curl wget ping dig \
    host nslookup man whatis apropos info which whereis pgrep pkill killall ps top basename dirname \
    realpath readlink git gh glab hg svn expr apt apt-get apt-cache dpkg dpkg-query \
    rpm dnf yum pacman apk brew pip pip3 id groups getent useradd usermod userdel visudo \
    vi vim nvim nano emacs view code ed tree column fold paste rev seq date logger notify-send say systemctl service \
    journalctl";

/// Programs that run their operands or not by their subcommand, and those with which they take names of packages.
const MANAGERS: &str = "npm pnpm yarn bun";
const NAMES_PACKAGES: &str =
    "install i add remove rm uninstall un update up upgrade view info ls list why";

/// Programs that run a package, of which a version may be named behind `@`.
const RUN_PACKAGES: &str = "npx bunx pnpx npm pnpm yarn bun deno uvx";

/// How many arguments may be the beginning of a command, and how many of a command are read.
const BEGINNINGS_MAX: usize = 256;
const WORDS_MAX: usize = 64;

/// What stands before a command line in the languages of databases and debuggers.
const BEFORE_LINES: [&str; 5] = [".shell ", ".system ", "\\!", "shell ", "!"];

impl ShellLineReader {
    /// Takes the operands of a program that is not known to run none.
    pub(super) fn suspect(&mut self, call: &ProgramCall) {
        let Some(name) = call.name.as_deref() else { return };
        let arguments = &call.arguments;
        let names_packages = lists(MANAGERS, name)
            && arguments
                .first()
                .and_then(LineWord::text)
                .is_some_and(|it| lists(NAMES_PACKAGES, it));
        if self.is_suspecting || is_builtin(name) || lists(RUN_NOTHING, name) || names_packages {
            return;
        }
        if arguments.len() > BEGINNINGS_MAX {
            self.note(UnknownPart::Length);
        }
        for (at, word) in arguments.iter().enumerate().take(BEGINNINGS_MAX) {
            let Some(word) = word.text() else { continue };
            let package = word.split_once('@').map(|(package, _)| package);
            let word = package.filter(|_| lists(RUN_PACKAGES, name)).unwrap_or(word);
            // A command line in one word, or behind `=` in it.
            let line = match word.strip_prefix('-').and_then(|option| option.split_once('=')) {
                Some((_, value)) => value,
                None => word,
            };
            let line = line.trim_start();
            let behind = BEFORE_LINES.iter().find_map(|before| line.strip_prefix(before));
            let line = behind.unwrap_or(line);
            let is_program = !word.is_empty()
                && !word.starts_with('-')
                && word.chars().all(|it| it.is_alphanumeric() || "/._+-".contains(it));
            // A single word at the end is a command only where it is all that is given.
            let is_command = is_program && (at == 0 || at + 1 < arguments.len());
            let mut reader =
                Self { is_suspecting: true, through: vec![name.to_owned()], ..Self::default() };
            match (is_command, line.contains(char::is_whitespace)) {
                (true, _) => {
                    let rest = arguments[at + 1..].iter().take(WORDS_MAX).cloned();
                    reader.call(iter::once(LineWord::from(word)).chain(rest).collect());
                }
                (false, true) => reader.script(line),
                (false, false) => continue,
            }
            self.found.suspects.extend(reader.found.calls);
            let files = reader.found.writes.iter().chain(&reader.found.targets);
            self.found.suspect_files.extend(files.filter_map(LineWord::text).map(str::to_owned));
        }
    }
}
