//! Operands that would be a command if the program in front of them ran its operands.
//!
//! No table has all wrappers. What follows a program that is in none is taken for a command that may run; rules then ask
//! where they are about that command. A table has the programs that are known to run none of their operands.

use crate::core::command_line::shells::is_builtin;
use crate::core::command_line::wrappers::lists;
use crate::core::command_line::{ProgramCall, ShellLineReader};

/// Programs whose operands are text, files, hosts, packages or subcommands, and run nothing.
const RUN_NOTHING: &str = "grep egrep fgrep rg ag ack ls cat bat head tail less more wc sort uniq cut tr tee \
    nl od xxd hexdump strings file stat du df diff cmp comm patch jq yq sed awk gawk mawk cp mv ln rm rmdir mkdir touch \
    chmod chown chgrp install truncate shred dd tar zip unzip gzip gunzip zstd xz rsync scp sftp curl wget ping dig \
    host nslookup man whatis apropos info which whereis pgrep pkill killall ps top basename dirname \
    realpath readlink git gh glab hg svn expr apt apt-get apt-cache dpkg dpkg-query \
    rpm dnf yum pacman apk brew snap flatpak pip pip3 pipx gem conda id groups getent useradd usermod userdel visudo \
    vi vim nvim nano emacs view code ed tree column fold paste rev seq date logger notify-send say systemctl service \
    journalctl";

/// How many operands are looked at.
const OPERANDS_MAX: usize = 12;

/// Options whose value other programs take for a command line.
const LINE_OPTIONS: &str = "-c -e -x --command --run --exec --cmd";

impl ShellLineReader {
    /// Takes the operands of a program that is not known to run none.
    pub(super) fn suspect(&mut self, call: &ProgramCall) {
        let Some(name) = call.name.as_deref() else { return };
        if self.is_suspecting || is_builtin(name) || lists(RUN_NOTHING, name) {
            return;
        }
        let arguments = &call.arguments;
        for (at, word) in arguments.iter().enumerate().take(OPERANDS_MAX) {
            let Some(word) = word else { continue };
            let is_line = at > 0
                && arguments[at - 1].as_deref().is_some_and(|it| lists(LINE_OPTIONS, it))
                && word.contains(' ');
            let is_program = !word.is_empty()
                && !word.starts_with('-')
                && word.chars().all(|it| it.is_alphanumeric() || "/._+-".contains(it));
            // A single word at the end is a command only where it is all that is given.
            let is_command = is_program && (at == 0 || at + 1 < arguments.len());
            let mut reader =
                Self { is_suspecting: true, through: vec![name.to_owned()], ..Self::default() };
            match (is_line, is_command) {
                (true, _) => reader.script(word),
                (false, true) => reader.call(arguments[at..].to_vec()),
                (false, false) => continue,
            }
            self.found.suspects.extend(reader.found.calls);
        }
    }
}
