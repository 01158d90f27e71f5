//! The gateway: the single path of every call, whatever its transport.
//!
//! It finds the tool, checks the right to call it and runs it. No tool can be reached without these checks.

mod judging;
mod mounts;
pub mod recording;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::code::Code;
use crate::core::ids::{SessionId, TenantId};
use crate::core::policy::decision::DecisionId;
use crate::core::policy::denial::Denial;
use crate::core::policy::{
    Door, PermittedAct, Standing, decide_approve, decide_operate, decide_operate_at,
};
use crate::core::quota::Quota;
use crate::core::rate::{CallRates, TooOften};
use crate::gateway::judging::JudgedCall;
use crate::gateway::recording::{BegunCall, RecordedBy, RecordedCall, had_effect};
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::registry::silent::Known;
use crate::surface::argument::lease_id;
use crate::surface::call::{Call, Daemon, Target, find_session, seen_known};
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::mounted::{MountedEntriesCache, sees_mounts};
use crate::surface::tool::{ToolAccess, ToolAnswer, ToolEntry};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Done,
    /// The caller cancelled the call or hung up.
    GivenUp,
    Failed(Code),
}

impl CallOutcome {
    /// The outcome as text: `ok`, `given_up` or the error code.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::GivenUp => "given_up",
            Self::Failed(code) => code.as_str(),
        }
    }
}

/// How often each tool was called, by the word of the outcome. Callers are not recorded.
#[derive(Debug, Default)]
pub struct Calls(Mutex<CallCounts>);

type CallCounts = BTreeMap<Arc<str>, BTreeMap<&'static str, u64>>;

impl Calls {
    pub fn count(&self, tool: &Arc<str>, outcome: CallOutcome) {
        *self.counts().entry(Arc::clone(tool)).or_default().entry(outcome.word()).or_default() += 1;
    }

    pub fn counts(&self) -> MutexGuard<'_, CallCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The daemon's own tools that clients need for mounts too.
const OF_BOTH_SETS: [&str; 4] = ["acquire_lease", "renew_lease", "release_lease", "why"];

/// How many refusals a second are recorded of each user. Calls that are done are not limited.
const REFUSALS: Quota = Quota::new(20, 1);

/// How many calls a second list and decide approvals, of each tenant.
const APPROVALS: Quota = Quota::new(20, 20);

#[derive(Debug)]
pub struct Gateway {
    daemon: Arc<Daemon>,
    entries: Vec<Arc<ToolEntry>>,
    mounted: MountedEntriesCache,
    rates: Mutex<CallRates>,
    /// Of the calls that list, approve and deny.
    approval_rates: Mutex<CallRates>,
    calls: Calls,
    /// How many refusals are recorded, and how many of each tenant were left out since its last one.
    refusals: Mutex<(CallRates, BTreeMap<TenantId, u64>)>,
    /// Finds the code of an error, for the journal.
    code_of: fn(&SurfaceError) -> Code,
}

impl Gateway {
    /// A gateway to all tools. `per_second` limits the calls of each tenant; `own` is the daemon's tenant.
    pub fn new(
        daemon: Arc<Daemon>,
        own: TenantId,
        per_second: &Quota,
        code_of: fn(&SurfaceError) -> Code,
    ) -> Self {
        let refusals = Mutex::new((CallRates::new(own.clone(), REFUSALS), BTreeMap::new()));
        let approval_rates = Mutex::new(CallRates::new(own.clone(), APPROVALS));
        let rates = Mutex::new(CallRates::new(own, per_second.clone()));
        let entries = crate::surface::entries().into_iter().map(Arc::new).collect();
        let (calls, mounted) = (Calls::default(), MountedEntriesCache::default());
        Self { daemon, entries, mounted, rates, approval_rates, calls, refusals, code_of }
    }

