//! What has a lease: a session or a mount, for the tools that ask for leases, prolong them and give them back.

use std::fmt;
use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::ids::LeaseId;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::WriteError;
use crate::core::lease::request::{AcquireRequest, Grant, ReleaseRequest, Released, RenewRequest};
use crate::core::policy::bound::PermitBound;
use crate::core::policy::{Permit, PermittedAct};
use crate::session::clock::Clock;
use crate::session::command::Accepted;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::surface::answer::session::LeaseNames;
use crate::surface::argument::lease_id;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::MountLease;
use crate::surface::terminal::writing::presented;

/// A session or mount whose lease a call is about.
#[derive(Clone, Debug)]
pub enum Leased {
    Session(Session),
    Mount(Arc<MountLease>),
}

/// The same, with the right to its lease.
#[derive(Debug)]
pub struct LeaseTarget {
    pub of: Leased,
    pub permit: Permit,
}

impl Call {
    /// Takes what the call is about out of it.
    pub fn take_leased(&mut self) -> Result<LeaseTarget, SurfaceError> {
        if let Some(lease) = self.mount_lease.take() {
            return Ok(LeaseTarget { of: Leased::Mount(lease), permit: self.take_permit()? });
        }
        let target = self.take_target()?;
        Ok(LeaseTarget { of: Leased::Session(target.session), permit: target.permit })
    }

    /// The session or mount that an operator names.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] unless one of the two is named that there is.
    pub fn leased(
        &self,
        session: Option<&str>,
        surface: Option<&str>,
    ) -> Result<Leased, SurfaceError> {
        let Some(surface) = surface else { return Ok(Leased::Session(self.session(session)?)) };
        if session.is_some() {
            return Err(SurfaceError::argument("surface", "give this or `session`, not both"));
        }
        Ok(Leased::Mount(self.daemon.mount_leases.find(&self.daemon.mounts, surface)?))
    }
}

impl Leased {
    /// What it is called in answers: the id of a session, or the name of a mount.
    pub fn names(&self) -> LeaseNames {
        match self {
            Self::Session(session) => (Some(session.id().to_string()), None),
            Self::Mount(lease) => (None, Some(lease.mount().name().to_string())),
        }
    }

    /// The lease id that the caller presents.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] for what is no lease id, and for the lease of another session or mount.
    pub fn presented(
        &self,
        call: &Call,
        given: Option<&str>,
    ) -> Result<Option<LeaseId>, SurfaceError> {
        match self {
            Self::Session(session) => presented(call, session, given),
            Self::Mount(_) => given.map(lease_id).transpose(),
        }
    }

    /// Has the caller's connection told of when it closes.
    pub fn touched(&self, call: &Call) {
        match self {
            Self::Session(session) => call.touched(session),
            // Mounts are told of each connection.
            Self::Mount(_) => {}
        }
    }
}

impl fmt::Display for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) => write!(f, "session {}", session.id()),
            Self::Mount(lease) => write!(f, "{}", lease.mount().name()),
        }
    }
}

impl LeaseTarget {
    /// Asks for the lease, waiting in line as long as the request says.
    ///
    /// # Errors
    /// Why there is none to be had.
    pub async fn acquire(
        &self,
        (caller, clock): (Caller, &Clock),
        request: AcquireRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Grant, SurfaceError> {
        let key = self.limited(key)?;
        match &self.of {
            Leased::Session(session) => {
                Ok(session.acquire(&self.permit, caller, request, key, accepted).await?)
            }
            Leased::Mount(lease) => {
                self.check(&caller, clock)?;
                drop(accepted);
                let acquired = lease.acquire(&caller, request, key).await;
                acquired.map_err(|it| lease.refusal(&caller, it))
            }
        }
    }

    /// Prolongs the lease by name.
    ///
    /// # Errors
    /// Why the caller has none to renew.
    pub async fn renew(
        &self,
        (caller, clock): (Caller, &Clock),
        request: RenewRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Grant, SurfaceError> {
        let key = self.limited(key)?;
        match &self.of {
            Leased::Session(session) => {
                Ok(session.renew(&self.permit, caller, request, key, accepted).await?)
            }
            Leased::Mount(lease) => {
                self.check(&caller, clock)?;
                lease.renew(&caller, request, key).map_err(|it| lease.refusal(&caller, it))
            }
        }
    }

    /// Gives the lease back, or hands it on.
    ///
    /// # Errors
    /// Why the caller has none to release.
    pub async fn release(
        &self,
        (caller, clock): (Caller, &Clock),
        request: ReleaseRequest,
        key: Option<IdempotencyKey>,
        accepted: Accepted,
    ) -> Result<Released, SurfaceError> {
        let key = self.limited(key)?;
        match &self.of {
            Leased::Session(session) => {
                Ok(session.release(&self.permit, caller, request, key, accepted).await?)
            }
            Leased::Mount(lease) => {
                self.check(&caller, clock)?;
                lease.release(&caller, request, key).map_err(|it| lease.refusal(&caller, it))
            }
        }
    }

    /// The key of the call, which has no effect of its own if that is all that its permit allows.
    fn limited(&self, key: Option<IdempotencyKey>) -> Result<Option<IdempotencyKey>, SurfaceError> {
        match (self.permit.bound(), key) {
            (Some(PermitBound::Repetition), Some(key)) => Ok(Some(key.of_repetition())),
            (Some(PermitBound::Repetition), None) => {
                Err(SessionError::from(WriteError::NotRepeated).into())
            }
            (
                Some(PermitBound::Terminal(_) | PermitBound::Line(_) | PermitBound::Unshared)
                | None,
                key,
            ) => Ok(key),
        }
    }

    /// Checks that the permit is this caller's, for a mount.
    fn check(&self, caller: &Caller, clock: &Clock) -> Result<(), SurfaceError> {
        self.permit.check_principal(caller.principal)?;
        Ok(self.permit.check(PermittedAct::CallMount, None, clock.now())?)
    }
}
