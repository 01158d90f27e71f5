//! The daemon's own tools: explaining its answers, and what operators do. Small ones stand here.
//!
//! `why` explains an error code. For operators, `find_lease` tells the id of the lease that the command
//! line holds or was given, and `preempt_lease` ends the lease of a session, whoever holds it.

pub mod approvals;
pub mod follow_command;
pub mod list_events;
pub mod manage_mounts;
pub mod record_session;
pub mod set_write;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::code::Code;
use crate::core::policy::decision::Decision;
use crate::core::policy::rules::RuleEffect;
use crate::surface::call::{Call, sees_id};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::leased::Leased;
use crate::surface::tool::{Answer, Tool, ToolAccess, ToolEntry};
use crate::wire::policy::VerdictWire;
use crate::wire::status::{Explained, FoundLease, Preempted};

/// Every tool of this family, in the order of the contract.
pub fn entries() -> Vec<ToolEntry> {
    vec![
        ToolEntry::of::<list_events::ListEvents>(),
        ToolEntry::of::<Why>(),
        ToolEntry::of::<follow_command::FollowCommand>(),
        ToolEntry::of::<FindLease>(),
        ToolEntry::of::<PreemptLease>(),
        ToolEntry::of::<record_session::RecordSession>(),
        ToolEntry::of::<set_write::SetWrite>(),
        ToolEntry::of::<manage_mounts::ManageMounts>(),
        ToolEntry::of::<approvals::ListApprovals>(),
        ToolEntry::of::<approvals::Approve>(),
        ToolEntry::of::<approvals::Deny>(),
        ToolEntry::of::<approvals::ExplainDecision>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct FindLease {
    /// Id, prefix or name
    session: Option<String>,
    /// Or a mounted server
    surface: Option<String>,
    /// Or check that this is no lease of another session
    lease_id: Option<String>,
}

impl Tool for FindLease {
    const NAME: &'static str = "find_lease";
    const TITLE: &'static str = "Find your lease";
    const DESCRIPTION: &'static str = "Tells the id of the lease that the command line holds.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const ONLY_READS: bool = true;
    const IDEMPOTENT: bool = true;

    type Result = FoundLease;

    async fn call(self, mut call: Call) -> Result<Answer<FoundLease>, SurfaceError> {
        let permit = call.take_permit()?;
        let leased = call.leased(self.session.as_deref(), self.surface.as_deref())?;
        let lease = match (leased.presented(&call, self.lease_id.as_deref())?, &leased) {
            (None, Leased::Session(session)) => session.command_lines_lease(&permit).await?,
            (None, Leased::Mount(lease)) => lease.command_lines(),
            (given, _) => given,
        };
        let lease_id = lease.map(|lease| lease.to_string());
        let text = match &lease_id {
            Some(lease) => format!("the lease is {lease}"),
            None => format!("the command line holds no lease of {leased}"),
        };
        let (session, surface) = leased.names();
        Ok(Answer { result: FoundLease { session, surface, lease_id }, text })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PreemptLease {
    /// Id, prefix or name
    session: Option<String>,
    /// Or a mounted server
    surface: Option<String>,
}

impl Tool for PreemptLease {
    const NAME: &'static str = "preempt_lease";
    const TITLE: &'static str = "End a lease";
    const DESCRIPTION: &'static str =
        "Ends the lease of a session at once, regardless of its holder.";
    const ACCESS: ToolAccess = ToolAccess::OperateSession;
    const DESTRUCTIVE: bool = true;

    type Result = Preempted;

    async fn call(self, mut call: Call) -> Result<Answer<Preempted>, SurfaceError> {
        let permit = call.take_permit()?;
        let leased = call.leased(self.session.as_deref(), self.surface.as_deref())?;
        let by = call.standing.caller.name();
        let ended = match &leased {
            Leased::Session(session) => session.preempt(&permit, by).await?,
            Leased::Mount(lease) => {
                permit.check_operates(None)?;
                lease.preempt(by)
            }
        };
        let text = if ended { "the lease was ended" } else { "the lease was already free" };
        let (session, surface) = leased.names();
        Ok(Answer { result: Preempted { session, surface, ended }, text: text.to_owned() })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Why {
    /// An error_code
    code: Option<String>,
    decision_id: Option<String>,
}

impl Tool for Why {
    const NAME: &'static str = "why";
    const TITLE: &'static str = "Explain an error";
    const DESCRIPTION: &'static str =
        "What an error code means and what to do about it, or why the rules decided as they did.";
    const ACCESS: ToolAccess = ToolAccess::Read;

    type Result = Explained;

    async fn call(self, call: Call) -> Result<Answer<Explained>, SurfaceError> {
        if let Some(id) = &self.decision_id {
            return explained(&call, id);
        }
        let given = self.code.ok_or_else(|| SurfaceError::argument("code", "missing"))?;
        let code = Code::parse(&given).ok_or_else(|| {
            let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
            let problem = format!("no such code; there are: {}", codes.join(", "));
            SurfaceError::argument("code", problem)
        })?;
        let (meaning, advice) = (code.meaning(), code.advice());
        let text = format!("{}: {meaning} {advice}", code.as_str());
        let (code, meaning, advice) = (code.as_str().into(), meaning.into(), advice.into());
        Ok(Answer { result: Explained { code, meaning, advice }, text })
    }
}

/// Why the rules decided a call of the caller's tenant as they did.
fn explained(call: &Call, id: &str) -> Result<Answer<Explained>, SurfaceError> {
    let id = approvals::id_of("decision_id", id)?;
    let own = |decision: &Arc<Decision>| match decision.session {
        Some(session) => sees_id(&call.daemon.sessions, &call.standing, session, &decision.tenant),
        None => call.standing.sees_tenant(&decision.tenant),
    };
    let decision = call.daemon.judge.decision(id).filter(own);
    let decision = decision.ok_or_else(|| approvals::no_decision(id))?;
    let verdict = VerdictWire::from(&decision.verdict);
    let code = match decision.verdict.effect {
        RuleEffect::Allow => None,
        RuleEffect::Ask => Some(Code::ApprovalRequired),
        RuleEffect::Deny => Some(Code::PolicyDenied),
    };
    let meaning = format!("{} of {}: {}", decision.tool, decision.by, verdict.sentence());
    let advice = code.map_or("", Code::advice).to_owned();
    let text = format!("{meaning}. {advice}").trim_end().to_owned();
    let code = code.map_or("allow", Code::as_str).to_owned();
    Ok(Answer { result: Explained { code, meaning, advice }, text })
}
