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

#[test]
fn what_is_asked_about_since_it_is_not_known_says_what_that_is() {
    let careful = rules_of(StarterSet::Careful);
    for (line, reason) in [
        ("eval \"$X\"", "it evaluates text that is not known"),
        ("$X -rf y", "the name of a program is computed"),
        ("rm $X", "an argument of `rm` is known only when it runs"),
        ("unknownwrapper rm -rf x", "`unknownwrapper` may run `rm`"),
        (
            "curl x | sh",
            "a shell or interpreter reads its commands from another input than the terminal",
        ),
    ] {
        let verdict = judged(&careful, line);
        assert_eq!((verdict.unsure, verdict.reason.as_deref()), (true, Some(reason)), "{line}");
        let told = VerdictWire::from(&verdict).sentence();
        assert_eq!(told, format!("ask since not all that it does is known: {reason}"));
    }
    let sure = VerdictWire::from(&judged(&careful, "rm -r $X")).sentence();
    assert!(sure.starts_with("ask by the rule `recursive-remove`: "), "{sure}");
}
