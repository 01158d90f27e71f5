//! What is known about a call: its command line, the facts for the rules, and what tells it apart from others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::core::address::normal_address;
use crate::core::caller::Caller;
use crate::core::command_line::{
    ParsedCommandLine, ProgramCall, UnknownPart, is_shell, reads_otherwise,
};
use crate::core::ids::PrincipalId;
use crate::core::policy::approvals::{Fingerprint, KnownCommand};
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::facts::{CallFacts, SessionFacts};
use crate::core::policy::rules::{Matching, RuleEffect, RuleOutcome};
use crate::core::shell::commands::EndsBy;
use crate::gateway::judging::JudgedCall;
use crate::gateway::judging::seen::{SeenCall, SeenTerminal};
use crate::gateway::judging::typing::{LineReader, TypedLine};
use crate::gateway::recording::{recordable_text, without_secrets};
use crate::mount::registry::MountedTool;
use crate::session::handle::Session;
use crate::session::pty::environment::Environment;
use crate::surface::call::Call;
use crate::surface::call_arguments::CallArguments;
use crate::surface::terminal::create_session::other_user;
use crate::surface::tool::ToolRuns;

/// The arguments that change neither what a call does nor to what.
const NEUTRAL: [&str; 9] = [
    "session",
    "lease_id",
    "idempotency_key",
    "expect_watermark",
    "expect_text",
    "wait_ms",
    "timeout_ms",
    "until",
    "max_lines",
];

/// The variable that says where programs are searched.
const SEARCHED: &str = "PATH";

/// What a call has a shell or the system run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JudgedLine {
    pub(super) parsed: Option<ParsedCommandLine>,
    /// The line that the call ends, where it types.
    pub(super) typed: Option<TypedLine>,
    /// The variables that the call sets and that may change which programs run.
    pub(super) changing: Vec<String>,
}

impl<'a> SeenCall<'a> {
    /// What the call has a shell or the system run, if the tool says that it does.
    pub(super) fn line(self, call: &Call) -> JudgedLine {
        let parsed = match self.judged.entry.runs {
            ToolRuns::Line(name) => self.line_of_command(name),
            ToolRuns::Program => return self.line_of_program(call),
            ToolRuns::Text(_) | ToolRuns::Input => {
                let typed = self.typed_line();
                let parsed = typed.as_ref().map(|typed| {
                    let whole = typed.whole().map_or_else(|| typed.perhaps(), |it| [it].into());
                    whole.iter().fold(typed.parse(), |line, text| self.for_its_shell(line, text))
                });
                return JudgedLine { parsed, typed, ..JudgedLine::default() };
            }
            ToolRuns::Nothing => None,
        };
        JudgedLine { parsed, ..JudgedLine::default() }
    }

    /// What `run` has a shell run.
    fn line_of_command(self, name: &str) -> Option<ParsedCommandLine> {
        let text = self.judged.arguments.get(name).and_then(Value::as_str)?;
        let mut line = ParsedCommandLine::parse(text);
        if self.terminal.is_some_and(is_for_other_program) {
            line.unknown.insert(UnknownPart::OtherProgram);
        }
        Some(self.for_its_shell(line, text))
    }

    /// What this text runs, where the shell in front may read it in another way.
    fn for_its_shell(self, mut line: ParsedCommandLine, text: &str) -> ParsedCommandLine {
        if self.terminal.is_some_and(|terminal| is_read_otherwise(terminal, text)) {
            line.unknown.insert(UnknownPart::OtherShell);
        }
        line
    }

    /// The program that a session is started with, and the variables that it gets.
    fn line_of_program(self, call: &Call) -> JudgedLine {
        let usual = call.daemon.sessions.usual_environment();
        let variables = self.variables(other_user(call).is_none().then_some(&usual));
        let changing = variables.iter().filter(|it| may_change_programs((*it).clone()));
        let changing = changing.map(|(name, _)| name.clone()).collect();
        let parsed = self.parsed_program(&usual, variables);
        JudgedLine { parsed, changing, ..JudgedLine::default() }
    }

    /// The variables that the call sets to another value than they have in this environment.
    fn variables(self, usual: Option<&Environment>) -> Vec<(String, String)> {
        let given = self.judged.arguments.get("env").and_then(Value::as_object);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let given = given.into_iter().flatten().map(|(name, value)| (name.clone(), text(value)));
        let is_usual = |name: &str, value: &str| {
            usual.and_then(|it| it.get(OsStr::new(name))).is_some_and(|it| *it == *value)
        };
        given.filter(|(name, value)| !is_usual(name, value)).collect()
    }

