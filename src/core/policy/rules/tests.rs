//! Rules judge by what is known, and nothing is allowed by what is not.

use super::*;
use crate::core::policy::roles::Roles;
use crate::core::policy::rules::facts::SessionFacts;
use crate::core::shell::activity::ActivityState;

fn patterns(texts: &[&str]) -> Patterns {
    Patterns::new(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap()
}

fn rule(name: &str, effect: RuleEffect) -> Rule {
    Rule {
        name: name.into(),
        effect,
        reason: None,
        unknown: None,
        client_may_approve: false,
        overrides: Vec::new(),
        facts: BTreeMap::new(),
        arguments: BTreeMap::new(),
        raw_input: None,
        command: None,
        writes: None,
        line: None,
    }
}

fn command(program: &str, flags: Option<&[&str]>, operands: Option<&[&str]>) -> CommandPattern {
    let flags = flags.map(|flags| flags.iter().map(|flag| (*flag).to_owned()).collect());
    CommandPattern::new(patterns(&[program]), flags, None, operands.map(patterns))
}

fn about(name: &str, effect: RuleEffect, command: CommandPattern) -> Rule {
    Rule { command: Some(command), ..rule(name, effect) }
}

fn rules(rules: Vec<Rule>) -> PolicyRules {
    PolicyRules { rules, ..PolicyRules::default() }
}

fn in_directory(directory: Option<&str>) -> SessionFacts {
    let directory = directory.map(str::to_owned);
    SessionFacts { directory, terminal: ActivityState::Prompt, ..SessionFacts::default() }
}

/// The verdict on a line at a prompt in `/srv`.
fn judged(rules: &PolicyRules, line: &str) -> (RuleEffect, bool) {
    let line = ParsedCommandLine::parse(line);
    let session = Some(in_directory(Some("/srv")));
    let verdict =
        rules.judge(&CallFacts { session, tool: "run", line: Some(&line), ..CallFacts::default() });
    (verdict.effect, verdict.unsure)
}

const SURE: bool = false;
const UNSURE: bool = true;

#[test]
fn one_spelling_of_flags_denies_all_of_them_wherever_they_are() {
    let denied =
        rules(vec![about("rm", RuleEffect::Deny, command("rm", Some(&["-r", "force"]), None))]);
    for line in [
        "rm -rf x",
        "rm -fr x",
        "rm -r -f x",
        "rm --recursive --force x",
        "rm --rec --forc x",
        "r''m -R\"f\" x",
        "sudo rm -rf x",
        "true && /bin/rm x -rf",
        "sh -c 'rm -rf x'",
        "find . -exec rm -rf {} +",
        "echo $(rm -rf x)",
        "xargs rm -rf",
    ] {
        assert_eq!(judged(&denied, line), (RuleEffect::Deny, SURE), "{line}");
    }
    for line in ["rm -r x", "rm -f x", "ls -rf", "echo rm -rf x", "rm -- -rf"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Allow, SURE), "{line}");
    }
}

#[test]
fn a_flag_has_the_name_that_each_program_of_a_rule_has_for_it() {
    let programs = ["rm", "tar", "g*"];
    let flags = Some(vec!["--force".to_owned()]);
    let pattern = CommandPattern::new(patterns(&programs), flags, None, None);
    let denied = rules(vec![about("force", RuleEffect::Deny, pattern.clone())]);
    for line in ["rm -f x", "rm --force x", "tar --force x", "git push -f"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Deny, SURE), "{line}");
    }
    let allowed = rules(vec![about("force", RuleEffect::Allow, pattern)]);
    let allowed = PolicyRules { default: RuleEffect::Ask, ..allowed };
    assert_eq!(judged(&allowed, "rm -f x").0, RuleEffect::Allow);
    assert_eq!(judged(&allowed, "tar -f x").0, RuleEffect::Ask, "that is a file");
}

#[test]
fn a_rule_leaves_programs_out_that_have_one_of_some_flags() {
    let without = ["--delete", "-q"].map(str::to_owned).to_vec();
    let pattern = command("git", None, None).without_flags(without);
    let asked = rules(vec![about("git", RuleEffect::Ask, pattern)]);
    for line in ["git y -d x", "git x --delete", "git y -qx", "git y $X -d", "ls"] {
        assert_eq!(judged(&asked, line), (RuleEffect::Allow, SURE), "{line}");
    }
    for line in ["git", "git y -x", "git y -- -d", "git d"] {
        assert_eq!(judged(&asked, line), (RuleEffect::Ask, SURE), "{line}");
    }
}

