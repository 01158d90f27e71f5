//! The limits of a lease, and the terms on which a caller takes it within them: those it asks for, else the
//! defaults.

use std::time::Duration;

use crate::core::ids::LeaseId;
use crate::core::lease::LeaseManager;
use crate::core::lease::error::LeaseError;
use crate::core::lease::request::{AcquireRequest, Grant, OnDisconnect, TakeRule};
use crate::core::moment::Moment;

/// The bounds of one session's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLimits {
    pub ttl_min: Duration,
    /// How long a lease lasts when nobody says.
    pub ttl_default: Duration,
    pub ttl_max: Duration,
    /// How long a lease outlives its holder's connection when nobody says.
    pub grace_default: Duration,
    /// How long a lease that was handed to somebody waits to be taken up.
    pub offer: Duration,
    /// How long one holding may last while others wait, counted from its grant.
    pub max_hold: Duration,
    /// How long a person who types keeps the keyboard after the last key.
    pub person_idle: Duration,
    pub waiters_max: usize,
    pub tenant_waiters_max: usize,
}

impl Default for LeaseLimits {
    fn default() -> Self {
        Self {
            ttl_min: Duration::from_secs(1),
            ttl_default: Duration::from_secs(30),
            ttl_max: Duration::from_secs(600),
            grace_default: Duration::from_secs(5),
            offer: Duration::from_secs(10),
            max_hold: Duration::from_secs(600),
            person_idle: Duration::from_secs(10),
            waiters_max: 16,
            tenant_waiters_max: 4,
        }
    }
}

/// What a caller wants of a lease once it gets one.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub fresh: LeaseId,
    pub ttl: Duration,
    pub on_disconnect: OnDisconnect,
    pub reason: Option<Box<str>>,
    pub span: LeasePurpose,
}

/// What a lease was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeasePurpose {
    /// To be kept until it ends.
    Kept,
    /// For one call, to be given back when the call is done.
    OneCall,
    /// For a person who types, until it pauses.
    Typing,
    /// For a person who took the keyboard over, until it hands it back.
    TakenOver,
}

impl LeasePurpose {
    pub(super) fn is_persons(self) -> bool {
        match self {
            Self::Typing | Self::TakenOver => true,
            Self::Kept | Self::OneCall => false,
        }
    }
}

impl LeaseManager {
    pub(super) fn default_terms(&self, fresh: LeaseId) -> Terms {
        Terms {
            fresh,
            ttl: self.limits.ttl_default,
            on_disconnect: OnDisconnect::Grace(self.limits.grace_default),
            reason: None,
            span: LeasePurpose::Kept,
        }
    }

    /// The terms on which a call takes a free lease, if its rule lets it.
    pub(super) fn terms_under(&self, take: TakeRule) -> Result<Option<Terms>, LeaseError> {
        match take {
            TakeRule::HeldOnly => Ok(None),
            TakeRule::ForThisCall(fresh) => {
                // The call may be over, and its connection gone, before its last byte is taken.
                let on_disconnect = OnDisconnect::Keep;
                Ok(Some(Terms {
                    on_disconnect,
                    span: LeasePurpose::OneCall,
                    ..self.default_terms(fresh)
                }))
            }
            TakeRule::AndKeep(fresh, ttl) => {
                Ok(Some(Terms { ttl: self.checked(ttl)?, ..self.default_terms(fresh) }))
            }
        }
    }

    pub(super) fn checked(&self, ttl: Duration) -> Result<Duration, LeaseError> {
        let (min, max) = (self.limits.ttl_min, self.limits.ttl_max);
        let fits = (min..=max).contains(&ttl);
        if fits { Ok(ttl) } else { Err(LeaseError::TtlOutOfBounds { min, max }) }
    }

    pub(super) fn asked_terms(&self, request: &AcquireRequest) -> Result<Terms, LeaseError> {
        let default = self.default_terms(request.fresh);
        Ok(Terms {
            ttl: self.checked(request.ttl.unwrap_or(default.ttl))?,
            on_disconnect: request.on_disconnect.unwrap_or(default.on_disconnect),
            reason: request.reason.clone(),
            ..default
        })
    }

    /// Puts the holder's lease on the terms it has asked for again.
    pub(super) fn adopt(&mut self, now: Moment, request: AcquireRequest, grant: Grant) -> Grant {
        let held = self.in_force();
        if held.span.is_persons() {
            return grant;
        }
        held.ttl = request.ttl.unwrap_or(held.ttl);
        held.on_disconnect = request.on_disconnect.unwrap_or(held.on_disconnect);
        held.reason = request.reason.or(held.reason.take());
        held.span = LeasePurpose::Kept;
        held.renew(now);
        held.grant(now, grant.revived)
    }
}
