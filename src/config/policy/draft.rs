//! Writes down the rule by which a call passes for good that was approved.

use toml::Value;

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

/// A rule as it stands in a policy file: it allows this line, in the directory, for callers of the tenant, with the token
/// if the caller has one. `id` makes its name.
///
/// # Errors
/// A name would be read as a pattern, or the directory is not known.
pub fn draft(
    id: &str,
    command: &KnownCommand,
    directory: Option<&str>,
) -> Result<String, NotDrafted> {
    let mut text = format!("\n[[rule]]\nname = \"approved-{id}\"\neffect = \"allow\"\n");
    let asked_by = command.asked_by.iter().map(|name| Value::from(&**name));
    let overrides = Value::Array(asked_by.collect());
    if !command.asked_by.is_empty() {
        text += &format!("overrides = {overrides}\n");
    }
    text += &format!("tenant = {}\n", plain(command.tenant.as_str())?);
    if let Some(token) = &command.token {
        text += &format!("token = {}\n", plain(token)?);
    }
    let directory = plain(directory.ok_or(NotDrafted::NoDirectory)?)?;
    text += &format!("directory = {directory}\nline = {}\n", Value::from(&*command.line));
    Ok(text)
}

/// A text that stands for itself in a pattern.
fn plain(text: &str) -> Result<Value, NotDrafted> {
    if text.contains(PATTERN_SIGNS) {
        return Err(NotDrafted::Pattern(text.to_owned()));
    }
    Ok(Value::from(text))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::config::policy::read;
    use crate::core::command_line::ParsedCommandLine;
    use crate::core::ids::TenantId;
    use crate::core::policy::rules::facts::{CallFacts, SessionFacts};
    use crate::core::policy::rules::tools::{KnownTool, ToolNames};
    use crate::core::policy::rules::{PolicyRules, RuleEffect};

    const ASK: &str = r#"
        [[rule]]
        name = "ask-rm"
        effect = "ask"
        command = { program = "rm" }

        [[rule]]
        name = "ask-run"
        effect = "ask"
        tool = "run"
    "#;

    fn command(line: &str) -> KnownCommand {
        let asked_by = ["ask-rm", "ask-run"].map(Arc::from).into();
        KnownCommand { line: line.into(), tenant: TenantId::of_uid(7), token: None, asked_by }
    }

    /// What the rules say of a line of a tenant once this one was approved for good.
    fn judged(approved: &str, line: &str, (directory, tenant): (&str, &str)) -> RuleEffect {
        let drafted = draft("1f3a2b4c", &command(approved), Some("/work")).unwrap();
        let mut rules = PolicyRules::default();
        let tools = ToolNames(|| {
            vec![KnownTool { name: "run".into(), arguments: Default::default(), is_judged: true }]
        });
        let text = format!("{ASK}{drafted}");
        let problems = read(&text, Path::new("policy.toml"), tools, &mut rules);
        assert!(problems.is_empty(), "{drafted}: {problems:?}");
        let parsed = ParsedCommandLine::parse(line);
        let session =
            SessionFacts { directory: Some(directory.to_owned()), ..SessionFacts::default() };
        let facts = CallFacts {
            tenant,
            tool: "run",
            session: Some(session),
            line: Some(&parsed),
            text: Some(line),
            ..CallFacts::default()
        };
        rules.judge(&facts).effect
    }

    #[test]
    fn what_was_approved_for_good_passes_and_nothing_else() {
        const HERE: (&str, &str) = ("/work", "uid:7");
        for approved in ["rm -fr build/ 'a \"b\" $'", "cd x && rm y; cd .."] {
            assert_eq!(judged(approved, approved, HERE), RuleEffect::Allow, "{approved}");
            for (directory, tenant) in [("/", "uid:7"), ("/work", "uid:8")] {
                let elsewhere = judged(approved, approved, (directory, tenant));
                assert_eq!(elsewhere, RuleEffect::Ask);
            }
        }
        for other in [
            "rm -rf build/",
            "rm -fr  build/",
            "cd /; rm -fr build/",
            "sudo rm -fr build/",
            "rm -fr build/ > x",
            "rm -fr build/; echo x",
            "rm",
        ] {
            assert_eq!(judged("rm -fr build/", other, HERE), RuleEffect::Ask, "{other}");
        }
    }

    #[test]
    fn what_would_be_a_pattern_is_not_written_down() {
        let drafted = draft("1", &command("rm a"), Some("/a[b]"));
        assert_eq!(drafted, Err(NotDrafted::Pattern("/a[b]".to_owned())));
        assert_eq!(draft("1", &command("rm a"), None), Err(NotDrafted::NoDirectory));
    }
}
