//! The tools that there are, by which the names in rules are checked.

use std::fmt;

use std::sync::Arc;

use crate::core::nearest::nearest_of;
use crate::core::policy::rules::Rule;
use crate::core::policy::rules::facts::Fact;
use crate::core::policy::rules::patterns::Patterns;

/// What the names of tools of other servers have between the server and the tool.
const OF_SERVER: &str = "__";

/// A tool as rules name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    pub name: Arc<str>,
    pub arguments: Vec<String>,
    /// Whether rules judge its calls.
    pub is_judged: bool,
}

/// Lists all tools of the daemon's own. It is asked only where there are rules.
#[derive(Clone, Copy)]
pub struct ToolNames(pub fn() -> Vec<KnownTool>);

impl Default for ToolNames {
    /// No tools.
    fn default() -> Self {
        Self(Vec::new)
    }
}

impl fmt::Debug for ToolNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolNames")
    }
}

/// The names in a rule that nothing has: of tools, or of arguments of the tools that it is about.
///
/// The tools of other servers are not known here. So a name with `__` is taken, whatever its arguments are, and a pattern
/// that matches no tool.
pub fn unknown_names(rule: &Rule, tools: &[KnownTool]) -> Vec<String> {
    let patterns = rule.facts.get(&Fact::Tool);
    let texts = patterns.map_or(&[][..], Patterns::texts);
    let wrong: Vec<String> = texts.iter().filter_map(|text| wrong_tool(text, tools)).collect();
    if rule.facts.contains_key(&Fact::Mount) {
        return [wrong, never_of_mounts(rule)].concat();
    }
    if !wrong.is_empty() || texts.iter().any(|text| text.contains(OF_SERVER)) {
        return wrong;
    }
    let is_meant = |tool: &&KnownTool| {
        tool.is_judged && patterns.is_none_or(|patterns| patterns.matches(&tool.name))
    };
    let meant: Vec<&KnownTool> = tools.iter().filter(is_meant).collect();
    let all = || meant.iter().flat_map(|tool| &tool.arguments).map(String::as_str);
    let is_unknown = |name: &&String| !meant.is_empty() && !all().any(|it| it == name.as_str());
    let told = |name: &String| {
        let near = told_near(name, all());
        format!("arguments.{name}: no tool that this is about has such an argument{near}")
    };
    rule.arguments.keys().filter(is_unknown).map(told).collect()
}

/// The conditions of a rule about mounts that no call of a mount meets: it is about no session, and runs no command.
fn never_of_mounts(rule: &Rule) -> Vec<String> {
    let of_sessions =
        [Fact::Session, Fact::Tags, Fact::Directory, Fact::Terminal, Fact::Foreground];
    let mut names: Vec<&str> =
        of_sessions.iter().filter(|it| rule.facts.contains_key(it)).map(|it| it.as_str()).collect();
    let others = [
        (rule.command.is_some(), "command"),
        (rule.writes.is_some(), "writes"),
        (rule.line.is_some(), "line"),
        (rule.raw_input == Some(true), "raw_input"),
    ];
    names.extend(others.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name));
    let told =
        |name| format!("{name}: a call of a mount has none, so with `mount` this never matches");
    names.into_iter().map(told).collect()
}

fn wrong_tool(text: &str, tools: &[KnownTool]) -> Option<String> {
    let is_pattern = text.contains(['*', '?', '[', '{', '\\']);
    if is_pattern || text.contains(OF_SERVER) {
        return None;
    }
    match tools.iter().find(|tool| *tool.name == *text) {
        Some(tool) if tool.is_judged => None,
        Some(_) => {
            Some(format!("tool: rules do not judge `{text}`, which types and changes nothing"))
        }
        None => {
            let judged = tools.iter().filter(|tool| tool.is_judged).map(|tool| &*tool.name);
            Some(format!("tool: nothing is called `{text}`{}", told_near(text, judged)))
        }
    }
}

fn told_near<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> String {
    let near = nearest_of(word, words, 1);
    near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}
