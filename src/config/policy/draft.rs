//! Writes down the rules by which a call passes for good that was approved.

use std::collections::BTreeSet;
use std::sync::Arc;

use toml::Value;

use crate::core::command_line::{ParsedCommandLine, ProgramCall};
use crate::core::policy::approvals::KnownCommand;

/// The signs that have a meaning in a pattern.
const PATTERN_SIGNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Why no rule can be written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDrafted {
    #[error("`{0}` has signs of a pattern")]
    Pattern(String),
    #[error("its directory is not known")]
    NoDirectory,
}

/// Rules as they stand in a policy file: each allows one program of the line with its flags and operands, in the
/// directory, for callers of the tenant and with the token. `id` makes their names, and they override `overrides`.
///
/// # Errors
/// A word would be read as a pattern, or the directory is not known.
pub fn draft(
    id: &str,
    overrides: &[Arc<str>],
    command: &KnownCommand,
    directory: Option<&str>,
) -> Result<String, NotDrafted> {
    let directory = plain(directory.ok_or(NotDrafted::NoDirectory)?)?;
    let line = ParsedCommandLine::parse(&command.line);
    let programs = line.calls.iter().map(program).collect::<Result<BTreeSet<String>, _>>()?;
    let is_alone = programs.len() == 1;
    let mut text = String::new();
    for (number, program) in programs.iter().enumerate() {
        let number = if number == 0 { String::new() } else { format!("-{}", number + 1) };
        text += &format!("\n[[rule]]\nname = \"approved-{id}{number}\"\neffect = \"allow\"\n");
        if !overrides.is_empty() {
            text += &format!("overrides = {}\n", list(overrides.iter().map(|name| &**name)));
        }
        text += &format!("tenant = {}\n", quoted(&plain(command.tenant.as_str())?));
        if let Some(token) = &command.token {
            text += &format!("token = {}\n", quoted(&plain(token)?));
        }
        text += &format!("directory = {}\ncommand = {program}\n", quoted(&directory));
        if is_alone {
            text += &format!("match = {}\n", quoted(&command.line));
        }
    }
    Ok(text)
}

/// The program of a call, as a rule allows it alone.
fn program(call: &ProgramCall) -> Result<String, NotDrafted> {
    let name = plain(call.path.as_deref().or(call.name.as_deref()).unwrap_or_default())?;
    let operands = call.operands.iter().flatten().map(|it| plain(it));
    let operands = operands.collect::<Result<Vec<String>, _>>()?;
    let (name, flags) = (quoted(&name), list(call.flags.iter().map(String::as_str)));
    let operands = list(operands.iter().map(String::as_str));
    Ok(format!("{{ program = {name}, flags = {flags}, operands = {operands} }}"))
}

/// A text that stands for itself in a pattern.
fn plain(text: &str) -> Result<String, NotDrafted> {
    if text.contains(PATTERN_SIGNS) {
        return Err(NotDrafted::Pattern(text.to_owned()));
    }
    Ok(text.to_owned())
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    Value::Array(texts.map(Value::from).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::policy::read;
    use crate::core::ids::TenantId;
    use crate::core::policy::rules::facts::{CallFacts, SessionFacts};
    use crate::core::policy::rules::{PolicyRules, RuleEffect};

    const ASK: &str = r#"
        [[rule]]
        name = "ask-rm"
        effect = "ask"
        command = { program = "rm" }
    "#;

    fn command(line: &str) -> KnownCommand {
        KnownCommand { line: line.into(), tenant: TenantId::of_uid(7), token: None }
    }

    /// What the rules say of a line once this one was approved for good.
    fn judged(approved: &str, line: &str, directory: &str) -> RuleEffect {
        let overrides = [Arc::from("ask-rm")];
        let drafted = draft("1f3a2b4c", &overrides, &command(approved), Some("/work")).unwrap();
        let mut rules = PolicyRules::default();
        let problems = read(&format!("{ASK}{drafted}"), Path::new("policy.toml"), &mut rules);
        assert!(problems.is_empty(), "{drafted}: {problems:?}");
        let line = ParsedCommandLine::parse(line);
        let session =
            SessionFacts { directory: Some(directory.to_owned()), ..SessionFacts::default() };
        let facts = CallFacts {
            tenant: "uid:7",
            session: Some(session),
            line: Some(&line),
            ..CallFacts::default()
        };
        rules.judge(&facts).effect
    }

    #[test]
    fn what_was_approved_for_good_passes_and_nothing_else() {
        let approved = "rm -fr build/ 'a \"b\"'";
        for line in [approved, "rm -r -f build/", "cd x; rm -r build/", "rm"] {
            assert_eq!(judged(approved, line, "/work"), RuleEffect::Allow, "{line}");
        }
        for line in
            ["rm -fr build", "rm -frv build/", "rm build/ c", "rm -f $x", "rm -r build/; rm x"]
        {
            assert_eq!(judged(approved, line, "/work"), RuleEffect::Ask, "{line}");
        }
        assert_eq!(judged(approved, approved, "/"), RuleEffect::Ask);
        assert_eq!(judged("rm", "rm x", "/work"), RuleEffect::Ask);
        assert_eq!(judged("make && rm x", "rm x && make", "/work"), RuleEffect::Allow);
    }

    #[test]
    fn what_would_be_a_pattern_is_not_written_down() {
        let drafted = draft("1", &[], &command("rm 'a*'"), Some("/work"));
        assert_eq!(drafted, Err(NotDrafted::Pattern("a*".to_owned())));
        let drafted = draft("1", &[], &command("rm a"), Some("/a[b]"));
        assert_eq!(drafted, Err(NotDrafted::Pattern("/a[b]".to_owned())));
        assert_eq!(draft("1", &[], &command("rm a"), None), Err(NotDrafted::NoDirectory));
    }
}
