//! Rules: what the operator denies, allows, or wants to be asked about.
//!
//! A rule judges one call by facts. What is not known is never guessed: a rule that denies or asks may then match, and
//! one that allows does not.

pub mod command;
pub mod facts;
mod lines;
pub mod patterns;
mod shapes;
pub mod tools;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::core::command_line::ParsedCommandLine;
use crate::core::policy::rules::command::CommandPattern;
use crate::core::policy::rules::facts::{CallFacts, Fact, SessionFacts};
use crate::core::policy::rules::lines::all_allowed;
use crate::core::policy::rules::patterns::Patterns;

/// The most rules of a daemon, of all its files together.
pub const RULES_MAX: usize = 256;

/// Where the lines run that are examples of rules.
const EXAMPLE_DIRECTORY: &str = "/home/you/project";

/// What happens to a call, the mildest first: of several, the strictest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleEffect {
    #[default]
    Allow,
    /// Somebody who may approve is asked first.
    Ask,
    Deny,
}

impl RuleEffect {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The word for it in files and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for RuleEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One rule. It matches where each of its conditions holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub name: Arc<str>,
    pub effect: RuleEffect,
    /// What callers are told about it.
    pub reason: Option<Arc<str>>,
    /// What happens at most where it is not known whether it matches, if that differs from what the policy says.
    pub unknown: Option<RuleEffect>,
    /// Whether the person in front of the calling client may approve what this rule asks about.
    pub client_may_approve: bool,
    /// For a rule that allows: the rules that do not ask about what it allows.
    pub overrides: Vec<Arc<str>>,
    /// Facts of the call, of which one value each must match.
    pub facts: BTreeMap<Fact, Patterns>,
    /// Arguments of the call by name. What is no text is JSON.
    pub arguments: BTreeMap<String, Patterns>,
    /// Whether the call types what is not known whole to be a command line, such as single keys.
    pub raw_input: Option<bool>,
    /// A program that the call runs.
    pub command: Option<CommandPattern>,
    /// The files that its command line writes, and for rules that deny or ask also those which programs change.
    pub writes: Option<Patterns>,
    /// The whole command line, as it is written.
    pub line: Option<Arc<str>>,
}

/// All rules of a daemon, and what holds where none matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRules {
    /// What happens to a call that no rule matches.
    pub default: RuleEffect,
    /// What happens at most where it is not known whether a rule matches that denies or asks. `ask` if nothing is said.
    pub unknown: Option<RuleEffect>,
    /// Whether the person in front of the calling client may approve what no rule allows.
    pub client_may_approve: bool,
    pub rules: Vec<Rule>,
}

/// Whether a rule matches, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matching {
    No,
    /// That is not known before the call takes effect.
    Maybe,
    Yes,
}

impl Matching {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
            Self::Yes => "yes",
        }
    }
}

impl From<bool> for Matching {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// A condition of a rule, by the name that it has in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Fact(Fact),
    Argument(String),
    RawInput,
    Command,
    Writes,
    Line,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(fact) => f.write_str(fact.as_str()),
            Self::Argument(name) => write!(f, "arguments.{name}"),
            Self::RawInput => f.write_str("raw_input"),
            Self::Command => f.write_str("command"),
            Self::Writes => f.write_str("writes"),
            Self::Line => f.write_str("line"),
        }
    }
}

/// How one rule judged a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    pub rule: Arc<str>,
    pub effect: RuleEffect,
    pub matching: Matching,
    /// The first condition that did not hold, or is not known to.
    pub condition: Option<Condition>,
    /// Whether rules that allow keep this one from asking.
    pub overridden: bool,
}

/// What the rules say about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleVerdict {
    pub effect: RuleEffect,
    /// The rule that decided; none where the default did.
    pub rule: Option<Arc<str>>,
    /// Why, as that rule says. If it only may match, what is not known.
    pub reason: Option<Arc<str>>,
    /// Whether that rule only may match.
    pub unsure: bool,
    /// Whether the person in front of the calling client may approve it: each rule that asks says so.
    pub client_may_approve: bool,
    /// Whether it is allowed by a rule about the directory.
    pub by_directory: bool,
    /// Each rule, in the order of the files.
    pub trace: Vec<RuleOutcome>,
}

