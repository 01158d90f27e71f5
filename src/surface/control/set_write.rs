//! `set_write`: the write switches, for operators.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::human_duration::rough;
use crate::core::ids::TenantId;
use crate::core::input::WriteWindow;
use crate::core::moment::Moment;
use crate::core::policy::denial::Denial;
use crate::core::policy::switches::Scope;
use crate::surface::argument::millis;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::switchboard::{Keeping, Switchboard};
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::status::{SwitchWire, Switched, WriteStatus};

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
    /// After this time, what held before holds again
    for_ms: Option<u64>,
}

impl Tool for SetWrite {
    const NAME: &'static str = "set_write";
    const TITLE: &'static str = "Switch writing";
    const DESCRIPTION: &'static str = "Switches writing on or off, for everything, a tenant or a \
        session. The narrowest switch decides. Off without a scope clears every switch that is on and \
        ends every lease.";
    const ACCESS: ToolAccess = ToolAccess::OperateSession;
    const DESTRUCTIVE: bool = true;
    const IDEMPOTENT: bool = true;
    const READS_IF: Option<(&'static str, &'static str)> = Some(("state", "status"));

    type Result = Switched;

    async fn call(self, mut call: Call) -> Result<Answer<Switched>, SurfaceError> {
        let permit = call.take_permit()?;
        let scope = self.scope(&call)?;
        let now = call.daemon.now();
        let window = match (self.state, self.for_ms) {
            (SwitchTo::Status, _) => None,
            (SwitchTo::Off, _) => Some(WriteWindow::Closed),
            (SwitchTo::On, None) => Some(WriteWindow::Open),
            (SwitchTo::On, Some(left)) => {
                Some(WriteWindow::Until(now + millis("for_ms", left, 1..=FOR_MS_MAX)?))
            }
        };
        if self.state == SwitchTo::On && !call.standing.is_operator() {
            // What a client says never makes a daemon writable.
            return Err(Denial::NotOperator.into());
        }
        let board = &call.daemon.switchboard;
        let mut warnings = Vec::new();
        if let Some(window) = window {
            let is_on = board.open(now).contains(&(scope.clone(), WriteWindow::Open));
            if is_on && window.closes_at().is_some() {
                warnings.push("it was on without a limit, and stays on after that time");
            }
            let by = (&permit, &call.standing.caller);
            board.set(by, &call.daemon.sessions, scope.clone(), window)?;
            warnings.extend(warning_of(board.kept().await));
        }
        let configured = board.is_configured_on();
        // Whoever operates one session learns nothing of others.
        let only = (!call.standing.is_operator()).then_some(&scope);
        let mut lines = lines(&call, only, now);
        if self.state == SwitchTo::Status && !board.is_as_configured(now) {
            let configured = if configured { "on" } else { "off" };
            lines.push(format!("the configuration says {configured}"));
        }
        lines.extend(warnings.iter().map(|&warning| warning.to_owned()));
        let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
        let mut write = write_status(board, now);
        if let Some(only) = only.map(name_of) {
            write.on.retain(|switch| switch.scope == only);
            write.protected.retain(|scope| *scope == only);
        }
        let result = Switched { write, configured, warning };
        Ok(Answer { text: lines.join("\n"), result })
    }
}

impl SetWrite {
    fn scope(&self, call: &Call) -> Result<Scope, SurfaceError> {
        match (&self.session, &self.tenant) {
            (None, None) => Ok(Scope::Everything),
            (Some(session), None) => Ok(Scope::Session(call.session(Some(session))?.id())),
            (None, Some(tenant)) => {
                let wrong = |problem: String| SurfaceError::argument("tenant", problem);
                let id = tenant.parse::<TenantId>().map_err(|error| wrong(error.to_string()))?;
                let known = &call.daemon.sessions.limits().tenants;
                if id.is_private() || !(id.is_user() || known.find(&id).is_some()) {
                    let names: Vec<&str> = known.named.keys().map(TenantId::as_str).collect();
                    return Err(wrong(unknown_tenant(tenant, &names)));
                }
                Ok(Scope::Tenant(id))
            }
            (Some(_), Some(_)) => {
                Err(SurfaceError::argument("tenant", "give either `session` or `tenant`"))
            }
        }
    }
}

/// Why a tenant is unknown where the configuration names these.
fn unknown_tenant(given: &str, named: &[&str]) -> String {
    let named = match named {
        [] => "tenants.toml names none".to_owned(),
        named => format!("tenants.toml names {}", named.join(", ")),
    };
    format!("there is no tenant `{given}`: write a user as uid:1000; {named}")
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

/// The switches that are on, and those that protect.
pub fn write_status(board: &Switchboard, now: Moment) -> WriteStatus {
    let switch = |(scope, window): (Scope, WriteWindow)| SwitchWire {
        scope: name_of(&scope),
        closes_in_ms: window.closes_at().map(|at| now.until(at).as_millis() as u64),
    };
    WriteStatus {
        on: board.open(now).into_iter().map(switch).collect(),
        protected: board.protected().iter().map(name_of).collect(),
    }
}

/// The state of every switch, or of one only, in words.
fn lines(call: &Call, only: Option<&Scope>, now: Moment) -> Vec<String> {
    let is_meant = |scope: &Scope| only.is_none_or(|only| only == scope);
    let mut on = call.daemon.switchboard.open(now);
    on.retain(|(scope, _)| is_meant(scope));
    let mut protected = call.daemon.switchboard.protected();
    protected.retain(is_meant);
    let told = |scope: &Scope| match scope {
        Scope::Everything => "everything".to_owned(),
        Scope::Tenant(tenant) => format!("tenant {tenant}"),
        Scope::Session(id) => match call.daemon.sessions.get(*id) {
            Some(session) => format!("session {id} ({})", session.name()),
            None => format!("session {id}"),
        },
    };
    let mut lines = Vec::new();
    if on.is_empty() && only.is_none() {
        lines.push("writing is off everywhere".to_owned());
    }
    for (scope, window) in &on {
        let mut line = format!("writing is on for {}", told(scope));
        if let Some(end) = window.closes_at() {
            let left = rough(now.until(end).as_millis() as u64);
            let back = *scope == Scope::Everything || protected.contains(scope);
            let then = if back { "off" } else { "as everywhere else" };
            line += &format!(" for {left}, then {then}");
        }
        lines.push(line);
    }
    let is_off = |scope: &&Scope| !on.iter().any(|(open, _)| open == *scope);
    lines.extend(protected.iter().filter(is_off).map(|scope| {
        format!("writing is off for {}, also while it is on for everything", told(scope))
    }));
    lines
}
