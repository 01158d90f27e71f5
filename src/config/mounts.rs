//! Reads a mounts file: the MCP servers whose tools the daemon offers, and its problems.
//!
//! The files of all places hold together; no mount may be in two of them.

mod server;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::config::mounts::server::{SERVER_KEYS, ServerKeys};
use crate::config::problem::{Fault, FilePosition, Problem, ValueOrigin};
use crate::core::mount::server::MountedServer;
use crate::core::mount::{
    INITIALIZE_TIMEOUT, MOUNTS_MAX, MountMode, MountName, MountSettings, MountTable, MountTrust,
};
use crate::core::nearest::nearest_of;
use crate::core::policy::rules::patterns::Patterns;

/// The name of the file.
pub const MOUNTS: &str = "mounts.toml";

/// The keys of a mount, besides those of its server.
const KEYS: [&str; 7] =
    ["trust", "mode", "idle_stop_ms", "initialize_timeout_ms", "call_timeout_ms", "tools", "reads"];

/// The bounds of times, in milliseconds.
const IDLE: RangeInclusive<u64> = 0..=86_400_000;
const INITIALIZE: RangeInclusive<u64> = 100..=600_000;
const CALL: RangeInclusive<u64> = 100..=3_600_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MountsFile {
    #[serde(default)]
    mount: BTreeMap<String, Spanned<MountKeys>>,
}

#[derive(Debug, Deserialize)]
struct MountKeys {
    #[serde(flatten)]
    server: ServerKeys,
    trust: Option<String>,
    mode: Option<String>,
    idle_stop_ms: Option<u64>,
    initialize_timeout_ms: Option<u64>,
    call_timeout_ms: Option<u64>,
    tools: Option<Vec<String>>,
    reads: Option<Vec<String>>,
    #[serde(flatten)]
    others: BTreeMap<String, toml::Value>,
}

/// Adds what a mounts file says, and returns its problems. With problems, the mounts are not to be used.
pub fn read(text: &str, path: &Path, mounts: &mut MountTable) -> Vec<Problem> {
    let problem = |at: usize, key: Option<String>, fault: Fault| {
        let at = Some(FilePosition::of(text, at));
        Problem { origin: ValueOrigin::File { path: path.to_owned(), at }, key, fault }
    };
    let file: MountsFile = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            return vec![problem(at, None, Fault::Syntax(error.message().replace('\n', " ")))];
        }
    };
    let mut problems = Vec::new();
    for (name, table) in file.mount {
        let at = table.span().start;
        let mut wrong = Vec::new();
        let id = name.parse::<MountName>().map_err(|error| wrong.push(error.to_string()));
        let settings = table.into_inner().settings(&mut wrong);
        if let (Ok(id), Some(settings)) = (id, settings)
            && mounts.insert(id, settings).is_some()
        {
            wrong.push("another mount has this name".to_owned());
        }
        let key = format!("mount.{name}");
        problems
            .extend(wrong.into_iter().map(|it| problem(at, Some(key.clone()), Fault::Rule(it))));
    }
    if mounts.len() > MOUNTS_MAX {
        problems.push(problem(0, None, Fault::Rule(format!("more than {MOUNTS_MAX} mounts"))));
    }
    problems.sort_by_key(Problem::position);
    problems
}

