//! The gateway: the single path of every call, whatever its transport.
//!
//! It finds the tool, checks the right to call it and runs it. No tool can be reached without these checks.

pub mod calls;
pub mod toolset;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::JsonObject;

use crate::core::ids::TenantId;
use crate::core::policy::{Denial, Door, PermittedAct, Standing, decide_operate};
use crate::core::quota::Quota;
use crate::core::rate::{CallRates, TooOften};
use crate::gateway::calls::Calls;
use crate::session::command::Accepted;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::registry::silent::Known;
use crate::surface::call::{Call, Daemon, Target, Touched, find_session, seen_known};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::lease_id;
use crate::surface::tool::{Access, Answer, Entry};

/// A call before its checks.
#[derive(Debug)]
pub struct Request {
    pub standing: Standing,
    pub arguments: JsonObject,
    pub accepted: Accepted,
    pub touched: Touched,
}

#[derive(Debug)]
pub struct Gateway {
    daemon: Arc<Daemon>,
    entries: Vec<Entry>,
    rates: Mutex<CallRates>,
    calls: Calls,
}

impl Gateway {
    /// A gateway to all tools. `per_second` limits the calls of each tenant; `own` is the daemon's tenant.
    pub fn new(daemon: Arc<Daemon>, own: TenantId, per_second: Quota) -> Self {
        let rates = Mutex::new(CallRates::new(own, per_second));
        let entries = crate::surface::entries();
        let calls = Calls::of(entries.iter().map(|entry| entry.name));
        Self { daemon, entries, rates, calls }
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
        if standing.door == Door::Operator {
            return Ok(());
        }
        let now = self.daemon.now();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub fn entry(&self, name: &str, standing: &Standing) -> Option<&Entry> {
        let of_door = |entry: &&Entry| entry.name == name && toolset::at_door(entry, standing);
        self.entries.iter().find(of_door)
    }

    /// The tools that are listed to this caller now.
    pub fn listed(&self, standing: &Standing) -> Vec<&Entry> {
        let now = self.daemon.now();
        let writable = self.daemon.switchboard.could_write(&self.daemon.sessions, standing, now);
        let listed = |entry: &&Entry| {
            toolset::at_door(entry, standing)
                && (writable || !entry.access.writes())
                && (entry.access != Access::Create || toolset::creates(standing))
        };
        self.entries.iter().filter(listed).collect()
    }

    /// Counts a call, checks its rights and runs it.
    ///
    /// # Errors
    /// Returns why the call is not allowed, or the error of the tool.
    pub async fn call(&self, entry: &Entry, request: Request) -> Result<Answer, SurfaceError> {
        self.admit(&request.standing)?;
        let mut call = Call {
            daemon: Arc::clone(&self.daemon),
            standing: request.standing,
            accepted: request.accepted,
            target: None,
            permit: None,
            touched: request.touched,
        };
        let now = self.daemon.now();
        match entry.access {
            Access::Read => {}
            Access::Create => {
                let act = PermittedAct::Create;
                let permit = self.daemon.switchboard.decide(&call.standing, act, None, now)?;
                if !toolset::creates(&call.standing) {
                    return Err(Denial::BoundDoor.into());
                }
                call.permit = Some(permit);
            }
            Access::Operate => call.permit = Some(decide_operate(&call.standing)?),
            Access::WriteSession(act) => {
                let given = text(&request.arguments, "session")?;
                let session = find_session(&self.daemon.sessions, &call.standing, given)?;
                call.target = Some(self.target(&call.standing, session, act)?);
            }
            Access::WriteLease => {
                let key = text(&request.arguments, "lease_id")?;
                call.target = Some(self.leased(&call.standing, key)?);
            }
        }
        entry.run(call, request.arguments).await
    }

    fn leased(&self, standing: &Standing, key: Option<&str>) -> Result<Target, SurfaceError> {
        let missing = || SurfaceError::argument("lease_id", "missing");
        let key = lease_id(key.ok_or_else(missing)?)?;
        // A lease of an invisible session gets the same answer as an unknown one.
        let session = self.daemon.sessions.of_lease(key);
        let seen = session.filter(|session| standing.sees(session.id(), session.tenant()));
        let session = seen.ok_or_else(|| {
            // A session that does not answer yet may own the lease.
            match seen_known(&self.daemon.sessions, standing).iter().any(Known::is_silent) {
                true => SessionError::Silent.into(),
                false => SurfaceError::LeaseUnknown,
            }
        })?;
        self.target(standing, session, PermittedAct::Lease)
    }

    fn target(
        &self,
        standing: &Standing,
        session: Session,
        act: PermittedAct,
    ) -> Result<Target, SurfaceError> {
        let now = self.daemon.now();
        let permit = self.daemon.switchboard.decide(standing, act, Some(session.id()), now)?;
        Ok(Target { session, permit })
    }
}

/// Reads a text argument that a right depends on, before the tool parses the rest.
fn text<'a>(arguments: &'a JsonObject, name: &str) -> Result<Option<&'a str>, SurfaceError> {
    match arguments.get(name) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(SurfaceError::argument(name, "is not of type string")),
    }
}