impl RuleVerdict {
    /// Whether a rule that denies matches, or may match.
    pub fn may_be_denied(&self) -> bool {
        let denies =
            |it: &RuleOutcome| it.effect == RuleEffect::Deny && it.matching != Matching::No;
        self.trace.iter().any(denies)
    }
}

impl PolicyRules {
    /// Whether they allow every call.
    pub fn allow_all(&self) -> bool {
        self.rules.iter().all(|rule| rule.effect == RuleEffect::Allow)
            && self.default == RuleEffect::Allow
    }

    /// Judges a call that can be read in several ways, by the strictest of them.
    pub fn judge_strictly<'a>(
        &self,
        call: &CallFacts<'a>,
        others: &[CallFacts<'a>],
    ) -> RuleVerdict {
        others.iter().map(|other| self.judge(other)).fold(self.judge(call), |one, other| {
            let by_directory = one.by_directory || other.by_directory;
            let client_may_approve = one.client_may_approve && other.client_may_approve;
            match one.effect.cmp(&other.effect) {
                Ordering::Less => RuleVerdict { by_directory, ..other },
                Ordering::Equal => RuleVerdict { by_directory, client_may_approve, ..one },
                Ordering::Greater => RuleVerdict { by_directory, ..one },
            }
        })
    }

    /// Judges a call.
    pub fn judge(&self, call: &CallFacts<'_>) -> RuleVerdict {
        let mut trace: Vec<RuleOutcome> = self.rules.iter().map(|rule| rule.judge(call)).collect();
        for number in 0..trace.len() {
            trace[number].overridden = self.is_overridden(&trace[number], call, &trace);
        }
        let strict = self.rules.iter().zip(&trace).filter_map(|(rule, outcome)| {
            let effect = self.strict_effect(rule, outcome)?;
            Some((effect, outcome.matching == Matching::Yes, rule))
        });
        let asks_client = strict.clone().all(|(_, _, rule)| rule.client_may_approve);
        // What no rule asks about is left to the default.
        let of_rest = || {
            self.client_may_approve
                || self.default == RuleEffect::Allow
                || self.allowing(call, &trace).is_some()
        };
        // Of several of one effect, the first that is sure is told.
        let strictest = strict
            .reduce(|one, other| if (other.0, other.1) > (one.0, one.1) { other } else { one });
        let (effect, is_sure, rule) = match strictest {
            Some((effect, is_sure, rule)) => (effect, is_sure, Some(rule)),
            None => match self.allowing(call, &trace) {
                Some(rule) => (RuleEffect::Allow, true, Some(rule)),
                None => (self.default, true, None),
            },
        };
        RuleVerdict {
            effect,
            rule: rule.map(|rule| Arc::clone(&rule.name)),
            reason: rule.and_then(|rule| {
                let unknown = || rule.what_is_unknown(call).map(Arc::from);
                (!is_sure).then(unknown).flatten().or_else(|| rule.reason.clone())
            }),
            unsure: !is_sure,
            client_may_approve: effect == RuleEffect::Ask && asks_client && of_rest(),
            by_directory: self.rules.iter().zip(&trace).any(|(rule, outcome)| {
                rule.effect == RuleEffect::Allow
                    && outcome.matching == Matching::Yes
                    && rule.facts.contains_key(&Fact::Directory)
            }),
            trace,
        }
    }

    /// The effect of a rule that denies or asks and matches, or may match.
    fn strict_effect(&self, rule: &Rule, outcome: &RuleOutcome) -> Option<RuleEffect> {
        let effect = match (outcome.effect, outcome.matching) {
            (RuleEffect::Allow, _) | (_, Matching::No) => return None,
            (RuleEffect::Ask, _) if outcome.overridden => return None,
            (effect, Matching::Yes) => effect,
            (effect, Matching::Maybe) => {
                effect.min(rule.unknown.or(self.unknown).unwrap_or(RuleEffect::Ask))
            }
        };
        (effect != RuleEffect::Allow).then_some(effect)
    }

