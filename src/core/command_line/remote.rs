//! What `ssh` runs at another host, and what its options run here.

use crate::core::command_line::arguments::{after_options, lists};
use crate::core::command_line::{LineWord, ShellLineReader, UnknownPart};

/// Without `-F`, whose file can name a command that runs here.
const SSH: [&str; 2] =
    ["4 6 A a C f G g K k M N n q s T t V v X x Y y", "B b c D E e I i J L l m O o P p Q R S W w"];

/// Settings that run nothing.
const HARMLESS: &str = "stricthostkeychecking userknownhostsfile globalknownhostsfile connecttimeout \
    connectionattempts batchmode serveraliveinterval serveralivecountmax identitiesonly identityfile loglevel port \
    user hostname hostkeyalias forwardagent forwardx11 compression controlmaster controlpath controlpersist \
    passwordauthentication pubkeyauthentication preferredauthentications requesttty tcpkeepalive addressfamily \
    exitonforwardfailure kbdinteractiveauthentication numberofpasswordprompts hostkeyalgorithms ciphers macs";

impl ShellLineReader {
    pub(super) fn ssh(&mut self, arguments: &[LineWord]) {
        let (rest, known) = after_options(arguments, SSH);
        self.settings(&arguments[..arguments.len() - rest.len()]);
        let line = match rest.get(1..).unwrap_or_default() {
            [LineWord::Known(end), line @ ..] if end == "--" => line,
            line => line,
        };
        // Options may follow the host, too.
        let is_option =
            line.first().is_some_and(|it| it.text().is_none_or(|it| it.starts_with('-')));
        let is_host_known = rest.first().is_none_or(LineWord::is_known);
        match line {
            _ if !known || is_option || !is_host_known => self.note(UnknownPart::Wrapper),
            // Without a host, it runs nothing.
            [] => self.shell_reads |= !rest.is_empty(),
            line => self.joined("ssh", line),
        }
    }

    /// Notes that `-o` sets what may run something, for `ssh`, `scp` and `sftp`.
    pub(super) fn settings(&mut self, options: &[LineWord]) {
        for (at, option) in options.iter().enumerate() {
            let Some(letters) = option.text().and_then(|it| it.strip_prefix('-')) else {
                continue;
            };
            let Some((_, behind)) = letters.split_once('o') else { continue };
            let next = || options.get(at + 1).and_then(LineWord::text);
            let setting = Some(behind).filter(|it| !it.is_empty()).or_else(next);
            let name = setting.and_then(|it| it.split(['=', ' ']).next()).unwrap_or_default();
            if !lists(HARMLESS, &name.to_lowercase()) {
                self.note(UnknownPart::Wrapper);
            }
        }
    }
}