#[test]
fn a_subcommand_is_the_first_operand_unless_an_option_may_have_a_value_before_it() {
    let pattern = CommandPattern::new(patterns(&["git"]), None, Some(patterns(&["clean"])), None);
    let denied = rules(vec![about("clean", RuleEffect::Deny, pattern)]);
    for line in ["git clean -fd", "git -C x clean"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Deny, SURE), "{line}");
    }
    for line in ["git add clean", "git commit -m clean", "git status"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Allow, SURE), "{line}");
    }
    assert_eq!(judged(&denied, "git $X"), (RuleEffect::Ask, UNSURE));
}

#[test]
fn what_may_be_denied_is_asked_about_or_what_the_operator_wants() {
    let of = |unknown| PolicyRules {
        unknown: Some(unknown),
        ..rules(vec![about("rm", RuleEffect::Deny, command("rm", Some(&["r"]), None))])
    };
    for line in ["rm $X", "$X -r y", "eval \"$X\"", ". <(x)", "rm -f *", "foo <<("] {
        assert_eq!(judged(&of(RuleEffect::Ask), line), (RuleEffect::Ask, UNSURE), "{line}");
        assert_eq!(judged(&of(RuleEffect::Deny), line), (RuleEffect::Deny, UNSURE), "{line}");
        assert_eq!(judged(&of(RuleEffect::Allow), line), (RuleEffect::Allow, SURE), "{line}");
    }
    // Whatever these are, the program is none that is denied.
    for line in ["ls $X", "echo *"] {
        assert_eq!(judged(&of(RuleEffect::Deny), line), (RuleEffect::Allow, SURE), "{line}");
    }
    let asks = about("rm", RuleEffect::Ask, command("rm", Some(&["r"]), None));
    let asks = PolicyRules { unknown: Some(RuleEffect::Deny), ..rules(vec![asks]) };
    let judged = judged(&asks, "rm $X");
    assert_eq!(judged, (RuleEffect::Ask, UNSURE), "no more than the rule itself would do");
}

#[test]
fn nothing_is_allowed_but_what_is_known_whole() {
    let git = Rule {
        command: Some(CommandPattern::new(
            patterns(&["git"]),
            Some(vec!["short".into()]),
            Some(patterns(&["status", "diff"])),
            None,
        )),
        ..rule("git", RuleEffect::Allow)
    };
    let echo = about("echo", RuleEffect::Allow, command("echo", None, None));
    let allowed = PolicyRules { default: RuleEffect::Ask, ..rules(vec![git, echo]) };
    for line in ["git status", "git status --short a b", "git diff && echo done", "echo a | echo"] {
        assert_eq!(judged(&allowed, line), (RuleEffect::Allow, SURE), "{line}");
    }
    for line in [
        "git push",
        "git",
        "git status --long",
        "git -C status push",
        "git -c core.pager=x status",
        "git status; rm x",
        "git status $X",
        "./git status",
        "/tmp/git status",
        "PATH=. git status",
        "git status > x",
        "sudo git status",
        "echo $(rm x)",
        "echo `git push`",
        "git status & $X",
    ] {
        assert_eq!(judged(&allowed, line), (RuleEffect::Ask, SURE), "{line}");
    }
}

#[test]
fn no_rule_allows_what_another_program_tells_a_shell() {
    let programs = ["bash", "cat", "echo", "env", "find", "sh", "ssh", "tee", "timeout", "xargs"];
    let program = CommandPattern::new(patterns(&programs), None, None, None);
    let deny = about("rm", RuleEffect::Deny, command("rm", None, None));
    let all = PolicyRules {
        default: RuleEffect::Ask,
        ..rules(vec![about("some", RuleEffect::Allow, program), deny])
    };
    for line in ["echo x | tee y", "sh -c 'echo x'", "ssh host", "ssh host echo x", "bash"] {
        assert_eq!(judged(&all, line), (RuleEffect::Allow, SURE), "{line}");
    }
    for line in [
        "echo 'rm x' | sh",
        "echo 'rm x' | xargs -I% sh -c %",
        "echo 'rm x' | xargs sh -c",
        "echo 'rm x' | xargs env",
        "echo 'rm x' | xargs timeout",
        "echo 'rm x' > >(sh)",
        "echo 'rm x' | tee >(bash)",
        "echo 'rm x' | ssh host",
        "ssh host < x",
        "ssh host <<X\nrm x\nX",
        "ssh host bash -s < x",
        "xargs find x",
    ] {
        assert_eq!(judged(&all, line), (RuleEffect::Ask, UNSURE), "{line}");
    }
}

