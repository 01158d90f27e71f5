//! Redirections: the files that a line writes.

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Word,
};

use crate::core::command_line::{ShellLineReader, UnknownPart};

/// Whether what is written to a file is shown, or lost.
pub(super) fn is_shown_or_lost(file: &str) -> bool {
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&file)
}

/// A redirection that may be the standard input of a program.
pub(super) fn input_of(item: &CommandPrefixOrSuffixItem) -> Option<&IoRedirect> {
    let CommandPrefixOrSuffixItem::IoRedirect(redirect) = item else { return None };
    let writes = matches!(
        redirect,
        IoRedirect::File(
            None | Some(1 | 2),
            IoFileRedirectKind::Write | IoFileRedirectKind::Append | IoFileRedirectKind::Clobber,
            _
        ) | IoRedirect::File(Some(1 | 2), IoFileRedirectKind::DuplicateOutput, _)
            | IoRedirect::OutputAndError(..)
    );
    (!writes).then_some(redirect)
}

/// Whether a command has no redirections, or to `/dev/null` only. So its errors are not among what it writes.
pub(super) fn writes_plainly(command: &Command) -> bool {
    let Command::Simple(simple) = command else { return false };
    let prefix = simple.prefix.iter().flat_map(|it| &it.0);
    let mut items = prefix.chain(simple.suffix.iter().flat_map(|it| &it.0));
    items.all(|item| match item {
        CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::File(
            _,
            _,
            IoFileRedirectTarget::Filename(file),
        )) => file.value == "/dev/null",
        CommandPrefixOrSuffixItem::IoRedirect(_) => false,
        CommandPrefixOrSuffixItem::Word(_)
        | CommandPrefixOrSuffixItem::AssignmentWord(..)
        | CommandPrefixOrSuffixItem::ProcessSubstitution(..) => true,
    })
}

impl ShellLineReader {
    pub(super) fn redirect(&mut self, redirect: &IoRedirect) {
        // Which descriptor it is for does not matter: another one may become standard input later.
        self.has_other_input |= !matches!(
            redirect,
            IoRedirect::File(
                _,
                IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::Clobber
                    | IoFileRedirectKind::DuplicateOutput,
                _
            ) | IoRedirect::OutputAndError(..)
        );
        match redirect {
            IoRedirect::File(_, kind, target) => {
                let writes = match kind {
                    IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => false,
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber
                    | IoFileRedirectKind::DuplicateOutput => true,
                };
                match target {
                    IoFileRedirectTarget::Fd(_) => {}
                    IoFileRedirectTarget::Filename(word) => self.target(word, writes, false),
                    IoFileRedirectTarget::Duplicate(word) => self.target(word, writes, true),
                    IoFileRedirectTarget::ProcessSubstitution(_, inner) => {
                        self.has_other_input = true;
                        self.list(&inner.list);
                    }
                }
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.here_document(&document.doc.value);
                }
            }
            IoRedirect::HereString(_, word) => _ = self.word(word),
            IoRedirect::OutputAndError(word, _) => self.target(word, true, false),
        }
    }

    /// Reads the target of a redirection. One that duplicates, as `>&2`, may be a descriptor.
    fn target(&mut self, word: &Word, writes: bool, duplicates: bool) {
        let target = self.word(word);
        let name = target.text().unwrap_or_default();
        // bash connects to the network, and zsh takes `>!` for `>|`.
        if name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/") || name.starts_with('!') {
            self.note(UnknownPart::Syntax);
        }
        let is_number =
            |name: &str| name.trim_end_matches('-').bytes().all(|it| it.is_ascii_digit());
        let is_descriptor = duplicates && target.is_known() && is_number(name);
        if writes && !is_shown_or_lost(name) && !is_descriptor {
            self.found.writes.push(target);
        }
    }
}
