//! One check: its subject, its result, and advice.

use serde::Serialize;

use crate::core::one_line::one_line;
use crate::wire::word;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// It works, but a change may help.
    Warn,
    /// Something does not work because of it.
    Fail,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// What to do; none when nothing needs to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    /// It works, and the advice is optional.
    pub(super) fn warn(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { name, verdict: Verdict::Warn, found: found.into(), advice }
    }

    /// Something does not work until the user follows the advice.
    pub(super) fn fail(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Fail, ..Self::warn(name, found, advice) }
    }

    /// The check for people: a line, and a second one for the advice.
    pub(super) fn line(&self) -> String {
        let line =
            format!("{:4}  {:18}  {}", word(&self.verdict), self.name, one_line(&self.found));
        match &self.advice {
            Some(advice) => format!("{line}\n      {:18}  → {}", "", one_line(advice)),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_stands_in_a_line_of_its_own() {
        let check = Check::warn("writing", "off", "switch it on");
        assert_eq!(
            check.line(),
            "warn  writing             off\n                          → switch it on"
        );
        assert_eq!(Check::ok("writing", "on").line(), "ok    writing             on");
    }
}
