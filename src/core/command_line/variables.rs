//! Variables that a line sets. Some have a shell or a program run something else, now or later.

use std::mem;

use brush_parser::ast::{Assignment, AssignmentValue, CommandPrefixOrSuffixItem};

use crate::core::command_line::arguments::lists;
use crate::core::command_line::expressions::is_computed_number;
use crate::core::command_line::{ShellLineReader, UnknownPart};

/// Variables whose value is a command line.
const LINES: &str = "PROMPT_COMMAND EDITOR VISUAL FCEDIT PAGER MANPAGER SYSTEMD_PAGER SUDO_EDITOR SUDO_ASKPASS \
    SSH_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EXTERNAL_DIFF \
    GIT_PROXY_COMMAND LESSOPEN LESSCLOSE RSYNC_RSH SVN_SSH CVS_RSH HGEDITOR KUBE_EDITOR BROWSER CC CXX RUSTC \
    RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER FZF_DEFAULT_COMMAND FZF_CTRL_T_COMMAND FZF_ALT_C_COMMAND";

/// Variables in whose value a shell expands commands when it shows them.
const PROMPTS: &str =
    "PS0 PS1 PS2 PS3 PS4 PROMPT PROMPT2 PROMPT3 PROMPT4 RPROMPT RPROMPT2 RPS1 RPS2 SPROMPT prompt";

/// Variables that say where programs, libraries and scripts of a shell are, which functions it calls, or how it reads a
/// line.
const CHANGING: &str = "PATH path BASH_ENV ENV ZDOTDIR IFS SHELLOPTS BASHOPTS FPATH fpath CDPATH HOME \
    XDG_CONFIG_HOME PYTHONSTARTUP PYTHONHOME PERL5OPT PERL5DB RUBYOPT JAVA_TOOL_OPTIONS MAKEFILES TAR_OPTIONS \
    precmd_functions preexec_functions chpwd_functions periodic_functions zshexit_functions \
    zshaddhistory_functions GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM \
    GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS VIMINIT GVIMINIT EXINIT FZF_DEFAULT_OPTS FZF_CTRL_T_OPTS FZF_ALT_C_OPTS \
    RIPGREP_CONFIG_PATH BAT_CONFIG_PATH LESSKEY LESSKEYIN LESSKEY_CONTENT";

/// How the names of variables begin that say what the loader of programs loads.
const OF_LOADER: [&str; 2] = ["LD_", "DYLD_"];

/// Variables with options for a program, and how those begin that run nothing.
const OPTIONS: [(&str, &str); 2] = [
    (
        "NODE_OPTIONS",
        "--max-old-space-size= --no-warnings --trace-warnings --experimental-vm-modules --enable-source-maps \
         --openssl-legacy-provider",
    ),
    ("MAKEFLAGS", "-j -s -k --silent --no-print-directory"),
];

/// Signs that bash reads as `$` or a backquote in a prompt.
const WRITTEN_BY_NUMBER: [&str; 3] = ["\\44", "\\044", "\\140"];

impl ShellLineReader {
    /// Takes a variable that is set, and its value if that is known.
    pub(super) fn variable(&mut self, name: &str, value: Option<&str>) {
        self.found.sets.insert(name.to_owned());
        let is_function = name.starts_with("BASH_FUNC_");
        match (lists(LINES, name), lists(PROMPTS, name), value) {
            (true, _, Some(line)) => self.shown_to(name, line),
            (_, true, Some(text)) if !WRITTEN_BY_NUMBER.iter().any(|it| text.contains(it)) => {
                self.here_document(text);
            }
            (false, false, _) if !is_function && !may_change(name, value) => {}
            (..) => self.note(UnknownPart::Variable),
        }
    }

    /// Takes a command line that a program runs for itself, by the name of the setting.
    pub(super) fn shown_to(&mut self, name: &str, line: &str) {
        // A pager reads what is shown.
        let reads = (mem::take(&mut self.shell_reads), mem::take(&mut self.interpreter_reads));
        self.inside(name, |reader| reader.script(line));
        if self.shell_reads || self.interpreter_reads {
            self.note(UnknownPart::ShellInput);
        }
        (self.shell_reads, self.interpreter_reads) = reads;
    }

    /// Whether this only has more directories be searched for programs, behind those that are searched already. Takes the
    /// variable if so.
    pub(super) fn appends_to_path(&mut self, assignment: &Assignment) -> bool {
        let AssignmentValue::Scalar(value) = &assignment.value else { return false };
        let raw = value.value.trim_start_matches('"');
        let behind = match assignment.append {
            true => Some(raw),
            false => ["$PATH", "${PATH}"].iter().find_map(|it| raw.strip_prefix(it)),
        };
        // zsh takes a letter for a modifier.
        let is_more =
            |it: &str| it.strip_prefix(':').is_some_and(|it| it.starts_with(['/', '.', '~', '$']));
        let appends = assignment.name.to_string() == "PATH" && behind.is_some_and(is_more);
        if appends {
            self.word(value);
            self.found.sets.insert("PATH".to_owned());
        }
        appends
    }

    /// Reads what comes before the name of a program: it sets variables and redirects.
    /// `IFS` of `read` is for its input alone.
    pub(super) fn prefix(&mut self, item: &CommandPrefixOrSuffixItem, reads: bool) {
        let CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) = item else {
            self.argument(item);
            return;
        };
        if self.appends_to_path(assignment) {
            return;
        }
        let whole = assignment.name.to_string();
        let name = whole.split('[').next().unwrap_or_default();
        // An index is computed, and so is the value of some variables.
        let mut is_computed = whole.contains('[');
        match &assignment.value {
            AssignmentValue::Scalar(value) if reads && name == "IFS" => {
                self.word(value);
                self.found.sets.insert(name.to_owned());
            }
            AssignmentValue::Scalar(value) => {
                let raw = &value.value;
                let value = self.word(value);
                let number = is_computed_number(raw) || value.is_number();
                let sure = Some(&value)
                    .filter(|_| self.is_sure && !whole.contains('[') && !assignment.append);
                self.variables.set_to(name, number, sure.cloned());
                is_computed |= value.text().is_some_and(|it| it.contains('['));
                self.variable(name, value.text());
            }
            AssignmentValue::Array(values) => {
                self.variables.set(name, false);
                self.found.sets.insert(name.to_owned());
                for (key, value) in values {
                    key.iter().for_each(|key| self.arithmetic(&key.value));
                    // A key in quotes comes as a part of the value.
                    is_computed |= value.value.starts_with('[');
                    let value = self.word(value);
                    self.variable(name, value.text());
                }
            }
        }
        if is_computed {
            self.note(UnknownPart::Expansion);
        }
    }
}

/// Whether a variable may change which programs run.
fn may_change(name: &str, value: Option<&str>) -> bool {
    if let Some((_, harmless)) = OPTIONS.iter().find(|(options, _)| *options == name) {
        let is_harmless = |option: &str| {
            harmless.split(' ').any(|it| match it.ends_with('=') || it == "-j" {
                true => option.starts_with(it),
                false => option == it,
            })
        };
        return !value.is_some_and(|value| value.split(' ').all(is_harmless));
    }
    // It may run a command when it begins.
    if matches!(name, "LESS" | "MORE") {
        return value.is_none_or(|it| it.contains('+'));
    }
    lists(CHANGING, name) || OF_LOADER.iter().any(|it| name.starts_with(it))
}
