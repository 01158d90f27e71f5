//! What a terminal is doing.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::shell::activity::{Activity, ActivityState, Evidence};
use crate::wire::word;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityWord {
    Prompt,
    Running,
    NeedsInput,
    SecretPrompt,
    FullScreen,
    Exited,
    Unknown,
}

impl From<ActivityState> for ActivityWord {
    fn from(state: ActivityState) -> Self {
        match state {
            ActivityState::Prompt => Self::Prompt,
            ActivityState::Running => Self::Running,
            ActivityState::NeedsInput => Self::NeedsInput,
            ActivityState::SecretPrompt => Self::SecretPrompt,
            ActivityState::FullScreen => Self::FullScreen,
            ActivityState::Exited => Self::Exited,
            ActivityState::Unknown => Self::Unknown,
        }
    }
}

/// How a state, or the end of a command, is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceWord {
    Osc133,
    Kernel,
    Pattern,
    Idle,
    Exit,
    // The shim does not answer, so nothing else is known of the session.
    Silent,
}

impl EvidenceWord {
    /// What it is known by, in plain words.
    pub fn plain(self) -> &'static str {
        match self {
            Self::Osc133 => "shell marks",
            Self::Kernel => "the kernel",
            Self::Pattern => "the text before the cursor",
            Self::Idle => "silence",
            Self::Exit => "its exit",
            Self::Silent => "the shim's silence",
        }
    }
}

impl From<Evidence> for EvidenceWord {
    fn from(evidence: Evidence) -> Self {
        match evidence {
            Evidence::Osc133 => Self::Osc133,
            Evidence::Kernel => Self::Kernel,
            Evidence::Pattern => Self::Pattern,
            Evidence::Idle => Self::Idle,
            Evidence::Exit => Self::Exit,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityWire {
    pub state: ActivityWord,
    pub evidence: EvidenceWord,
    /// The process group that may read the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<ForegroundWire>,
    /// The kernel shows what is typed.
    pub echo: bool,
    /// The kernel collects input into lines.
    pub canonical: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForegroundWire {
    pub group: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
}

impl From<&Activity> for ActivityWire {
    fn from(activity: &Activity) -> Self {
        let foreground = activity.foreground.as_ref().map(|foreground| ForegroundWire {
            group: foreground.group,
            program: foreground.program.clone(),
        });
        Self {
            state: activity.state.into(),
            evidence: activity.evidence.into(),
            foreground,
            echo: activity.echo,
            canonical: activity.canonical,
        }
    }
}

impl ActivityWire {
    /// The activity of a session whose shim does not answer.
    pub fn silent() -> Self {
        Self {
            state: ActivityWord::Unknown,
            evidence: EvidenceWord::Silent,
            foreground: None,
            echo: false,
            canonical: false,
        }
    }

    /// Whether the shim of the session does not answer.
    pub fn is_silent(&self) -> bool {
        self.evidence == EvidenceWord::Silent
    }

    /// The activity in a few words, such as `running make (known by the kernel)`.
    pub fn summary(&self) -> impl fmt::Display {
        let program = self.foreground.as_ref().and_then(|foreground| foreground.program.as_deref());
        let (blank, program) = program.map_or(("", ""), |program| (" ", program));
        let evidence = self.evidence.plain();
        fmt::from_fn(move |f| {
            write!(f, "{}{blank}{program} (known by {evidence})", word(&self.state))
        })
    }
}