impl MountKeys {
    /// The settings, or `None` with all that is wrong with them.
    fn settings(self, wrong: &mut Vec<String>) -> Option<MountSettings> {
        for key in self.others.keys() {
            let near = nearest_of(key, SERVER_KEYS.into_iter().chain(KEYS), 1).first().copied();
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            wrong.push(format!("unknown key {key}{near}"));
        }
        let server = self.server.server(wrong);
        let trust = one_of(
            ("trust", self.trust.as_deref(), &MountTrust::ALL.map(MountTrust::as_str)),
            MountTrust::parse,
            wrong,
        );
        let mode =
            one_of(("mode", self.mode.as_deref(), &MountMode::WORDS), MountMode::parse, wrong);
        let is_program = matches!(server, None | Some(MountedServer::Program(_)));
        if trust == MountTrust::Sandboxed && !is_program {
            wrong.push("trust: a sandbox is only for a command".to_owned());
        }
        let tools = patterns("tools", self.tools, wrong);
        let reads = match self.reads {
            Some(none) if none.is_empty() => Some(Arc::new(Patterns::none())),
            given => patterns("reads", given, wrong),
        };
        let mut millis = |name: &str, given: Option<u64>, default, bounds: RangeInclusive<u64>| {
            let given = given.unwrap_or(default);
            if !bounds.contains(&given) {
                let (least, most) = (bounds.start(), bounds.end());
                wrong.push(format!("{name}: {given} is not within {least} to {most}"));
            }
            Duration::from_millis(given)
        };
        let initialize = INITIALIZE_TIMEOUT.as_millis() as u64;
        let idle_stop = millis("idle_stop_ms", self.idle_stop_ms, 600_000, IDLE);
        let initialize_timeout =
            millis("initialize_timeout_ms", self.initialize_timeout_ms, initialize, INITIALIZE);
        let call_timeout = millis("call_timeout_ms", self.call_timeout_ms, 120_000, CALL);
        if !wrong.is_empty() {
            return None;
        }
        let server = server?;
        Some(MountSettings {
            server,
            trust,
            mode,
            idle_stop,
            initialize_timeout,
            call_timeout,
            tools,
            reads,
        })
    }
}

/// The patterns of a key.
fn patterns(
    key: &str,
    given: Option<Vec<String>>,
    wrong: &mut Vec<String>,
) -> Option<Arc<Patterns>> {
    let read = given.map(Patterns::new).transpose();
    read.map_err(|problem| wrong.push(format!("{key}: {problem}"))).ok().flatten().map(Arc::new)
}