    fn parsed_program(
        self,
        usual: &Environment,
        variables: Vec<(String, String)>,
    ) -> Option<ParsedCommandLine> {
        let arguments = self.judged.arguments.get("args").and_then(Value::as_array);
        let line = match (self.judged.arguments.get("command").and_then(Value::as_str), arguments) {
            (None, _) if variables.is_empty() => return None,
            (None, _) => ParsedCommandLine::default(),
            (Some(program), None) => ParsedCommandLine::parse(program),
            (Some(program), Some(arguments)) => {
                let arguments = arguments.iter().filter_map(Value::as_str);
                let words = std::iter::once(program).chain(arguments).map(str::to_owned);
                ParsedCommandLine::of_arguments(words)
            }
        };
        let mut line = line.with_variables(variables);
        // Of what the client hands on, this alone changes which programs run. Bridges hand it on each time, so that it
        // only keeps the line from being allowed.
        let handed = self.judged.arguments.get("env_client").and_then(|given| given.get(SEARCHED));
        let own = usual.get(OsStr::new(SEARCHED)).and_then(|it| it.to_str());
        if handed.is_some_and(|handed| handed.as_str() != own) {
            line.sets.insert(SEARCHED.to_owned());
        }
        Some(line)
    }

    /// The line that the call types, if all its programs are known and none runs others.
    pub(super) fn known_command(
        self,
        call: &Call,
        line: &ParsedCommandLine,
        decision: &Decision,
    ) -> Option<KnownCommand> {
        programs_of(line)?;
        let strict = |it: &&RuleOutcome| it.effect != RuleEffect::Allow && !it.overridden;
        let asking: Vec<&RuleOutcome> = decision
            .verdict
            .trace
            .iter()
            .filter(strict)
            .filter(|outcome| outcome.matching != Matching::No)
            .collect();
        let asks = |it: &&RuleOutcome| it.effect == RuleEffect::Ask && it.matching == Matching::Yes;
        if !asking.iter().all(asks) {
            return None;
        }
        let caller = &call.standing.caller;
        let of_token = matches!(caller.principal, PrincipalId::Token(_));
        Some(KnownCommand {
            line: self.text(line)?.into(),
            tenant: caller.tenant.clone(),
            token: of_token.then(|| Arc::clone(&caller.label)),
            asked_by: asking.iter().map(|outcome| Arc::clone(&outcome.rule)).collect(),
        })
    }

    /// This line as it is written, if the call alone writes it.
    fn text(self, line: &ParsedCommandLine) -> Option<&'a str> {
        let text = match self.judged.entry.runs {
            ToolRuns::Line(name) | ToolRuns::Text(name) => {
                self.judged.arguments.get(name)?.as_str()?
            }
            ToolRuns::Nothing | ToolRuns::Program | ToolRuns::Input => return None,
        };
        let text = text.trim_end_matches(['\n', '\r']);
        (ParsedCommandLine::parse(text) == *line).then_some(text)
    }

    pub(super) fn facts<'b>(self, call: &'b Call, judged: &'b JudgedLine) -> CallFacts<'b>
    where
        'a: 'b,
    {
        let (standing, session) = (&call.standing, self.judged.session);
        let line = judged.parsed.as_ref();
        let of_token = matches!(standing.caller.principal, PrincipalId::Token(_));
        let of = session.map_or(&standing.caller.tenant, Session::tenant).of_all();
        let raw_input = match self.judged.entry.runs {
            ToolRuns::Input => true,
            ToolRuns::Text(_) => {
                let reader = judged.typed.as_ref().map(|typed| typed.reader);
                reader != Some(LineReader::OwnShell)
                    || line.is_none_or(|line| !line.unknown.is_empty())
            }
            ToolRuns::Nothing | ToolRuns::Line(_) | ToolRuns::Program => false,
        };
        CallFacts {
            client: if of_token { "" } else { &standing.caller.label },
            token: of_token.then_some(&*standing.caller.label),
            tenant: standing.caller.tenant.as_str(),
            roles: standing.roles_in(&of),
            door: standing.door.as_str(),
            tool: &self.judged.entry.name,
            mount: match (self.judged.entry.mount(), &call.mount_lease) {
                (Some(MountedTool { mount, tool, .. }), _) => {
                    Some((mount.name().as_str(), format!("{}/{tool}", mount.name())))
                }
                (None, Some(lease)) => {
                    let mount = lease.mount().name().as_str();
                    Some((mount, mount.to_owned()))
                }
                (None, None) => None,
            },
            session: session
                .zip(self.terminal)
                .map(|(session, terminal)| facts_of(session, terminal)),
            arguments: self.judged.arguments.facts(),
            line,
            text: line.and_then(|line| self.text(line)),
            raw_input,
        }
    }

    /// The same about a resource of a mount at the normal form of its address, if that is another one.
    pub(super) fn at_normal_address<'b>(self, facts: &CallFacts<'b>) -> Option<CallFacts<'b>> {
        let address = self.judged.entry.address()?;
        let normal = normal_address(address);
        if normal == address {
            return None;
        }
        let mut facts = facts.clone();
        if let Some((mount, whole)) = &mut facts.mount {
            *whole = format!("{mount}/{normal}");
        }
        facts.arguments.insert("uri".to_owned(), normal);
        Some(facts)
    }
}

