//! `set_write`: the write switches, for operators.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::human_duration::rough;
use crate::core::ids::TenantId;
use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::switches::Scope;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::switchboard::Keeping;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::status::{SwitchWire, Switched};

/// The longest time a switch may be on for, in milliseconds: thirty days.
const FOR_MS_MAX: u64 = 30 * 24 * 3_600_000;

/// Where a switch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchTo {
    On,
    Off,
    Status,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SetWrite {
    state: SwitchTo,
    /// Only for this session
    session: Option<String>,
    /// Only for this tenant, such as uid:1000
    tenant: Option<String>,
    /// Switch off again after this time
    for_ms: Option<u64>,
}

impl Tool for SetWrite {
    const NAME: &'static str = "set_write";
    const TITLE: &'static str = "Switch writing";
    const DESCRIPTION: &'static str = "Switches writing on or off, for everything, a tenant or a \
        session. Off without a scope clears every switch and ends every lease.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const DESTRUCTIVE: bool = true;
    const IDEMPOTENT: bool = true;

    type Result = Switched;

    async fn call(self, mut call: Call) -> Result<Answer<Switched>, SurfaceError> {
        let permit = call.take_permit()?;
        let scope = self.scope(&call)?;
        let now = call.daemon.now();
        if self.state == SwitchTo::Off {
            check_uncovered(&call, &scope)?;
        }
        let window = match (self.state, self.for_ms) {
            (SwitchTo::Status, _) => None,
            (SwitchTo::Off, _) => Some(WriteWindow::Closed),
            (SwitchTo::On, None) => Some(WriteWindow::Open),
            (SwitchTo::On, Some(left)) => {
                Some(WriteWindow::Until(now + millis("for_ms", left, 1..=FOR_MS_MAX)?))
            }
        };
        let mut warning = None;
        if let Some(window) = window {
            call.daemon.switchboard.set(&permit, &call.daemon.sessions, scope, window)?;
            warning = warning_of(call.daemon.switchboard.kept().await);
        }
        let board = &call.daemon.switchboard;
        let on: Vec<SwitchWire> =
            board.open(now).into_iter().map(|open| switch(open, now)).collect();
        let configured = board.is_configured_on();
        let mut text = text_of(&on);
        if self.state == SwitchTo::Status && !board.is_as_configured(now) {
            text += &format!("\nthe configuration says {}", if configured { "on" } else { "off" });
        }
        if let Some(warning) = warning {
            text += &format!("\n{warning}");
        }
        Ok(Answer {
            text,
            result: Switched { on, configured, warning: warning.map(str::to_owned) },
        })
    }
}

impl SetWrite {
    fn scope(&self, call: &Call) -> Result<Scope, SurfaceError> {
        match (&self.session, &self.tenant) {
            (None, None) => Ok(Scope::Everything),
            (Some(session), None) => Ok(Scope::Session(call.session(Some(session))?.id())),
            (None, Some(tenant)) => {
                let tenant = tenant.parse::<TenantId>();
                tenant
                    .map(Scope::Tenant)
                    .map_err(|error| SurfaceError::argument("tenant", error.to_string()))
            }
            (Some(_), Some(_)) => {
                Err(SurfaceError::argument("tenant", "give either `session` or `tenant`"))
            }
        }
    }
}

/// Checks that no wider switch leaves writing on where it is to be switched off.
fn check_uncovered(call: &Call, scope: &Scope) -> Result<(), SurfaceError> {
    let (parameter, session) = match scope {
        Scope::Everything => return Ok(()),
        Scope::Tenant(_) => ("tenant", None),
        Scope::Session(id) => ("session", call.daemon.sessions.get(*id)),
    };
    let covers = |wider: &Scope| match wider {
        Scope::Everything => true,
        Scope::Tenant(wider) => session.as_ref().is_some_and(|it| it.tenant() == wider),
        Scope::Session(_) => false,
    };
    let open = call.daemon.switchboard.open(call.daemon.now());
    let Some((wider, _)) = open.iter().find(|(wider, _)| covers(wider)) else { return Ok(()) };
    let problem = format!(
        "writing stays on there, since it is on for {}; switch that off, and on again for less",
        name_of(wider)
    );
    Err(SurfaceError::argument(parameter, problem))
}

fn warning_of(keeping: Keeping) -> Option<&'static str> {
    match keeping {
        Keeping::Kept => None,
        Keeping::Failed => Some("not kept: all of it is off after the daemon was killed"),
        Keeping::Late => Some("not kept yet: it may be off after the daemon was killed"),
    }
}

fn name_of(scope: &Scope) -> String {
    match scope {
        Scope::Everything => "everything".to_owned(),
        Scope::Tenant(tenant) => tenant.to_string(),
        Scope::Session(session) => session.to_string(),
    }
}

/// A switch that is on.
pub fn switch((scope, window): (Scope, WriteWindow), now: Moment) -> SwitchWire {
    let closes_in_ms = window.closes_at().map(|at| now.until(at).as_millis() as u64);
    SwitchWire { scope: name_of(&scope), closes_in_ms }
}

fn text_of(on: &[SwitchWire]) -> String {
    if on.is_empty() {
        return "writing is off everywhere".to_owned();
    }
    let line = |switch: &SwitchWire| match switch.closes_in_ms {
        Some(left) => format!("writing is on for {} for {}", switch.scope, rough(left)),
        None => format!("writing is on for {}", switch.scope),
    };
    on.iter().map(line).collect::<Vec<_>>().join("\n")
}
