//! On which terms a caller takes a lease: those it asks for, where it asks, and else the defaults.
//!
//! Nothing here decides whether it gets one.

use std::time::Duration;

use crate::core::ids::LeaseId;
use crate::core::lease::LeaseManager;
use crate::core::lease::error::LeaseError;
use crate::core::lease::request::{AcquireRequest, Grant, OnDisconnect, TakeRule};
use crate::core::moment::Moment;

/// What a caller wants of a lease once it gets one.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub fresh: LeaseId,
    pub ttl: Duration,
    pub on_disconnect: OnDisconnect,
    pub reason: Option<Box<str>>,
    pub span: Span,
}

/// What a lease was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// To be kept until it ends.
    Kept,
    /// For one call, to be given back when the call is done.
    OneCall,
    /// For a person who types, until it pauses.
    Typing,
    /// For a person who took the keyboard over, until it hands it back.
    TakenOver,
}

impl Span {
    /// Whether a person has the lease.
    pub(super) fn is_persons(self) -> bool {
        match self {
            Self::Typing | Self::TakenOver => true,
            Self::Kept | Self::OneCall => false,
        }
    }
}

impl LeaseManager {
    /// The terms of somebody who has asked for none.
    pub(super) fn default_terms(&self, fresh: LeaseId) -> Terms {
        Terms {
            fresh,
            ttl: self.limits.ttl_default,
            on_disconnect: OnDisconnect::Grace(self.limits.grace_default),
            reason: None,
            span: Span::Kept,
        }
    }

    /// The terms on which a call takes a free lease, if its rule lets it.
    pub(super) fn terms_under(&self, take: TakeRule) -> Result<Option<Terms>, LeaseError> {
        match take {
            TakeRule::HeldOnly => Ok(None),
            TakeRule::ForThisCall(fresh) => {
                // The call may be over, and its connection gone, before its last byte is taken.
                let on_disconnect = OnDisconnect::Keep;
                Ok(Some(Terms { on_disconnect, span: Span::OneCall, ..self.default_terms(fresh) }))
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
        held.span = Span::Kept;
        held.renew(now);
        held.grant(now, grant.revived)
    }
}
