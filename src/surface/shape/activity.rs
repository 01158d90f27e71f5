//! What a terminal is doing, on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::shell::activity::{Activity, ActivityState};

/// The evidence of a session of which nothing else is known, since nobody answers for its terminal.
pub const SILENT: &str = "silent";

/// What a terminal is doing, and how that is known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivityShape {
    /// `prompt`, `running`, `needs_input`, `secret_prompt`, `full_screen` or `exited`.
    pub state: &'static str,
    /// `osc133`, `kernel`, `pattern`, `idle`, `exit` or `silent`.
    pub evidence: &'static str,
    /// The process group that may read the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<ForegroundShape>,
    /// The kernel shows what is typed.
    pub echo: bool,
    /// The kernel collects input into lines.
    pub canonical: bool,
}

/// A foreground process group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ForegroundShape {
    pub group: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl From<&Activity> for ActivityShape {
    fn from(activity: &Activity) -> Self {
        let foreground = activity.foreground.as_ref().map(|foreground| ForegroundShape {
            group: foreground.group,
            program: foreground.program.as_deref().map(str::to_owned),
        });
        Self {
            state: activity.state.as_str(),
            evidence: activity.evidence.as_str(),
            foreground,
            echo: activity.echo,
            canonical: activity.canonical,
        }
    }
}

impl ActivityShape {
    /// What is known where nobody answers for the terminal.
    pub fn silent() -> Self {
        let state = ActivityState::Running.as_str();
        Self { state, evidence: SILENT, foreground: None, echo: false, canonical: false }
    }

    /// Whether nobody answers for the terminal.
    pub fn is_silent(&self) -> bool {
        self.evidence == SILENT
    }

    /// The activity in a few words, such as `running make (kernel)`.
    pub fn summary(&self) -> String {
        let program = self.foreground.as_ref().and_then(|foreground| foreground.program.as_deref());
        let program = program.map_or_else(String::new, |program| format!(" {program}"));
        format!("{}{program} ({})", self.state, self.evidence)
    }
}
