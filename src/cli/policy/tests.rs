//! What the sets of rules to begin with say about lines.

mod bypasses;
mod everyday;

use super::*;
use crate::config::policy;
use crate::config::problem::ConfigError;
use crate::core::policy::rules::{PolicyRules, RuleEffect, RuleVerdict};

pub(super) fn rules_of(set: StarterSet) -> PolicyRules {
    let mut rules = PolicyRules::default();
    let problems = policy::read(set.text(), Path::new("policy.toml"), TOOL_NAMES, &mut rules);
    assert!(problems.is_empty(), "{set:?}: {}", ConfigError(problems));
    rules
}

/// The verdict on a line that an agent runs at a prompt in `/home/ada/project`.
fn judged(rules: &PolicyRules, line: &str) -> RuleVerdict {
    let parsed = ParsedCommandLine::parse(line);
    rules.judge(&facts(&parsed, Path::new("/home/ada/project")))
}

fn effect(rules: &PolicyRules, line: &str) -> RuleEffect {
    judged(rules, line).effect
}

#[test]
fn each_starter_set_is_a_policy_whose_rules_agree_with_their_examples() {
    for set in StarterSet::value_variants() {
        assert!(!rules_of(*set).rules.is_empty());
    }
}
