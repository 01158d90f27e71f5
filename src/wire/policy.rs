//! Rules, decisions and approvals as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::command_line::{LineWord, ParsedCommandLine, ProgramCall, UnknownPart};
use crate::core::counted::counted;
use crate::core::human_duration::rough;
use crate::core::invisible::{shows_nothing, written_out};
use crate::core::one_line::line_to_decide_by;
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::{RuleOutcome, RuleVerdict};
use crate::wire::untrusted::Untrusted;

/// The member of a request's `_meta` that says how many milliseconds a call may wait for an approval.
pub const APPROVAL_WAIT_KEY: &str = "dev.termgate/wait_ms";

/// A call that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalWire {
    pub approval_id: String,
    /// What the call does, on one line. Invisible characters are shown.
    pub what: String,
    pub tool: String,
    pub by: String,
    pub tenant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Where the program in front works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The rule that asks; none where no rule allows the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub expires_in_ms: u64,
}

/// The calls that wait, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    #[serde(default)]
    #[schemars(skip)]
    pub untrusted: Untrusted,
    pub approvals: Vec<ApprovalWire>,
}

impl ApprovalWire {
    /// Whether somebody else waits to do the same at the same place.
    fn is_like(&self, other: &Self) -> bool {
        let about = |it: &Self| (it.what.clone(), it.directory.clone(), it.rule.clone());
        about(self) == about(other)
    }

    fn caller(&self) -> String {
        let session = self.session_name.as_ref().or(self.session.as_ref());
        let session = session.map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{}{session}", self.by)
    }
}

/// Calls that do the same, on one line. The first ends first.
fn line(alike: &[&ApprovalWire]) -> Option<String> {
    let first = alike.first()?;
    let ids: Vec<&str> = alike.iter().map(|call| call.approval_id.as_str()).collect();
    let callers: Vec<String> = alike.iter().map(|call| call.caller()).collect();
    let directory = first.directory.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
    let (ids, callers, left) = (ids.join(" "), callers.join(", "), rough(first.expires_in_ms));
    let line = format!("{ids}  {}  ({callers}{directory}, {left} left)", first.what);
    Some(line_to_decide_by(&line).into_owned())
}

impl ApprovalList {
    pub fn summary(&self) -> String {
        if self.approvals.is_empty() {
            return "nothing waits for an approval".to_owned();
        }
        let count = self.approvals.len();
        let waits = if count == 1 { "waits" } else { "wait" };
        let mut lines = vec![format!("{} {waits} for an approval", counted(count, "call"))];
        let mut rest: Vec<&ApprovalWire> = self.approvals.iter().collect();
        while let Some(first) = rest.first().copied() {
            let (alike, others) = rest.into_iter().partition(|call| call.is_like(first));
            rest = others;
            lines.extend(line(&alike));
        }
        lines.join("\n")
    }
}

/// What became of a call that waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDecided {
    pub approval_id: String,
    pub granted: bool,
    pub what: String,
    pub by: String,
}

/// A rule that lets a call pass for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleWritten {
    pub path: String,
    /// The line at which the rule is added, from 1.
    pub line: usize,
    pub added: String,
    /// Whether it is in the file now.
    pub written: bool,
}

impl RuleWritten {
    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        let Self { path, line, added, .. } = self;
        // A hidden character in a rule is one of the command.
        let shown = written_out(added, |it| it != '\n' && shows_nothing(it));
        let lines: String = shown.lines().map(|line| format!("\n+{line}")).collect();
        let before = line - 1;
        let count = added.lines().count();
        format!("--- {path}\n+++ {path}\n@@ -{before},0 +{line},{count} @@{lines}")
    }
}

/// A decision, and how each rule judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionWire {
    pub decision_id: String,
    pub tool: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What the call does, if it was denied or asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    #[serde(flatten)]
    pub verdict: VerdictWire,
}