#[test]
fn operands_that_are_denied_are_any_and_those_that_are_allowed_are_all() {
    let patterns: &[&str] = &["/etc/**", "build"];
    let denied = rules(vec![about("rm", RuleEffect::Deny, command("rm", None, Some(patterns)))]);
    assert_eq!(judged(&denied, "rm a /etc/x/y").0, RuleEffect::Deny);
    assert_eq!(judged(&denied, "rm a").0, RuleEffect::Allow);
    assert_eq!(judged(&denied, "rm a $X"), (RuleEffect::Ask, UNSURE));
    let allowed = rules(vec![about("rm", RuleEffect::Allow, command("rm", None, Some(patterns)))]);
    let allowed = PolicyRules { default: RuleEffect::Deny, ..allowed };
    assert_eq!(judged(&allowed, "rm build /etc").0, RuleEffect::Allow);
    assert_eq!(judged(&allowed, "rm build other").0, RuleEffect::Deny);
}

#[test]
fn a_value_in_the_word_of_its_flag_is_an_operand() {
    let pattern = || command("tool", None, Some(&["x*"]));
    let ask = rules(vec![about("ask", RuleEffect::Ask, pattern())]);
    for line in ["tool --to=xy", "tool -txy", "tool --to=\"$Y\""] {
        assert_eq!(judged(&ask, line).0, RuleEffect::Ask, "{line}");
    }
    assert_eq!(judged(&ask, "tool --to=y -ty").0, RuleEffect::Allow);
    let allow = about("allow", RuleEffect::Allow, pattern());
    let allow = PolicyRules { default: RuleEffect::Deny, ..rules(vec![allow]) };
    assert_eq!(judged(&allow, "tool --to=xy x").0, RuleEffect::Allow);
    for line in ["tool --to=/etc/x x", "tool --to= x"] {
        assert_eq!(judged(&allow, line).0, RuleEffect::Deny, "{line}");
    }
}

#[test]
fn files_that_redirections_write_are_judged_by_their_whole_path() {
    let writes = |effect| Rule { writes: Some(patterns(&["/srv/**"])), ..rule("writes", effect) };
    let denied = rules(vec![writes(RuleEffect::Deny)]);
    for line in [
        "echo > x",
        "echo >> /srv/x",
        "echo &> a/../x",
        "cat < y > /srv",
        "cd / && cd srv && echo > x",
        "cp x y",
        "cp -t /srv /tmp/x",
        "sed -i 1d x",
        "dd of=x if=/tmp/x",
    ] {
        assert_eq!(judged(&denied, line), (RuleEffect::Deny, SURE), "{line}");
    }
    for line in ["echo > /tmp/x", "echo > ../x", "cat < x", "cp x /tmp", "echo 2>/dev/null"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Allow, SURE), "{line}");
    }
    for line in ["cd $Y; echo > x", "echo > $X", "cp x $Y"] {
        assert_eq!(judged(&denied, line), (RuleEffect::Ask, UNSURE), "{line}");
    }
    let echo = about("echo", RuleEffect::Allow, command("echo", None, None));
    let allowed =
        PolicyRules { default: RuleEffect::Ask, ..rules(vec![writes(RuleEffect::Allow), echo]) };
    assert_eq!(judged(&allowed, "echo > x").0, RuleEffect::Allow);
    assert_eq!(judged(&allowed, "echo > /tmp/x").0, RuleEffect::Ask);
    assert_eq!(judged(&allowed, "cat > x").0, RuleEffect::Ask);
}

#[test]
fn the_strictest_rule_wins_whatever_their_order() {
    let deny = rule("deny", RuleEffect::Deny);
    let ask = rule("ask", RuleEffect::Ask);
    let allow = rule("allow", RuleEffect::Allow);
    for order in [[&deny, &ask, &allow], [&allow, &ask, &deny], [&ask, &deny, &allow]] {
        let all = rules(order.map(Clone::clone).to_vec());
        let verdict = all.judge(&CallFacts::default());
        assert_eq!((verdict.effect, verdict.rule.as_deref()), (RuleEffect::Deny, Some("deny")));
    }
    let verdict = rules(vec![allow, ask]).judge(&CallFacts::default());
    assert_eq!(verdict.rule.as_deref(), Some("ask"));
}