    /// Whether rules that allow, and override one that asks, allow the whole call.
    fn is_overridden(
        &self,
        asks: &RuleOutcome,
        call: &CallFacts<'_>,
        trace: &[RuleOutcome],
    ) -> bool {
        if asks.effect != RuleEffect::Ask || asks.matching == Matching::No {
            return false;
        }
        let covers = |(allowing, outcome): &(&Rule, &RuleOutcome)| {
            outcome.matching == Matching::Yes && allowing.overrides.contains(&asks.rule)
        };
        let covering: Vec<&Rule> =
            self.rules.iter().zip(trace).filter(covers).map(|(allowing, _)| allowing).collect();
        covering.iter().any(|allowing| allowing.is_about_whole())
            || call.line.is_some_and(|line| all_allowed(line, call, &covering))
    }

    /// The rule by which the call is allowed. Each program of a command line must be allowed, by one rule or another.
    fn allowing(&self, call: &CallFacts<'_>, trace: &[RuleOutcome]) -> Option<&Rule> {
        let matched = self.rules.iter().zip(trace).filter(|(rule, outcome)| {
            rule.effect == RuleEffect::Allow && outcome.matching == Matching::Yes
        });
        let matched: Vec<&Rule> = matched.map(|(rule, _)| rule).collect();
        let whole = matched.iter().find(|rule| rule.is_about_whole());
        whole.copied().or_else(|| match call.line {
            Some(line) if all_allowed(line, call, &matched) => {
                let first = line.calls.first();
                matched.into_iter().find(|rule| first.is_none_or(|first| rule.allows(first)))
            }
            Some(_) | None => None,
        })
    }
}

impl Rule {
    /// Whether it is about this line as an example, whoever runs it. For a rule that allows: whether it allows the whole
    /// line alone.
    pub fn matches_line(&self, line: &ParsedCommandLine) -> Matching {
        let directory = Some(EXAMPLE_DIRECTORY.to_owned());
        let session = Some(SessionFacts { directory, ..SessionFacts::default() });
        let call = CallFacts { line: Some(line), session, ..CallFacts::default() };
        if self.effect == RuleEffect::Allow {
            return all_allowed(line, &call, &[self]).into();
        }
        self.judge_line(&call).map_or(Matching::No, |(matching, _)| matching)
    }

    fn judge(&self, call: &CallFacts<'_>) -> RuleOutcome {
        let mut weakest = (Matching::Yes, None);
        for (matching, condition) in self.conditions(call) {
            if matching < weakest.0 {
                weakest = (matching, Some(condition));
            }
            if matching == Matching::No {
                break;
            }
        }
        let (matching, condition) = weakest;
        let (rule, effect) = (Arc::clone(&self.name), self.effect);
        RuleOutcome { rule, effect, matching, condition, overridden: false }
    }

    /// Each condition, and whether it holds.
    fn conditions<'a>(
        &'a self,
        call: &'a CallFacts<'_>,
    ) -> impl Iterator<Item = (Matching, Condition)> + 'a {
        let facts = self.facts.iter().map(|(fact, patterns)| {
            let matching = match call.values(*fact) {
                Some(values) => values.iter().any(|value| patterns.matches(value)).into(),
                None => Matching::Maybe,
            };
            (matching, Condition::Fact(*fact))
        });
        let arguments = self.arguments.iter().map(|(name, patterns)| {
            let value = call.arguments.get(name);
            let matching = value.is_some_and(|value| patterns.matches(value)).into();
            (matching, Condition::Argument(name.clone()))
        });
        let is_raw = call.raw_input;
        let raw = self.raw_input.map(|wanted| ((wanted == is_raw).into(), Condition::RawInput));
        let line = std::iter::once_with(|| self.judge_line(call)).flatten();
        // What is not known whole may be another line each time.
        let is_known = call.line.is_some_and(ParsedCommandLine::is_known);
        let whole = self
            .line
            .as_ref()
            .map(|line| ((is_known && call.text == Some(&**line)).into(), Condition::Line));
        facts.chain(arguments).chain(raw).chain(whole).chain(line)
    }

    /// Whether it is about a call as a whole, and not about single programs or files.
    fn is_about_whole(&self) -> bool {
        self.command.is_none() && self.writes.is_none()
    }
}

#[cfg(test)]
mod tests;
