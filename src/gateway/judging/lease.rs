//! Whether a call has the lease that it needs, which is found out before anybody is asked to let it pass.

use serde_json::Value;

use crate::core::ids::{LeaseId, Watermark};
use crate::core::policy::{Door, PermittedAct};
use crate::gateway::judging::JudgedCall;
use crate::session::command::{
    Accepted, Act, Content, Expectation, ManageOrder, ResizeOrder, WriteOrder,
};
use crate::surface::argument::lease_id;
use crate::surface::call::{Call, Target};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::lease::fresh_lease;
use crate::surface::terminal::manage_session::ManageSession;
use crate::surface::tool::relay::has_own_lease_id;
use crate::surface::tool::{Tool, ToolAccess};

impl JudgedCall<'_> {
    /// Checks that the caller has the lease, and has seen what it says that it has. Changes nothing.
    ///
    /// # Errors
    /// What the tool would answer.
    pub(super) async fn check_lease(self, call: &Call) -> Result<(), SurfaceError> {
        match (self.entry.access, &call.target) {
            (ToolAccess::WriteSession(act), Some(target)) => {
                self.check_lease_of_session(call, target, act).await
            }
            (ToolAccess::WriteMount, _) => self.check_lease_of_mount(call),
            (
                ToolAccess::Read
                | ToolAccess::WriteSession(_)
                | ToolAccess::WriteLease
                | ToolAccess::Create
                | ToolAccess::ReadMount
                | ToolAccess::Approve
                | ToolAccess::OperateSession
                | ToolAccess::Operate,
                _,
            ) => Ok(()),
        }
    }

    async fn check_lease_of_session(
        self,
        call: &Call,
        Target { session, permit }: &Target,
        act: PermittedAct,
    ) -> Result<(), SurfaceError> {
        let caller = call.standing.caller.clone();
        let (presented, take) = (self.presented(), call.take_rule());
        match act {
            PermittedAct::Type => {
                let expected = self.arguments.get("expect_watermark").and_then(Value::as_u64);
                let text = self.arguments.get("expect_text").and_then(Value::as_str);
                let order = WriteOrder {
                    caller,
                    door: call.standing.door,
                    content: Content::Bytes { bytes: Vec::new(), enter: false },
                    presented,
                    take,
                    expect: Expectation {
                        watermark: expected.map(Watermark),
                        text: text.map(str::to_owned),
                    },
                    key: None,
                    dry_run: true,
                    keep_alive: false,
                    command: None,
                    decision: None,
                    bound: None,
                };
                session.write(permit, order, Accepted::nothing()).await?;
            }
            PermittedAct::Resize => {
                let size = session.frame().size.value;
                let order = ResizeOrder { caller, presented, take, size, dry_run: true };
                session.resize(permit, order, Accepted::nothing()).await?;
            }
            PermittedAct::Manage => {
                let over_any_lease = call.standing.door == Door::Operator;
                let fresh = fresh_lease();
                let order =
                    ManageOrder { caller, act: Act::Check, fresh, over_any_lease, bound: None };
                session.manage(permit, order, Accepted::nothing()).await?;
            }
            // Who asks for the lease needs none.
            PermittedAct::Lease
            | PermittedAct::Create
            | PermittedAct::CallMount
            | PermittedAct::Approve
            | PermittedAct::Operate => {}
        }
        Ok(())
    }

    fn check_lease_of_mount(self, call: &Call) -> Result<(), SurfaceError> {
        let Some(tool) = self.entry.mount() else { return Ok(()) };
        let Some(lease) = call.daemon.mount_leases.of(tool.mount.name()) else { return Ok(()) };
        let presented = if has_own_lease_id(tool) { None } else { self.presented() };
        let caller = &call.standing.caller;
        let may = lease.may_call(caller, presented, call.take_rule());
        may.map_err(|error| lease.refusal(caller, error))
    }

    /// Whether it ends a session that its caller made for one command, and nobody else has used.
    pub(super) fn ends_own(self, call: &Call) -> bool {
        let action = self.arguments.get("action").and_then(Value::as_str);
        let kills = *self.entry.name == *ManageSession::NAME && action == Some("kill");
        let Some(session) = self.session.filter(|_| kills) else { return false };
        let principal = call.standing.caller.principal;
        call.daemon.principals.has_made(principal, session.id())
            && session.live().users().nobody_but(principal)
    }

    /// The lease that the call names. What is no lease id, its tool refuses.
    pub(super) fn presented(self) -> Option<LeaseId> {
        let given = self.arguments.get("lease_id").and_then(Value::as_str);
        given.and_then(|id| lease_id(id).ok())
    }
}