    /// Sets the limit of calls per second and tenant.
    pub fn set_rates(&self, per_second: Quota) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).set(per_second);
    }

    /// Counts a request other than a tool call: a resource read or the start of an observation.
    ///
    /// Operators are never limited, so that they can always intervene.
    ///
    /// # Errors
    /// Returns [`SurfaceError::RateLimited`] when the caller's tenant calls too often.
    pub fn admit(&self, standing: &Standing) -> Result<(), SurfaceError> {
        self.admit_call(standing, ToolAccess::Read)
    }

    /// The same for a call: those that approve are counted alone, so that no others of their tenant keep them out.
    fn admit_call(&self, standing: &Standing, access: ToolAccess) -> Result<(), SurfaceError> {
        if standing.door == Door::Operator {
            return Ok(());
        }
        let now = self.daemon.now();
        let rates = if access == ToolAccess::Approve { &self.approval_rates } else { &self.rates };
        let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = rates.take(now, &standing.caller.tenant);
        taken.map_err(|TooOften { retry_after }| SurfaceError::RateLimited { retry_after })
    }

    pub fn daemon(&self) -> &Arc<Daemon> {
        &self.daemon
    }

    /// The call counts of each tool, which the code that answers a call updates.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Finds a tool that exists for this caller, whether it is listed now or not.
    pub fn entry(&self, name: &str, standing: &Standing) -> Option<Arc<ToolEntry>> {
        let own = self.entries.iter().find(|entry| *entry.name == *name).map(Arc::clone);
        let mounted = || self.mounted.of(&self.daemon.mounts).get(name).cloned();
        own.or_else(mounted).filter(|entry| self.at_door(entry, standing))
    }

    /// The tools that are listed to this caller now; those of mounts behind the daemon's own.
    pub fn listed(&self, standing: &Standing) -> Vec<Arc<ToolEntry>> {
        let now = self.daemon.now();
        let writable = self.daemon.switchboard.could_write(&self.daemon.sessions, standing, now);
        let calls_mounts = self.decide_mount(standing).is_ok();
        let listed = |entry: &Arc<ToolEntry>| {
            self.at_door(entry, standing)
                && (writable || !entry.access.writes())
                && (entry.access != ToolAccess::Create || creates(standing))
                && (entry.access != ToolAccess::WriteMount || calls_mounts)
        };
        let mounted = self.mounted.of(&self.daemon.mounts);
        self.entries.iter().chain(mounted.values()).filter(|entry| listed(entry)).cloned().collect()
    }

    /// Counts a call, checks its rights, records it and runs it.
    ///
    /// # Errors
    /// Returns why the call is not allowed, or the error of the tool.
    pub async fn call(
        &self,
        entry: &ToolEntry,
        mut call: Call,
        mut arguments: CallArguments,
    ) -> Result<ToolAnswer, SurfaceError> {
        self.admit_call(&call.standing, entry.access)?;
        // Whoever judges them reads them as the tool does.
        entry.unquote(&mut arguments);
        let recorded_by = RecordedBy::of(entry, &arguments);
        let recorder = self.daemon.sessions.recorder();
        let mut about = None;
        let allowed = self.allow(entry, &mut call, &arguments, &mut about);
        let judged = JudgedCall { entry, arguments: &arguments, session: about.as_ref() };
        let allowed = match allowed {
            Ok(()) => judged.judge(&self.daemon, &mut call).await,
            Err(error) => Err(error),
        };
        if recorded_by == RecordedBy::Nobody {
            allowed?;
            return entry.run(call, arguments).await;
        }
        let recorded = RecordedCall::new(recorder, &call, entry, &arguments, about);
        let refused = |recorded: &RecordedCall, error: SurfaceError| {
            self.note_refused(recorded, &error);
            error
        };
        let used = match allowed {
            Ok(used) => used,
            Err(error) => return Err(refused(&recorded, error)),
        };
        let answer = if recorded_by == RecordedBy::Session {
            let answer = entry.run(call, arguments).await;
            answer.map_err(|error| refused(&recorded, error))
        } else {
            let begun = recorded.begin().map_err(SessionError::from)?;
            let answer = entry.run(call, arguments).await;
            begun.conclude(answer.as_ref().err().map(|error| (error, (self.code_of)(error))));
            answer
        };
        if let (Some(used), Err(error)) = (used, &answer)
            && !had_effect(error)
        {
            self.daemon.judge.give_back(*used);
        }
        answer
    }

    /// Records a refusal, unless there are so many that they would push other records out of the journal.
    fn note_refused(&self, recorded: &RecordedCall, error: &SurfaceError) {
        let now = self.daemon.now();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let (rates, left_out) = &mut *refusals;
        if rates.take(now, recorded.tenant()).is_err() {
            *left_out.entry(recorded.tenant().clone()).or_default() += 1;
            return;
        }
        let left_out = left_out.remove(recorded.tenant()).unwrap_or_default();
        drop(refusals);
        recorded.refused(error, (self.code_of)(error), left_out);
    }

    /// Records that an operator asks the daemon for something other than a call.
    pub fn begin_request(&self, standing: &Standing, act: &'static str) -> BegunCall {
        RecordedCall::request(self.daemon.sessions.recorder(), standing, act).begin_anyway()
    }

    /// Records that an operator decides a call about which the rules asked.
    pub fn begin_decision(
        &self,
        standing: &Standing,
        act: &'static str,
        (call, session): (DecisionId, Option<SessionId>),
    ) -> BegunCall {
        let sessions = &self.daemon.sessions;
        let recorded = RecordedCall::request(sessions.recorder(), standing, act).by(call);
        match session.and_then(|session| sessions.get(session)) {
            Some(session) => recorded.about(session).begin_anyway(),
            None => recorded.begin_anyway(),
        }
    }

    /// Records that an attached person was refused what it asked of a session, which recorded nothing itself.
    pub fn note_person_refused(
        &self,
        standing: &Standing,
        session: &Session,
        act: &'static str,
        error: &SurfaceError,
    ) {
        let recorder = self.daemon.sessions.recorder();
        let recorded = RecordedCall::request(recorder, standing, act).about(session.clone());
        self.note_refused(&recorded, error);
    }

    /// Checks the rights of a call and gives it what it may use. Notes the session that it is about, if it is known
    /// before the tool runs, also for a call that is refused.
    fn allow(
        &self,
        entry: &ToolEntry,
        call: &mut Call,
        arguments: &CallArguments,
        about: &mut Option<Session>,
    ) -> Result<(), SurfaceError> {
        let now = self.daemon.now();
        match entry.access {
            ToolAccess::Read | ToolAccess::ReadMount => {}
            ToolAccess::WriteMount => call.permit = Some(self.decide_mount(&call.standing)?),
            ToolAccess::Create => {
                let permit = self.daemon.switchboard.decide_create(&call.standing, now)?;
                if !creates(&call.standing) {
                    return Err(Denial::BoundDoor.into());
                }
                call.permit = Some(permit);
                call.creates = Some(self.daemon.sessions.fresh_id());
            }
            ToolAccess::Approve => call.permit = Some(decide_approve(&call.standing)?),
            ToolAccess::OperateSession | ToolAccess::Operate => {
                let given = arguments.get("session").and_then(serde_json::Value::as_str);
                let session = given
                    .map(|given| find_session(&self.daemon.sessions, &call.standing, Some(given)));
                let permit = match session {
                    Some(found) if entry.access == ToolAccess::OperateSession => {
                        decide_operate_at(&call.standing, about.insert(found?))
                    }
                    found => {
                        *about = found.and_then(Result::ok);
                        decide_operate(&call.standing)
                    }
                };
                call.permit = Some(permit?);
            }
            ToolAccess::WriteSession(PermittedAct::Lease)
                if arguments.get("surface").is_some_and(|it| !it.is_null()) =>
            {
                let lease = self.mount_lease(&call.standing, text(arguments, "surface")?)?;
                self.allow_mount(call, lease)?;
                if text(arguments, "session")?.is_some() {
                    let problem = "give this or `session`, not both";
                    return Err(SurfaceError::argument("surface", problem));
                }
            }
            ToolAccess::WriteSession(act) => {
                let given = text(arguments, "session")?;
                let session = find_session(&self.daemon.sessions, &call.standing, given)?;
                *about = Some(session.clone());
                call.target = Some(self.target(&call.standing, session, act)?);
            }
            ToolAccess::WriteLease => {
                let key = text(arguments, "lease_id")?;
                if let Some(lease) = self.mount_of_lease(&call.standing, key) {
                    return self.allow_mount(call, lease);
                }
                let session = self.leased(&call.standing, key)?;
                *about = Some(session.clone());
                call.target = Some(self.target(&call.standing, session, PermittedAct::Lease)?);
            }
        }
        Ok(())
    }

    /// Whether a tool exists for this caller. Tools of the daemon's operators exist only at their socket, and mounted
    /// tools for the daemon's own tenant and those whose tool filter names them: servers run as the daemon's user.
    fn at_door(&self, entry: &ToolEntry, standing: &Standing) -> bool {
        let of_roles = match entry.access {
            ToolAccess::Operate => standing.is_operator(),
            ToolAccess::OperateSession => standing.operates_some(),
            ToolAccess::Approve => standing.approves(),
            ToolAccess::ReadMount | ToolAccess::WriteMount => sees_mounts(&self.daemon, standing),
            ToolAccess::Read
            | ToolAccess::Create
            | ToolAccess::WriteSession(_)
            | ToolAccess::WriteLease => {
                let of_both = OF_BOTH_SETS.contains(&&*entry.name);
                standing.sessions || (self.daemon.toolsets.mounts && of_both)
            }
        };
        of_roles && standing.has_tool(&entry.name)
    }

    fn leased(&self, standing: &Standing, key: Option<&str>) -> Result<Session, SurfaceError> {
        let missing = || SurfaceError::argument("lease_id", "missing");
        let key = lease_id(key.ok_or_else(missing)?)?;
        // A lease of an invisible session gets the same answer as an unknown one.
        let session = self.daemon.sessions.of_lease(key);
        let seen = session.filter(|session| standing.sees(session));
        seen.ok_or_else(|| {
            // A session that does not answer yet may own the lease.
            match seen_known(&self.daemon.sessions, standing).iter().any(Known::is_silent) {
                true => SessionError::Silent.into(),
                false => SurfaceError::LeaseUnknown,
            }
        })
    }

    fn target(
        &self,
        standing: &Standing,
        session: Session,
        act: PermittedAct,
    ) -> Result<Target, SurfaceError> {
        let now = self.daemon.now();
        let permit = self.daemon.switchboard.decide(standing, act, Some(&session), now)?;
        Ok(Target { session, permit })
    }
}

/// Whether this caller can create sessions. A client at one session's socket cannot, because the answer could reveal
/// names of other sessions.
fn creates(standing: &Standing) -> bool {
    standing.bound_session().is_none()
}

/// Reads a text argument that a right depends on, before the tool parses the rest.
fn text<'a>(arguments: &'a CallArguments, name: &str) -> Result<Option<&'a str>, SurfaceError> {
    match arguments.get(name) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(SurfaceError::argument(name, "must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_for_its_tool_and_its_outcome_alone() {
        let calls = Calls::default();
        calls.count(&Arc::from("resize"), CallOutcome::Failed(Code::LeaseHeld));
        calls.count(&Arc::from("resize"), CallOutcome::Failed(Code::LeaseHeld));
        calls.count(&Arc::from("why"), CallOutcome::Done);
        let expected = BTreeMap::from([
            (Arc::from("resize"), BTreeMap::from([("lease_held", 2)])),
            (Arc::from("why"), BTreeMap::from([("ok", 1)])),
        ]);
        assert_eq!(*calls.counts(), expected);
    }
}
