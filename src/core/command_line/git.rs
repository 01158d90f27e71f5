//! What `git` runs in turn: commands in its configuration, and those that some of its subcommands are given.
//!
//! A name of the configuration that is not known to be harmless may have git run anything.

use crate::core::command_line::arguments::{after_options, between_options, lists, values};
use crate::core::command_line::{LineWord, ProgramCall, ShellLineReader, UnknownPart};

/// Options before the subcommand, without a value and with one.
const GLOBAL: [&str; 2] = [
    "v h p P version help html-path man-path info-path paginate no-pager bare no-replace-objects \
     no-lazy-fetch no-optional-locks no-advice literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs",
    "C c git-dir work-tree namespace attr-source",
];

/// Options of subcommands whose value is a command or says where one is. They may be cut.
const RUN_BY_OPTION: &str =
    "exec extcmd upload-pack receive-pack open-files-in-pager template config";

/// Subcommands that run others in ways that are not followed.
const NOT_FOLLOWED: &str = "hook for-each-repo shell daemon instaweb filter-branch send-email";

/// Options of `git clone`, `git init` and `git worktree add` without a value, and with one.
const CLONE: [&str; 2] = [
    "f force d detach checkout no-checkout lock orphan bare mirror n q quiet v verbose progress l local no-local s shared \
     recursive recurse-submodules shallow-submodules single-branch no-single-branch no-tags sparse dissociate no-hardlinks",
    "b B branch o origin c config j jobs depth filter reference initial-branch separate-git-dir shallow-since reason u \
     upload-pack template",
];

/// Options of `git config` without a value, and with one.
const CONFIG: [&str; 2] = [
    "z all append add replace-all global system local worktree show-origin show-scope show-names name-only null \
     includes no-includes fixed-value bool int bool-or-int bool-or-str path expiry-date no-type",
    "f t file type comment value",
];
/// Options and subcommands of `git config` that set nothing. An editor is a program of its own.
const CONFIG_READS: &str = "-l -e --list --edit --get --get-all --get-regexp --get-urlmatch --get-color \
    --get-colorbool --unset --unset-all --remove-section list get unset edit remove-section";

/// Names whose value is a command line, without the part in the middle.
const LINES: &str = "core.pager core.editor core.sshcommand core.askpass core.gitproxy core.alternaterefscommand \
    sequence.editor diff.external diff.command diff.textconv difftool.cmd difftool.path mergetool.cmd mergetool.path \
    merge.driver filter.clean filter.smudge filter.process gpg.program gpg.defaultkeycommand interactive.difffilter \
    trailer.command trailer.cmd browser.cmd browser.path man.cmd man.path guitool.cmd tar.command \
    uploadpack.packobjectshook remote.uploadpack remote.receivepack sendemail.tocmd sendemail.cccmd \
    sendemail.headercmd";
/// Sections all of whose names are harmless.
const HARMLESS_SECTIONS: &str = "user author committer color column advice branch commit tag log pull push fetch status \
    stash rerere blame gc pack index feature grep rebase transfer versionsort apply am";
/// Other names that are.
const HARMLESS: &str = "core.quotepath core.autocrlf core.eol core.safecrlf core.ignorecase core.filemode \
    core.symlinks core.abbrev core.compression core.whitespace core.longpaths core.precomposeunicode \
    core.untrackedcache core.preloadindex core.logallrefupdates core.commentchar init.defaultbranch diff.algorithm \
    diff.renames diff.renamelimit diff.context diff.mnemonicprefix diff.noprefix diff.colormoved diff.wserrorhighlight \
    merge.conflictstyle merge.ff merge.renames merge.renamelimit merge.stat merge.log http.version \
    http.postbuffer http.lowspeedlimit http.lowspeedtime protocol.version submodule.recurse submodule.fetchjobs";

/// The name of a program, `git` for one of git's own such as `git-reset`, whose subcommand comes before its arguments.
pub(super) fn whole_name(name: Option<String>, arguments: &mut Vec<LineWord>) -> Option<String> {
    let subcommand = name.as_deref().and_then(|it| it.strip_prefix("git-"));
    let Some(subcommand) = subcommand.filter(|it| !it.is_empty()) else { return name };
    arguments.insert(0, LineWord::from(subcommand));
    Some("git".to_owned())
}

/// The options before a subcommand with their values, and what follows them, for a program whose options are known.
pub(super) fn behind_options<'a>(
    name: &str,
    arguments: &'a [LineWord],
) -> (&'a [LineWord], &'a [LineWord]) {
    if name != "git" {
        return arguments.split_at(0);
    }
    let (rest, is_known) = after_options(arguments, GLOBAL);
    let own = if is_known { rest.len() } else { arguments.len() };
    arguments.split_at(arguments.len() - own)
}

/// The directory that a call of `git` makes and fills, if it does.
pub(super) fn made_directory(call: &ProgramCall) -> Option<LineWord> {
    let (rest, _) = after_options(&call.arguments, GLOBAL);
    let before = match (rest.first()?.text()?, rest.get(1).and_then(LineWord::text)) {
        ("init", _) => 1,
        ("clone", _) | ("worktree", Some("add")) => 2,
        _ => return None,
    };
    let global = &call.arguments[..call.arguments.len() - rest.len()];
    let elsewhere = values(global, "C").pop();
    let own = between_options(rest, CLONE).map(|words| words.get(before).map(|it| (*it).clone()));
    // What follows an option that is not known may be its value.
    let own = own.unwrap_or_else(|| Some(LineWord::unknown()));
    elsewhere.or(own).or_else(|| Some(LineWord::from(".")))
}

