//! `manage_session`: ends, renames, signals a session, sends people away or clears its history.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::ids::TenantId;
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::Role;
use crate::core::policy::{Door, PermittedAct, Standing};
use crate::session::command::{Act, ManageOrder};
use crate::session::error::check_name;
use crate::session::pty::signal::Signal;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::lease::fresh_lease;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::session::{Done, Managed};
use crate::wire::word;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ManageAction {
    Kill,
    Rename,
    Signal,
    Detach,
    ClearHistory,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ManageSession {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    action: ManageAction,
    /// For rename
    new_name: Option<String>,
    /// For signal: INT, TERM, HUP, ...
    signal: Option<String>,
}

/// Checks that a caller may give names in a tenant: names that are taken are told, and a name may be what gives a role.
fn check_renames(standing: &Standing, tenant: &TenantId) -> Result<(), Denial> {
    let roles = standing.roles_in(tenant);
    let may = match standing.rights.depend_on_names() {
        true => roles.has(Role::Operate),
        false => roles.has(Role::Write),
    };
    if may { Ok(()) } else { Err(Denial::NoRole) }
}

impl Tool for ManageSession {
    const NAME: &'static str = "manage_session";
    const TITLE: &'static str = "Manage a session";
    const DESCRIPTION: &'static str = "kill ends all processes (or removes an ended session), signal \
        goes to the foreground program, detach sends attached people away. Not while another holds \
        the lease.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Manage);
    const DESTRUCTIVE: bool = true;

    type Result = Managed;

    async fn call(self, mut call: Call) -> Result<Answer<Managed>, SurfaceError> {
        let target = call.take_target()?;
        let (act, mut done) = self.act()?;
        if matches!(self.action, ManageAction::Rename) && call.standing.bound_session().is_some() {
            // Which names are taken is not for this door to tell.
            return Err(Denial::BoundDoor.into());
        }
        if matches!(self.action, ManageAction::Rename) {
            check_renames(&call.standing, target.session.tenant())?;
        }
        let order = ManageOrder {
            caller: call.standing.caller.clone(),
            act,
            fresh: fresh_lease(),
            over_any_lease: call.standing.door == Door::Operator,
            bound: None,
        };
        let removed = matches!(self.action, ManageAction::Kill)
            && target.session.frame().exit.value.is_some();
        target.session.manage(&target.permit, order, call.accepted).await?;
        if removed {
            call.daemon.sessions.forgotten(target.session.id()).await;
            done = Done::Removed;
        }
        if let (ManageAction::Rename, Some(name)) = (self.action, &self.new_name) {
            call.daemon.sessions.rename(&target.permit, &target.session, name).await?;
        }
        if matches!(self.action, ManageAction::Detach) {
            target.session.live().detach_all();
        }
        let session = target.session.id().to_string();
        let name = target.session.name().to_string();
        let text =
            format!("session {session} {name:?}: {}", word(&done).to_string().replace('_', " "));
        Ok(Answer { result: Managed { session, name, done }, text })
    }
}

impl ManageSession {
    fn act(&self) -> Result<(Act, Done), SurfaceError> {
        match self.action {
            ManageAction::Kill => Ok((Act::Kill, Done::Killed)),
            ManageAction::Detach => Ok((Act::Check, Done::Detached)),
            ManageAction::ClearHistory => Ok((Act::ClearHistory, Done::HistoryCleared)),
            ManageAction::Rename => {
                let name = self.new_name.as_deref();
                let name = name.ok_or_else(|| SurfaceError::argument("new_name", "missing"))?;
                check_name(name)
                    .map_err(|error| SurfaceError::argument("new_name", error.to_string()))?;
                Ok((Act::Check, Done::Renamed))
            }
            ManageAction::Signal => {
                let name = self.signal.as_deref();
                let name = name.ok_or_else(|| SurfaceError::argument("signal", "missing"))?;
                let signal: Signal =
                    name.parse().map_err(|error: crate::session::pty::signal::UnknownSignal| {
                        SurfaceError::argument("signal", error.to_string())
                    })?;
                Ok((Act::Signal(signal), Done::Signalled))
            }
        }
    }
}
