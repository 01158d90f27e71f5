//! Reads a policy file: the rules in it, and its problems.
//!
//! The files of all places hold together: their rules add up, and of two defaults the stricter one holds.

pub mod draft;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::de::{Error, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::config::problem::{Fault, FilePosition, Problem, ValueOrigin};
use crate::core::command_line::ParsedCommandLine;
use crate::core::nearest::nearest_of;
use crate::core::policy::rules::command::CommandPattern;
use crate::core::policy::rules::facts::Fact;
use crate::core::policy::rules::patterns::Patterns;
use crate::core::policy::rules::tools::{KnownTool, ToolNames, unknown_names};
use crate::core::policy::rules::{Matching, PolicyRules, RULES_MAX, Rule, RuleEffect};

/// The longest reason of a rule and the longest name, in characters.
const REASON_MAX: usize = 300;
const NAME_MAX: usize = 64;

/// A policy file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    default: Option<EffectWord>,
    unknown: Option<EffectWord>,
    client_may_approve: Option<bool>,
    #[serde(default)]
    rule: Vec<Spanned<RuleTable>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EffectWord {
    Allow,
    Ask,
    Deny,
}

impl From<EffectWord> for RuleEffect {
    fn from(word: EffectWord) -> Self {
        match word {
            EffectWord::Allow => Self::Allow,
            EffectWord::Ask => Self::Ask,
            EffectWord::Deny => Self::Deny,
        }
    }
}

/// One rule as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: String,
    effect: EffectWord,
    unknown: Option<EffectWord>,
    reason: Option<String>,
    client_may_approve: Option<bool>,
    #[serde(default)]
    overrides: Texts,
    client: Option<Texts>,
    token: Option<Texts>,
    tenant: Option<Texts>,
    role: Option<Texts>,
    door: Option<Texts>,
    tool: Option<Texts>,
    mount: Option<Texts>,
    session: Option<Texts>,
    tags: Option<Texts>,
    directory: Option<Texts>,
    terminal: Option<Texts>,
    foreground: Option<Texts>,
    #[serde(default)]
    arguments: BTreeMap<String, Texts>,
    raw_input: Option<bool>,
    command: Option<CommandTable>,
    writes: Option<Texts>,
    line: Option<String>,
    /// Lines that it is about.
    #[serde(default, rename = "match")]
    examples: Texts,
    /// Lines that it is not about.
    #[serde(default, rename = "not_match")]
    counterexamples: Texts,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandTable {
    program: Texts,
    flags: Option<Texts>,
    #[serde(default)]
    without_flags: Texts,
    subcommand: Option<Texts>,
    operands: Option<Texts>,
}

/// One text or several.
#[derive(Clone, Debug, Default)]
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;

        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Texts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Texts)
            }
        }

        deserializer.deserialize_any(OneOrMore)
    }
}