#[test]
fn what_a_rule_may_deny_is_told_whichever_rule_decides() {
    let deny = about("deny", RuleEffect::Deny, command("rm", None, None));
    let ask = rule("ask", RuleEffect::Ask);
    let all = rules(vec![deny, ask]);
    for (line, may_be_denied) in [("$X", true), ("ls", false)] {
        let line = ParsedCommandLine::parse(line);
        let verdict = all.judge(&CallFacts { line: Some(&line), ..CallFacts::default() });
        assert_eq!((verdict.effect, verdict.unsure), (RuleEffect::Ask, false), "{line:?}");
        assert_eq!(verdict.may_be_denied(), may_be_denied, "{line:?}");
    }
}

#[test]
fn a_rule_matches_where_each_of_its_conditions_holds() {
    let conditions = [(Fact::Tool, patterns(&["send_*"])), (Fact::Tags, patterns(&["prod"]))];
    let both = Rule { facts: conditions.into(), ..rule("both", RuleEffect::Deny) };
    let tagged = |tags: &[&str]| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Some(SessionFacts { tags, ..SessionFacts::default() })
    };
    let rules = rules(vec![both]);
    let judge = |tool, session| {
        let verdict = rules.judge(&CallFacts { tool, session, ..CallFacts::default() });
        (verdict.effect, verdict.trace[0].condition.as_ref().map(ToString::to_string))
    };
    assert_eq!(judge("send_text", tagged(&["a", "prod"])), (RuleEffect::Deny, None));
    assert_eq!(judge("send_text", tagged(&["a"])), (RuleEffect::Allow, Some("tags".into())));
    assert_eq!(judge("send_text", None), (RuleEffect::Allow, Some("tags".into())));
    assert_eq!(judge("run", tagged(&["prod"])), (RuleEffect::Allow, Some("tool".into())));
}

#[test]
fn a_rule_may_be_for_whoever_has_a_role() {
    let operators = [(Fact::Role, patterns(&["operate"]))];
    let operators = Rule { facts: operators.into(), ..rule("operators", RuleEffect::Allow) };
    let rules = PolicyRules { default: RuleEffect::Ask, ..rules(vec![operators]) };
    let judge = |roles| rules.judge(&CallFacts { roles, ..CallFacts::default() }).effect;
    assert_eq!(judge(Roles::ALL), RuleEffect::Allow);
    assert_eq!(judge(Roles::MEMBER), RuleEffect::Ask);
}

#[test]
fn a_fact_that_is_not_known_may_match_and_allows_nothing() {
    let place = |effect| Rule {
        facts: [(Fact::Directory, patterns(&["/srv/**"]))].into(),
        ..rule("place", effect)
    };
    let judge = |rules: &PolicyRules, directory| {
        let session = Some(in_directory(directory));
        rules.judge(&CallFacts { session, ..CallFacts::default() }).effect
    };
    let denied = rules(vec![place(RuleEffect::Deny)]);
    let places = [Some("/srv/x"), Some("/home"), None];
    let effects = places.map(|place| judge(&denied, place));
    assert_eq!(effects, [RuleEffect::Deny, RuleEffect::Allow, RuleEffect::Ask]);
    let allowed =
        PolicyRules { default: RuleEffect::Deny, ..rules(vec![place(RuleEffect::Allow)]) };
    let effects = places.map(|place| judge(&allowed, place));
    assert_eq!(effects, [RuleEffect::Allow, RuleEffect::Deny, RuleEffect::Deny]);
}

#[test]
fn typed_input_that_is_no_line_is_judged_by_rules_about_raw_input_alone() {
    let rm = about("rm", RuleEffect::Deny, command("rm", None, None));
    let raw = Rule { raw_input: Some(true), ..rule("raw", RuleEffect::Ask) };
    let judge = |rules: &PolicyRules, raw_input| {
        rules.judge(&CallFacts { raw_input, ..CallFacts::default() }).effect
    };
    let only_commands = rules(vec![rm.clone()]);
    assert_eq!(judge(&only_commands, true), RuleEffect::Allow);
    let with_raw = rules(vec![rm, raw]);
    assert_eq!(judge(&with_raw, true), RuleEffect::Ask);
    assert_eq!(judge(&with_raw, false), RuleEffect::Allow);
}