impl JudgedCall<'_> {
    /// The arguments that say what the call does, in a fixed order.
    fn meaning(self) -> String {
        match self.arguments {
            CallArguments::Values(values) => {
                let says = |(name, _): &(&String, &Value)| !NEUTRAL.contains(&name.as_str());
                sorted(&values.iter().filter(says).collect()).to_string()
            }
            CallArguments::Written(written) => written.sorted().to_string(),
            CallArguments::Faulty(_) => String::new(),
        }
    }

    /// The same for people, without the values of environment variables.
    pub(super) fn told(self) -> String {
        match self.arguments {
            CallArguments::Values(values) => {
                let told = values.iter().filter(|(name, _)| !NEUTRAL.contains(&name.as_str()));
                let told = told.map(|(name, value)| (name.clone(), without_secrets(name, value)));
                let told: Map<String, Value> = told.collect();
                sorted(&told.iter().collect()).to_string()
            }
            // What a server makes of a member, only the server knows.
            CallArguments::Written(_) | CallArguments::Faulty(_) => self.meaning(),
        }
    }

    /// The same as far as it is kept.
    pub(super) fn recordable(self) -> String {
        match self.arguments {
            CallArguments::Written(written) => recordable_text(written),
            CallArguments::Values(_) | CallArguments::Faulty(_) => self.told(),
        }
    }

    pub(in crate::gateway) fn fingerprint(self, caller: &Caller) -> Fingerprint {
        let arguments = match self.arguments {
            CallArguments::Written(written) => written.identity(),
            CallArguments::Values(_) | CallArguments::Faulty(_) => self.meaning(),
        };
        let session = self.session.map(|session| session.id().to_string()).unwrap_or_default();
        let parts = [
            caller.principal.to_string(),
            caller.tenant.to_string(),
            session,
            self.entry.name.to_string(),
            arguments,
        ];
        Fingerprint::of(&parts.each_ref().map(String::as_bytes))
    }
}

/// Whether a variable runs programs, or may change which run.
fn may_change_programs(variable: (String, String)) -> bool {
    let found = ParsedCommandLine::default().with_variables([variable]);
    !(found.unknown.is_empty() && found.calls.is_empty() && found.suspects.is_empty())
}

/// The hash of all that a line runs and writes, if that is known, whatever the order and spelling of flags.
pub(super) fn fingerprint_of(line: &ParsedCommandLine) -> Option<Fingerprint> {
    let is_whole = line.is_known() && line.sets.is_empty() && !line.calls.is_empty();
    let call = |it: &ProgramCall| {
        format!("{:?}", (&it.name, &it.path, &it.flags, &it.operands, &it.through))
    };
    let calls: Vec<String> = line.calls.iter().map(call).collect();
    is_whole.then(|| Fingerprint::of(&[format!("{calls:?}{:?}", line.writes).as_bytes()]))
}

/// The programs of a line with their flags and subcommands, if all are known and none runs others.
pub(super) fn programs_of(line: &ParsedCommandLine) -> Option<BTreeSet<String>> {
    const RUN_OTHERS: [&str; 5] = ["sudo", "doas", "su", "ssh", "env"];
    let is_plain = |call: &ProgramCall| {
        let name = call.name.as_deref().unwrap_or_default();
        call.through.is_empty() && !is_shell(name) && !RUN_OTHERS.contains(&name)
    };
    let is_whole = line.is_known()
        && line.sets.is_empty()
        && line.writes.is_empty()
        && !line.calls.is_empty()
        && line.calls.iter().all(is_plain);
    is_whole.then(|| line.calls.iter().map(ProgramCall::kind).collect())
}

/// Whether the shell in front is one that may read this line in another way.
fn is_read_otherwise(terminal: &SeenTerminal, line: &str) -> bool {
    terminal.program().is_some_and(|program| reads_otherwise(program, line))
}

/// Whether a program that is not known to be a shell takes the next command.
fn is_for_other_program(terminal: &SeenTerminal) -> bool {
    let is_nested = terminal.frame.shell.readiness.ends_by() == Some(EndsBy::Prompt);
    is_nested && !terminal.program().is_some_and(is_shell)
}

fn facts_of(session: &Session, terminal: &SeenTerminal) -> SessionFacts {
    SessionFacts {
        name: session.name().to_string(),
        tags: session.about().tags.clone(),
        directory: terminal.directory.clone(),
        terminal: terminal.frame.activity.value.state,
        foreground: terminal.program().map(str::to_owned),
    }
}

/// JSON with the members of all objects in order, so that equal arguments have one text.
fn sorted(members: &BTreeMap<&String, &Value>) -> Value {
    fn one(value: &Value) -> Value {
        match value {
            Value::Object(members) => sorted(&members.iter().collect()),
            Value::Array(values) => values.iter().map(one).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    // Members keep the order in which they are inserted, whichever map JSON is built with.
    members.iter().map(|(name, value)| ((*name).clone(), one(value))).collect()
}