/// Adds what a policy file says to the rules, and returns its problems. With problems, the rules are not to be used.
///
/// Rules name `tools` and their arguments.
pub fn read(text: &str, path: &Path, tools: ToolNames, rules: &mut PolicyRules) -> Vec<Problem> {
    let file: PolicyFile = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let fault = Fault::Syntax(error.message().replace('\n', " "));
            return vec![problem(text, path, at, None, fault)];
        }
    };
    let mut problems = Vec::new();
    let client_may_approve = file.client_may_approve == Some(true);
    match file.default.map(RuleEffect::from) {
        Some(default) if default > rules.default => {
            (rules.default, rules.client_may_approve) = (default, client_may_approve);
        }
        Some(default) if default == rules.default => rules.client_may_approve &= client_may_approve,
        Some(_) | None => {}
    }
    if file.client_may_approve.is_some() && !matches!(file.default, Some(EffectWord::Ask)) {
        let fault = Fault::Rule("only for `default = \"ask\"` or in a rule that asks".to_owned());
        problems.push(problem(text, path, 0, Some("client_may_approve".to_owned()), fault));
    }
    rules.unknown = rules.unknown.max(file.unknown.map(RuleEffect::from));
    let mut names: BTreeSet<Arc<str>> =
        rules.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
    let asking: BTreeSet<String> = file
        .rule
        .iter()
        .filter(|table| matches!(table.as_ref().effect, EffectWord::Ask))
        .map(|table| table.as_ref().name.clone())
        .collect();
    let tools = if file.rule.is_empty() { Vec::new() } else { (tools.0)() };
    for table in file.rule {
        let at = table.span().start;
        let table = table.into_inner();
        let name = table.name.clone();
        let mut complain = |fault: Fault| {
            problems.push(problem(text, path, at, Some(format!("rule {name}")), fault));
        };
        if !names.insert(Arc::from(name.as_str())) {
            complain(Fault::Rule("another rule has this name".to_owned()));
        }
        // A file of a user takes nothing back from the system's.
        for other in table.overrides.0.iter().filter(|other| !asking.contains(*other)) {
            complain(Fault::Rule(format!("overrides: no rule of this file asks as `{other}`")));
        }
        match table.rule(&tools) {
            Ok(rule) => rules.rules.push(rule),
            Err(wrong) => wrong.into_iter().for_each(|wrong| complain(Fault::Rule(wrong))),
        }
    }
    if rules.rules.len() > RULES_MAX {
        let fault = Fault::Rule(format!("more than {RULES_MAX} rules"));
        problems.push(problem(text, path, 0, None, fault));
    }
    problems
}

fn problem(text: &str, path: &Path, at: usize, key: Option<String>, fault: Fault) -> Problem {
    let at = Some(FilePosition::of(text, at));
    Problem { origin: ValueOrigin::File { path: path.to_owned(), at }, key, fault }
}

impl RuleTable {
    /// What is wrong but for the conditions.
    fn misplaced(&self, effect: RuleEffect) -> Vec<String> {
        let mut wrong = Vec::new();
        if !is_plain(&self.name) {
            wrong.push(format!("a name has up to {NAME_MAX} letters, digits, `-`, `_` and `.`"));
        }
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_MAX) {
            wrong.push(format!("the reason has more than {REASON_MAX} characters"));
        }
        if !self.overrides.0.is_empty() && effect != RuleEffect::Allow {
            wrong.push("overrides: only a rule that allows has it".to_owned());
        }
        if self.unknown.is_some() && effect == RuleEffect::Allow {
            wrong.push("unknown: a rule that allows matches only what is known".to_owned());
        }
        if self.client_may_approve.is_some() && effect != RuleEffect::Ask {
            wrong.push("client_may_approve: only a rule that asks has it".to_owned());
        }
        wrong
    }

    /// The rule, or all that is wrong with it.
    fn rule(self, tools: &[KnownTool]) -> Result<Rule, Vec<String>> {
        let effect = RuleEffect::from(self.effect);
        let mut wrong = self.misplaced(effect);
        let mut compile = |name: &str, texts: Option<Texts>| {
            let patterns = Patterns::new(texts?.0);
            patterns.map_err(|problem| wrong.push(format!("{name}: {problem}"))).ok()
        };
        let given = [
            (Fact::Client, self.client),
            (Fact::Token, self.token),
            (Fact::Tenant, self.tenant),
            (Fact::Role, self.role),
            (Fact::Door, self.door),
            (Fact::Tool, self.tool),
            (Fact::Mount, self.mount),
            (Fact::Session, self.session),
            (Fact::Tags, self.tags),
            (Fact::Directory, self.directory),
            (Fact::Terminal, self.terminal),
            (Fact::Foreground, self.foreground),
        ];
        let facts: BTreeMap<Fact, Patterns> = given
            .into_iter()
            .filter_map(|(fact, texts)| Some((fact, compile(fact.as_str(), texts)?)))
            .collect();
        let arguments = self.arguments.into_iter();
        let arguments = arguments
            .filter_map(|(name, texts)| {
                let patterns = compile(&format!("arguments.{name}"), Some(texts))?;
                Some((name, patterns))
            })
            .collect();
        let command = self.command.and_then(|command| {
            let program = compile("command.program", Some(command.program));
            let subcommand = compile("command.subcommand", command.subcommand);
            let operands = compile("command.operands", command.operands);
            let flags = command.flags.map(|flags| flags.0);
            let pattern = CommandPattern::new(program?, flags, subcommand, operands);
            Some(pattern.without_flags(command.without_flags.0))
        });
        let writes = compile("writes", self.writes);
        let raw_input = self.raw_input;
        let (name, reason) = (self.name.into(), self.reason.map(Arc::from));
        let client_may_approve = self.client_may_approve == Some(true);
        let overrides = self.overrides.0.into_iter().map(Arc::from).collect();
        let rule = Rule {
            name,
            effect,
            unknown: self.unknown.map(RuleEffect::from),
            reason,
            client_may_approve,
            overrides,
            facts,
            arguments,
            raw_input,
            command,
            writes,
            line: self.line.map(Arc::from),
        };
        wrong.extend(contradictions(&rule));
        wrong.extend(unknown_names(&rule, tools));
        if wrong.is_empty() {
            wrong.extend(wrong_examples(&rule, &self.examples.0, &self.counterexamples.0));
        }
        if wrong.is_empty() { Ok(rule) } else { Err(wrong) }
    }
}

