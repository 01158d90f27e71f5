//! `list_approvals`, `approve` and `deny`, for those with the role `approve`; `explain_decision`, for operators.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::one_line::line_to_decide_by;
use crate::core::policy::Standing;
use crate::core::policy::approvals::{Approval, ApprovalError, ApprovalScope, PROGRAM_FOR_MAX};
use crate::core::policy::decision::DecisionId;
use crate::surface::argument::millis;
use crate::surface::call::{Call, Daemon};
use crate::surface::error::SurfaceError;
use crate::surface::judge::{Approver, may_decide};
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::error::RefusalCause;
use crate::wire::policy::{ApprovalDecided, ApprovalList, ApprovalWire, DecisionWire};
use crate::wire::untrusted::Untrusted;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListApprovals {}

impl Tool for ListApprovals {
    const NAME: &'static str = "list_approvals";
    const TITLE: &'static str = "List approvals";
    const DESCRIPTION: &'static str = "The calls that wait for an approval; first those that \
        somebody waits in.";
    const ACCESS: ToolAccess = ToolAccess::Approve;
    const ONLY_READS: bool = true;

    type Result = ApprovalList;

    async fn call(self, call: Call) -> Result<Answer<ApprovalList>, SurfaceError> {
        let list = waiting(&call.daemon, &call.standing);
        Ok(Answer { text: list.summary(), result: list })
    }
}

/// The calls that wait for an approval which this caller may give.
pub fn waiting(daemon: &Daemon, standing: &Standing) -> ApprovalList {
    let now = daemon.now();
    let wire = |approval: Approval| {
        let Approval { id, request, expires_at, .. } = approval;
        let session = request.session.and_then(|session| daemon.sessions.get(session));
        let directory = request.witness.directory.as_deref();
        ApprovalWire {
            approval_id: id.to_string(),
            what: request.what.to_string(),
            tool: request.tool.to_string(),
            by: request.by.to_string(),
            tenant: request.tenant.to_string(),
            session: request.session.map(|session| session.to_string()),
            session_name: session.map(|session| session.name().to_string()),
            directory: directory.map(|it| line_to_decide_by(it).into_owned()),
            rule: request.rule.as_deref().map(str::to_owned),
            reason: request.reason.as_deref().map(str::to_owned),
            expires_in_ms: now.until(expires_at).as_millis() as u64,
        }
    };
    let waiting = daemon.judge.waiting(&daemon.sessions).into_iter();
    let own = waiting.filter(|it| may_decide(&daemon.sessions, standing, &it.request));
    let approvals = own.map(wire).collect();
    ApprovalList { untrusted: Untrusted, approvals }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Approve {
    /// Of list_approvals
    approval_id: String,
    /// Also let the same programs of this caller pass in its session for this long
    for_ms: Option<u64>,
}

impl Tool for Approve {
    const NAME: &'static str = "approve";
    const TITLE: &'static str = "Approve a call";
    const DESCRIPTION: &'static str =
        "Lets a call pass that waits: once, while its terminal stays as it was.";
    const ACCESS: ToolAccess = ToolAccess::Approve;
    const DESTRUCTIVE: bool = true;

    type Result = ApprovalDecided;

    async fn call(self, mut call: Call) -> Result<Answer<ApprovalDecided>, SurfaceError> {
        let permit = call.take_permit()?;
        let id = id_of("approval_id", &self.approval_id)?;
        let now = call.daemon.now();
        let scope = match self.for_ms {
            None => ApprovalScope::Once,
            Some(left) => {
                let most = PROGRAM_FOR_MAX.as_millis() as u64;
                ApprovalScope::Programs(now + millis("for_ms", left, 1..=most)?)
            }
        };
        let caller = &call.standing.caller;
        let approver = Approver::of(&permit, &call.standing, now)?;
        let judge = &call.daemon.judge;
        let approved = judge.approve(&call.daemon.sessions, &approver, id, scope);
        let approved = approved.map_err(|error| problem(error, &self.approval_id))?;
        Ok(decided(approved, true, caller.name().to_string()))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Deny {
    /// Of list_approvals
    approval_id: String,
}

impl Tool for Deny {
    const NAME: &'static str = "deny";
    const TITLE: &'static str = "Deny a call";
    const DESCRIPTION: &'static str =
        "Refuses a call that waits for an approval, and for a minute the same call again.";
    const ACCESS: ToolAccess = ToolAccess::Approve;

    type Result = ApprovalDecided;

    async fn call(self, mut call: Call) -> Result<Answer<ApprovalDecided>, SurfaceError> {
        let permit = call.take_permit()?;
        let id = id_of("approval_id", &self.approval_id)?;
        let caller = &call.standing.caller;
        let approver = Approver::of(&permit, &call.standing, call.daemon.now())?;
        let denied = call.daemon.judge.deny(&call.daemon.sessions, &approver, id);
        let denied = denied.map_err(|error| problem(error, &self.approval_id))?;
        Ok(decided(denied, false, caller.name().to_string()))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExplainDecision {
    /// Of a refusal or a record of the journal
    decision_id: String,
}

impl Tool for ExplainDecision {
    const NAME: &'static str = "explain_decision";
    const TITLE: &'static str = "Explain a decision";
    const DESCRIPTION: &'static str =
        "How each rule judged a call; the last 512 decisions of this daemon are kept.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const ONLY_READS: bool = true;

    type Result = DecisionWire;

    async fn call(self, call: Call) -> Result<Answer<DecisionWire>, SurfaceError> {
        let id = id_of("decision_id", &self.decision_id)?;
        let decision = call.daemon.judge.decision(id).ok_or_else(|| no_decision(id))?;
        let wire = DecisionWire::from(&*decision);
        Ok(Answer { text: wire.verdict.sentence(), result: wire })
    }
}

/// Reads the id of a decision or an approval.
pub fn id_of(parameter: &str, text: &str) -> Result<DecisionId, SurfaceError> {
    text.parse().map_err(|_| {
        SurfaceError::argument(parameter, "an id has eight hexadecimal digits, such as 1f3a2b4c")
    })
}

/// The error for a decision that is not kept, or is of another tenant.
pub fn no_decision(id: DecisionId) -> SurfaceError {
    let problem =
        format!("no decision {id} is kept; there are the last 512 since the daemon started");
    SurfaceError::refused("decision_id", problem, RefusalCause::NotFound)
}

fn problem(error: ApprovalError, given: &str) -> SurfaceError {
    let parameter = match error {
        ApprovalError::Unknown | ApprovalError::Decided | ApprovalError::Stale => "approval_id",
        ApprovalError::ProgramsUnknown => "for_ms",
    };
    let problem = format!("{error} ({given})");
    if error == ApprovalError::Unknown {
        return SurfaceError::refused(parameter, problem, RefusalCause::NotFound);
    }
    SurfaceError::argument(parameter, problem)
}

fn decided(approval: Approval, granted: bool, by: String) -> Answer<ApprovalDecided> {
    let what = approval.request.what.to_string();
    let text = format!("{}: {what}", if granted { "approved" } else { "denied" });
    let approval_id = approval.id.to_string();
    Answer { text, result: ApprovalDecided { approval_id, granted, what, by } }
}