impl ShellLineReader {
    /// Reads what a call of `git` runs.
    pub(super) fn git(&mut self, arguments: &[LineWord]) {
        let (rest, is_known) = after_options(arguments, GLOBAL);
        if !is_known {
            self.note(UnknownPart::Configuration);
        }
        let global = &arguments[..arguments.len() - rest.len()];
        for pair in global.windows(2).filter(|pair| pair[0].text() == Some("-c")) {
            self.assigned(&pair[1]);
        }
        // A repository at such an address is a command.
        let is_command = |it: &LineWord| it.text().is_some_and(|it| it.starts_with("ext::"));
        let names_command = |it: &LineWord| it.text().is_some_and(names_command);
        if rest.iter().any(|it| is_command(it) || names_command(it)) {
            self.note(UnknownPart::Wrapper);
        }
        let words = rest.get(1..).unwrap_or_default();
        match rest.first().map(LineWord::text) {
            Some(Some("config")) => self.configured(words),
            Some(Some("clone")) => {
                for pair in words.windows(2).filter(|pair| pair[0].text() == Some("-c")) {
                    self.assigned(&pair[1]);
                }
                self.short_option_runs(words, 'u');
            }
            Some(Some("rebase" | "difftool")) => self.short_option_runs(words, 'x'),
            Some(Some("grep")) => self.short_option_runs(words, 'O'),
            Some(Some("bisect")) if words.first().is_some_and(|it| it.text() == Some("run")) => {
                self.inside("git", |reader| reader.call(words[1..].to_vec()));
            }
            Some(Some("submodule")) => {
                let runs = |it: &LineWord| it.text() == Some("foreach");
                if let Some(at) = words.iter().position(runs) {
                    let (line, is_known) =
                        after_options(&words[at + 1..], ["q quiet recursive", ""]);
                    match is_known {
                        true => self.joined("git", line),
                        false => self.note(UnknownPart::Wrapper),
                    }
                }
            }
            Some(Some(name)) if lists(NOT_FOLLOWED, name) => self.note(UnknownPart::Wrapper),
            Some(Some(_)) | None => {}
            Some(None) => self.note(UnknownPart::Evaluation),
        }
    }

    /// Notes an option of one letter with which a subcommand runs what it is given.
    fn short_option_runs(&mut self, words: &[LineWord], letter: char) {
        let runs = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains(letter);
        if words.iter().filter_map(LineWord::text).any(runs) {
            self.note(UnknownPart::Wrapper);
        }
    }

    /// Reads `git config`.
    fn configured(&mut self, words: &[LineWord]) {
        let is_set = |it: &&LineWord| it.text() == Some("set");
        let reads = |it: &str| lists(CONFIG_READS, it);
        let first = words.iter().find(|it| it.text().is_none_or(|it| !it.starts_with('-')));
        let is_option = |it: &&str| it.starts_with('-');
        if words.iter().filter_map(LineWord::text).filter(is_option).any(reads)
            || first.and_then(LineWord::text).is_some_and(reads)
        {
            return;
        }
        let Some(mut operands) = between_options(words, CONFIG) else {
            return self.note(UnknownPart::Configuration);
        };
        operands.drain(..usize::from(operands.first().is_some_and(is_set)));
        match operands.as_slice() {
            // Without a value, it is read.
            [] | [LineWord::Known(_)] => {}
            [LineWord::Known(name), value, ..] => self.setting(name, value.text()),
            [LineWord::Computed(_), ..] => self.note(UnknownPart::Configuration),
        }
    }

    /// Reads `NAME=VALUE`.
    fn assigned(&mut self, word: &LineWord) {
        match word.text().map(|word| word.split_once('=').unwrap_or((word, "true"))) {
            Some((name, value)) => self.setting(name, Some(value)),
            None => self.note(UnknownPart::Configuration),
        }
    }

    /// Takes a name of the configuration that is set, and its value if that is known.
    fn setting(&mut self, name: &str, value: Option<&str>) {
        let (section, rest) = name.split_once('.').unwrap_or((name, ""));
        let section = section.to_lowercase();
        let variable = rest.rsplit('.').next().unwrap_or_default().to_lowercase();
        let name = format!("{section}.{variable}");
        let is_switch = value.is_some_and(|it| lists("true false on off yes no 0 1", it));
        let line = match (section.as_str(), value) {
            _ if lists(HARMLESS_SECTIONS, &section) || lists(HARMLESS, &name) => return,
            ("pager", Some(_)) if is_switch => return,
            ("core", Some(_)) if variable == "fsmonitor" && is_switch => return,
            ("pager", Some(line)) => line.to_owned(),
            ("core", Some(line)) if variable == "fsmonitor" => line.to_owned(),
            ("alias", Some(line)) => match line.strip_prefix('!') {
                Some(line) => line.to_owned(),
                None => format!("git {line}"),
            },
            ("credential", Some(line)) if variable == "helper" => match line.strip_prefix('!') {
                Some(line) => line.to_owned(),
                None if line.contains('/') => line.to_owned(),
                None => format!("git credential-{line}"),
            },
            (_, Some(line)) if lists(LINES, &name) => line.to_owned(),
            (_, _) => return self.note(UnknownPart::Configuration),
        };
        self.shown_to(&name, &line);
    }
}

/// Whether a word is an option that names a command, be it cut.
fn names_command(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--").and_then(|it| it.split('=').next()) else {
        return false;
    };
    name.len() > 1 && RUN_BY_OPTION.split(' ').any(|it| it.starts_with(name))
}