/// The value that this word of a key stands for; the default without one.
fn one_of<T: Default>(
    (key, given, all): (&str, Option<&str>, &[&str]),
    parse: impl Fn(&str) -> Option<T>,
    wrong: &mut Vec<String>,
) -> T {
    let Some(word) = given else { return T::default() };
    parse(word).unwrap_or_else(|| {
        wrong.push(format!("{key}: `{word}` is not one of {}", all.join(", ")));
        T::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::mount::server::ServerCommand;

    fn read_all(text: &str) -> (MountTable, Vec<String>) {
        let mut mounts = MountTable::new();
        let problems = read(text, Path::new("mounts.toml"), &mut mounts);
        (mounts, problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn a_mount_has_what_the_file_says_and_defaults() {
        let text = "[mount.fs]\ncommand = \"npx\"\nargs = [\"-y\"]\nenv = { A = \"${B:-c}\" }\n\
            pass_env = [\"TOKEN\"]\ncwd = \"/srv\"\ntrust = \"trusted\"\nmode = \"leased\"\nidle_stop_ms = 0\n\
            initialize_timeout_ms = 1000\ncall_timeout_ms = 2000\ntools = [\"read_*\"]\nreads = [\"read_*\"]\n\
            [mount.b]\ncommand = \"b\"\n[mount.c]\ncommand = \"c\"\nreads = []";
        let (mounts, problems) = read_all(text);
        assert!(problems.is_empty(), "{problems:?}");
        let fs = &mounts[&"fs".parse().unwrap()];
        let program = ServerCommand {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "${B:-c}".to_owned())]),
            pass_env: vec!["TOKEN".to_owned()],
            cwd: Some("/srv".to_owned()),
        };
        assert_eq!(fs.server, MountedServer::Program(program));
        assert_eq!(fs.trust, MountTrust::Trusted);
        assert_eq!(fs.mode, MountMode::Leased);
        let times = [fs.idle_stop, fs.initialize_timeout, fs.call_timeout];
        assert_eq!(times.map(|it| it.as_millis()), [0, 1_000, 2_000]);
        assert!(fs.tools.as_ref().unwrap().matches("read_file"));
        assert!(fs.reads.as_ref().unwrap().matches("read_file"));
        let b = &mounts[&"b".parse().unwrap()];
        assert_eq!((b.trust, b.idle_stop), (MountTrust::Untrusted, Duration::from_secs(600)));
        assert_eq!(b.mode, MountMode::Shared);
        assert!(b.tools.is_none() && b.reads.is_none());
        let c = &mounts[&"c".parse().unwrap()];
        assert!(!c.reads.as_ref().unwrap().matches("read_file"));
    }

    #[test]
    fn each_problem_is_told_with_its_place() {
        for (table, expected) in [
            ("comand = \"x\"", "unknown key comand; did you mean command?"),
            ("args = []", "command, url or socket: missing"),
            ("command = \"\"", "command: empty"),
            ("command = \"x\"\ntrust = \"full\"", "trust: `full` is not one of"),
            ("url = \"http://a\"\ntrust = \"sandbox\"", "trust: a sandbox is only for a command"),
            ("socket = \"/a\"\ntrust = \"sandbox\"", "trust: a sandbox is only for a command"),
            ("command = \"x\"\nurl = \"http://a\"", "command: not together with url or socket"),
            ("command = \"x\"\nheaders = {}", "headers: only with url"),
            ("url = \"http://a\"\nargs = []", "args: only with command"),
            ("url = \"a\"", "url: it must begin with http:// or https://"),
            ("url = \"${\"", "url: `${`"),
            ("url = \"https://a\"\nsocket = \"/a\"", "url: with socket it must begin with http://"),
            ("url = \"http://a\"\nheaders = { Host = \"b\" }", "headers: `Host` is a header that"),
            ("url = \"http://a\"\nheaders = { A = \"${\" }", "headers.A: "),
            ("socket = \"a\"", "socket: must be an absolute path"),
            ("socket = \"/a\"\nheaders = {}", "headers: only with url"),
            (
                "command = \"x\"\nmode = \"pool:1\"",
                "mode: `pool:1` is not one of shared, leased, per_client, pool:N",
            ),
            ("command = \"x\"\nenv = { A = \"${\" }", "env.A: "),
            ("command = \"${\"", "command: `${`"),
            ("command = \"x\"\nargs = [\"${A%x}\"]", "args: `${`"),
            ("command = \"x\"\ncwd = \"${A\"", "cwd: `${`"),
            ("command = \"x\"\nenv = { \"A=B\" = \"\" }", "env: `A=B` is not the name"),
            ("command = \"x\"\npass_env = [\"1A\"]", "pass_env: `1A`"),
            ("command = \"x\"\ncwd = \"here\"", "cwd: must be an absolute path"),
            ("command = \"x\"\ncall_timeout_ms = 1", "call_timeout_ms: 1 is not within"),
            ("command = \"x\"\ntools = []", "tools: no pattern"),
            ("command = \"a\\u0000\"", "the character NUL"),
        ] {
            let (mounts, problems) = read_all(&format!("\n[mount.a]\n{table}"));
            assert!(problems.iter().any(|it| it.contains(expected)), "{table}: {problems:?}");
            assert!(problems[0].starts_with("mounts.toml:2:1: mount.a: "), "{problems:?}");
            assert!(mounts.is_empty());
        }
        assert!(read_all("[mount.A_b]\ncommand = \"x\"").1[0].contains("1 to 16 of a-z"));
        assert!(read_all("[mounts.a]").1[0].contains("unknown field `mounts`"));
    }

    #[test]
    fn a_server_may_be_found_by_a_url_or_a_socket() {
        let text = "[mount.a]\nurl = \"${URL}/mcp\"\nheaders = { Authorization = \"${T}\" }\n\
            [mount.b]\nsocket = \"/b\"\n[mount.c]\nurl = \"http://localhost\"\nsocket = \"/c\"";
        let (mounts, problems) = read_all(text);
        assert!(problems.is_empty(), "{problems:?}");
        let shown: Vec<_> = mounts.values().map(|it| it.server.to_string()).collect();
        assert_eq!(shown, ["${URL}/mcp", "unix:/b", "http://localhost at unix:/c"]);
    }

    #[test]
    fn a_mount_is_in_one_file_and_there_are_not_too_many() {
        let mut mounts = MountTable::new();
        let text = "[mount.a]\ncommand = \"x\"";
        assert!(read(text, Path::new("one.toml"), &mut mounts).is_empty());
        let problems = read(text, Path::new("two.toml"), &mut mounts);
        assert!(problems[0].to_string().contains("another mount has this name"));
        let many: String =
            (0..=MOUNTS_MAX).map(|n| format!("[mount.m{n}]\ncommand = \"x\"\n")).collect();
        assert!(read_all(&many).1[0].contains("more than 32 mounts"));
    }
}
