//! What a session is asked, with the permit that each act needs.

use crate::core::caller::{Caller, Kind};
use crate::core::frame::Size;
use crate::core::ids::{SessionId, Watermark};
use crate::core::input::WriteWindow;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::lease::request::{AcquireRequest, Grant, ReleaseRequest, Released};
use crate::core::moment::Moment;
use crate::core::policy::roles::GoneSession;
use crate::core::policy::switches::{Scope, Switches};
use crate::core::policy::{
    Door, Permit, PermittedAct, Reach, Standing, decide_operate, decide_write,
};
use crate::session::command::{
    Accepted, ManageOrder, ResizeOrder, TypedInput, WriteOrder, Written,
};
use crate::session::error::SessionError;
use crate::session::handle::Session;

fn standing(caller: &Caller, door: Door) -> Standing {
    let caller = caller.clone();
    Standing::of_member(caller, 1_000, door, Reach::Tenant)
}

/// A permit for this act while writing is on.
pub(in crate::session) fn permit(
    caller: &Caller,
    act: PermittedAct,
    session: Option<SessionId>,
) -> Permit {
    let mut switches = Switches::default();
    switches.set(Scope::Everything, WriteWindow::Open);
    let standing = standing(caller, Door::Gateway);
    let session = session.map(|id| GoneSession { id, tenant: &caller.tenant });
    let decided = decide_write(&standing, &switches, act, session.as_ref(), Moment::default());
    decided.expect("writing is on")
}

impl Session {
    pub(in crate::session) fn permit(&self, caller: &Caller, act: PermittedAct) -> Permit {
        permit(caller, act, Some(self.id()))
    }

    pub(in crate::session) async fn permitted_write(
        &self,
        order: WriteOrder,
        accepted: Accepted,
    ) -> Result<Written, SessionError> {
        self.write(&self.permit(&order.caller, PermittedAct::Type), order, accepted).await
    }

    pub(in crate::session) async fn permitted_acquire(
        &self,
        caller: Caller,
        request: AcquireRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Grant, SessionError> {
        let permit = self.permit(&caller, PermittedAct::Lease);
        self.acquire(&permit, caller, request, key, accepted).await
    }

    pub(in crate::session) async fn permitted_release(
        &self,
        caller: Caller,
        request: ReleaseRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Released, SessionError> {
        let permit = self.permit(&caller, PermittedAct::Lease);
        self.release(&permit, caller, request, key, accepted).await
    }

    pub(in crate::session) async fn permitted_resize(
        &self,
        order: ResizeOrder,
        accepted: Accepted,
    ) -> Result<Watermark, SessionError> {
        self.resize(&self.permit(&order.caller, PermittedAct::Resize), order, accepted).await
    }

    pub(in crate::session) async fn permitted_manage(
        &self,
        order: ManageOrder,
        accepted: Accepted,
    ) -> Result<(), SessionError> {
        self.manage(&self.permit(&order.caller, PermittedAct::Manage), order, accepted).await
    }

    pub(in crate::session) async fn permitted_type_in(
        &self,
        caller: Caller,
        typed: TypedInput,
    ) -> Result<Written, SessionError> {
        self.type_in(&self.permit(&caller, PermittedAct::Type), caller, typed).await
    }

    pub(in crate::session) async fn permitted_take_over(
        &self,
        caller: Caller,
        view: Option<Size>,
    ) -> Result<(), SessionError> {
        self.take_over(&self.permit(&caller, PermittedAct::Type), caller, view).await
    }

    pub(in crate::session) async fn permitted_resize_for_person(
        &self,
        caller: Caller,
        view: Size,
    ) -> Result<bool, SessionError> {
        let permit = self.permit(&caller, PermittedAct::Resize);
        self.resize_for_person(&permit, caller, view).await
    }

    pub(in crate::session) async fn permitted_preempt(
        &self,
        operator: &Caller,
    ) -> Result<bool, SessionError> {
        let operator = Caller { kind: Kind::Operator, ..operator.clone() };
        let permit = decide_operate(&standing(&operator, Door::Operator)).expect("an operator");
        self.preempt(&permit, operator.name()).await
    }
}