/// What the rules say about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictWire {
    /// `allow`, `ask` or `deny`.
    pub effect: String,
    /// The rule that decided; none where the default did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It is not known whether that rule is about the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    pub rules: Vec<RuleOutcomeWire>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleOutcomeWire {
    pub rule: String,
    pub effect: String,
    /// `yes`, `no` or `maybe`.
    pub matches: String,
    /// The first condition that did not hold, or is not known to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// A rule that allows keeps this one from asking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overridden: bool,
}

impl From<&RuleOutcome> for RuleOutcomeWire {
    fn from(outcome: &RuleOutcome) -> Self {
        Self {
            rule: outcome.rule.to_string(),
            effect: outcome.effect.to_string(),
            matches: outcome.matching.as_str().to_owned(),
            condition: outcome.condition.as_ref().map(ToString::to_string),
            overridden: outcome.overridden,
        }
    }
}

impl From<&RuleVerdict> for VerdictWire {
    fn from(verdict: &RuleVerdict) -> Self {
        Self {
            effect: verdict.effect.to_string(),
            rule: verdict.rule.as_deref().map(str::to_owned),
            reason: verdict.reason.as_deref().map(str::to_owned),
            unsure: verdict.unsure,
            rules: verdict.trace.iter().map(RuleOutcomeWire::from).collect(),
        }
    }
}

impl VerdictWire {
    /// What decided, in one sentence.
    pub fn sentence(&self) -> String {
        let Self { effect, rule, reason, unsure, .. } = self;
        let by = match (rule, unsure) {
            (Some(rule), false) => format!("by the rule `{rule}`"),
            // Which rule it is that may match, says little: each may.
            (Some(_), true) => "since not all that it does is known".to_owned(),
            (None, _) => "by default".to_owned(),
        };
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{effect} {by}{reason}")
    }
}

impl From<&Decision> for DecisionWire {
    fn from(decision: &Decision) -> Self {
        Self {
            decision_id: decision.id.to_string(),
            tool: decision.tool.to_string(),
            by: decision.by.to_string(),
            session: decision.session.map(|session| session.to_string()),
            what: decision.what.get().map(|what| what.to_string()),
            verdict: VerdictWire::from(&decision.verdict),
        }
    }
}

/// What a command line runs, and what the rules say about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedLineWire {
    /// Whether all that it does is known before it runs.
    pub known: bool,
    pub programs: Vec<ProgramWire>,
    /// The variables that it sets.
    pub sets: Vec<String>,
    /// The files that redirections write; none if one is known only when the line runs.
    pub writes: Vec<Option<String>>,
    pub unknown: Vec<UnknownWire>,
    pub verdict: VerdictWire,
}

/// One program that a line runs. Words are none that are known only then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramWire {
    pub program: Option<String>,
    pub path: Option<String>,
    pub arguments: Vec<Option<String>>,
    /// By their shortest name, without dashes.
    pub flags: Vec<String>,
    pub operands: Vec<Option<String>>,
    /// The wrappers that run it, outermost first.
    pub run_by: Vec<String>,
}

/// A part of a line that is not known before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownWire {
    /// One word, stable over releases.
    pub code: String,
    pub meaning: String,
}

impl ParsedLineWire {
    pub fn of(line: &ParsedCommandLine, verdict: VerdictWire) -> Self {
        let known = |word: &LineWord| word.text().map(str::to_owned);
        let program = |call: &ProgramCall| ProgramWire {
            program: call.name.clone(),
            path: call.path.clone(),
            arguments: call.arguments.iter().map(known).collect(),
            flags: call.flags.iter().cloned().collect(),
            operands: call.operands.iter().map(known).collect(),
            run_by: call.through.clone(),
        };
        let unknown = |part: &UnknownPart| UnknownWire {
            code: part.code().to_owned(),
            meaning: part.to_string(),
        };
        Self {
            known: line.is_known(),
            programs: line.calls.iter().map(program).collect(),
            sets: line.sets.iter().cloned().collect(),
            writes: line.writes.iter().map(known).collect(),
            unknown: line.unknown.iter().map(unknown).collect(),
            verdict,
        }
    }
}