fn is_plain(name: &str) -> bool {
    let fine = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(fine)
}

/// Conditions that can never hold, and those on which nothing may rely.
fn contradictions(rule: &Rule) -> Vec<String> {
    let mut wrong = Vec::new();
    for (fact, patterns) in &rule.facts {
        if rule.effect == RuleEffect::Allow && fact.is_chosen() {
            let fact = fact.as_str();
            wrong.push(format!("{fact}: callers choose it, so nothing can be allowed by it"));
        }
        for text in patterns.texts() {
            let Some(words) = fact.words() else { continue };
            let pattern = Patterns::new(vec![text.clone()]);
            if !pattern.is_ok_and(|pattern| words.iter().any(|word| pattern.matches(word))) {
                let near = nearest_of(text, words.iter().copied(), 1).first().copied();
                let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                wrong.push(format!("{}: nothing is called `{text}`{near}", fact.as_str()));
            }
        }
    }
    if rule.raw_input == Some(true) && (rule.command.is_some() || rule.writes.is_some()) {
        wrong.push("raw_input: such input has no command line for command or writes".to_owned());
    }
    let leaves_out = rule.command.as_ref().is_some_and(CommandPattern::leaves_out);
    if leaves_out && rule.effect == RuleEffect::Allow {
        wrong
            .push("command.without_flags: a rule that allows names the flags it allows".to_owned());
    }
    if let Some(line) = &rule.line
        && !ParsedCommandLine::parse(line).is_known()
    {
        wrong.push("line: not all that it runs is known, so it never matches".to_owned());
    }
    wrong
}

/// The examples with which the rule does not agree.
fn wrong_examples(rule: &Rule, examples: &[String], counterexamples: &[String]) -> Vec<String> {
    let is_about_lines = rule.command.is_some() || rule.writes.is_some();
    if !is_about_lines && examples.len() + counterexamples.len() > 0 {
        return vec!["match and not_match need command or writes".to_owned()];
    }
    let matching = |line: &String| rule.matches_line(&ParsedCommandLine::parse(line));
    let missed = examples.iter().filter(|line| matching(line) != Matching::Yes);
    let missed = missed.map(|line| format!("match: it does not match `{line}`"));
    let hit = counterexamples.iter().filter_map(|line| match matching(line) {
        Matching::No => None,
        Matching::Maybe => Some(format!("not_match: it may match `{line}`")),
        Matching::Yes => Some(format!("not_match: it matches `{line}`")),
    });
    missed.chain(hit).collect()
}

#[cfg(test)]
mod tests;