#[test]
fn arguments_match_by_name_and_a_missing_one_does_not() {
    let kill = [("action".to_owned(), patterns(&["kill", "sig*"]))].into();
    let rules = rules(vec![Rule { arguments: kill, ..rule("kill", RuleEffect::Deny) }]);
    let judge = |arguments: &[(&str, &str)]| {
        let arguments = arguments.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        rules.judge(&CallFacts { arguments: arguments.collect(), ..CallFacts::default() }).effect
    };
    assert_eq!(judge(&[("action", "signal")]), RuleEffect::Deny);
    assert_eq!(judge(&[("action", "rename")]), RuleEffect::Allow);
    assert_eq!(judge(&[]), RuleEffect::Allow);
}

#[test]
fn a_rule_tells_which_lines_it_is_about() {
    let denies = about("rm", RuleEffect::Deny, command("rm", Some(&["r"]), None));
    let allows = about("ls", RuleEffect::Allow, command("ls", None, None));
    let matches = |rule: &Rule, line| rule.matches_line(&ParsedCommandLine::parse(line));
    assert_eq!(matches(&denies, "rm -r x"), Matching::Yes);
    assert_eq!(matches(&denies, "rm $X"), Matching::Maybe);
    assert_eq!(matches(&denies, "rm x"), Matching::No);
    assert_eq!(matches(&allows, "ls -l x"), Matching::Yes);
    assert_eq!(matches(&allows, "ls; rm x"), Matching::No);
    assert_eq!(matches(&allows, "ls $X"), Matching::No);
}

#[test]
fn a_rule_that_allows_overrides_what_asks_only_where_it_allows_the_whole_call() {
    let ask = about("ask-rm", RuleEffect::Ask, command("rm", None, None));
    let deny = about("deny-dd", RuleEffect::Deny, command("dd", None, None));
    let allow = Rule {
        overrides: vec!["ask-rm".into(), "deny-dd".into()],
        ..about("allow", RuleEffect::Allow, command("rm", Some(&["r"]), Some(&["build"])))
    };
    let all = rules(vec![ask, deny, allow]);
    let effect = |line: &str| {
        let line = ParsedCommandLine::parse(line);
        all.judge(&CallFacts { line: Some(&line), ..CallFacts::default() }).effect
    };
    assert_eq!(effect("rm -r build"), RuleEffect::Allow);
    for other in [
        "cd /; rm -r build",
        "sudo rm -r build",
        "rm -r build > x",
        "rm -r build; rm x",
        "rm -r $X",
        "A=1 rm -r build",
    ] {
        assert_eq!(effect(other), RuleEffect::Ask, "{other}");
    }
    assert_eq!(effect("rm -r build; dd"), RuleEffect::Deny);
}

#[test]
fn a_line_without_programs_is_asked_about_as_any_other() {
    let facts = [(Fact::Tool, patterns(&["send_*"]))].into();
    let all = rules(vec![Rule { facts, ..rule("typed", RuleEffect::Ask) }]);
    for line in ["", "ls"] {
        let line = ParsedCommandLine::parse(line);
        let call = CallFacts { tool: "send_text", line: Some(&line), ..CallFacts::default() };
        assert_eq!(all.judge(&call).effect, RuleEffect::Ask, "{:?}", call.line);
    }
}

#[test]
fn the_clients_person_approves_only_where_all_that_asks_says_so() {
    let touch = Rule {
        client_may_approve: true,
        ..about("touch", RuleEffect::Ask, command("touch", None, None))
    };
    let mkdir = about("mkdir", RuleEffect::Ask, command("mkdir", None, None));
    let ls = about("ls", RuleEffect::Allow, command("ls", None, None));
    let may = |default: RuleEffect, of_default: bool, line: &str| {
        let all = PolicyRules {
            default,
            client_may_approve: of_default,
            ..rules(vec![touch.clone(), mkdir.clone(), ls.clone()])
        };
        let line = ParsedCommandLine::parse(line);
        all.judge(&CallFacts { line: Some(&line), ..CallFacts::default() }).client_may_approve
    };
    assert!(may(RuleEffect::Allow, false, "touch x; rm y"));
    assert!(!may(RuleEffect::Allow, false, "touch x; mkdir y"));
    // What is left to the default is not the person's to approve, unless the default says so.
    assert!(!may(RuleEffect::Ask, false, "touch x; rm y"));
    assert!(may(RuleEffect::Ask, true, "touch x; rm y"));
    assert!(!may(RuleEffect::Ask, true, "touch x; mkdir y"));
}
