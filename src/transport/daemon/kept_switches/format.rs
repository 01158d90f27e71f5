//! The JSON format of the switch file.
//!
//! Unknown members are errors and none has a default, so that a reader never accepts a part as the whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::switches::Scope;

const VERSION: u32 = 1;

/// Why a text cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormatError {
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has version {0}, and {VERSION} is known")]
    Version(u32),
    #[error("there is no {kind} `{name}`")]
    Name { kind: &'static str, name: String },
}

/// The members of every version.
#[derive(Deserialize)]
struct Head {
    v: u32,
    boot: String,
}

/// The file. Switches that it does not list are off.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    v: u32,
    boot: String,
    on: Vec<SwitchWire>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchWire {
    scope: ScopeWire,
    window: WindowWire,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeWire {
    Everything,
    Tenant(String),
    Session(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WindowWire {
    Closed,
    Open,
    /// Milliseconds since boot.
    UntilMs(u64),
}

/// Writes the text for these switches and this boot.
pub(super) fn text(on: &[(Scope, WriteWindow)], boot: &str) -> String {
    let on = on.iter().map(SwitchWire::of).collect();
    let wire = Wire { v: VERSION, boot: boot.to_owned(), on };
    serde_json::to_string(&wire).expect("texts, numbers and lists of them are always JSON") + "\n"
}

/// Reads which switches are on. `None` for a text of another boot, whose times and sessions are void.
///
/// # Errors
/// Returns why the text cannot be parsed.
pub(super) fn read(
    text: &str,
    boot: &str,
) -> Result<Option<Vec<(Scope, WriteWindow)>>, FormatError> {
    let head: Head = serde_json::from_str(text)?;
    if head.boot != boot {
        return Ok(None);
    }
    if head.v != VERSION {
        return Err(FormatError::Version(head.v));
    }
    let Wire { on, .. } = serde_json::from_str(text)?;
    on.into_iter().map(SwitchWire::switch).collect::<Result<_, _>>().map(Some)
}

impl SwitchWire {
    fn of((scope, window): &(Scope, WriteWindow)) -> Self {
        let scope = match scope {
            Scope::Everything => ScopeWire::Everything,
            Scope::Tenant(tenant) => ScopeWire::Tenant(tenant.to_string()),
            Scope::Session(session) => ScopeWire::Session(session.to_string()),
        };
        let window = match window {
            WriteWindow::Closed => WindowWire::Closed,
            WriteWindow::Open => WindowWire::Open,
            WriteWindow::Until(end) => {
                let since_boot = end.since_boot().as_millis();
                WindowWire::UntilMs(u64::try_from(since_boot).unwrap_or(u64::MAX))
            }
        };
        Self { scope, window }
    }

    fn switch(self) -> Result<(Scope, WriteWindow), FormatError> {
        let scope = match self.scope {
            ScopeWire::Everything => Scope::Everything,
            ScopeWire::Tenant(name) => match name.parse() {
                Ok(tenant) => Scope::Tenant(tenant),
                Err(_) => return Err(FormatError::Name { kind: "tenant", name }),
            },
            ScopeWire::Session(name) => match name.parse() {
                Ok(session) => Scope::Session(session),
                Err(_) => return Err(FormatError::Name { kind: "session", name }),
            },
        };
        let window = match self.window {
            WindowWire::Closed => WriteWindow::Closed,
            WindowWire::Open => WriteWindow::Open,
            WindowWire::UntilMs(end) => {
                WriteWindow::Until(Moment::from_boot(Duration::from_millis(end)))
            }
        };
        Ok((scope, window))
    }
}
