//! Leases: as anyone may see them, and with their key as their holder receives them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::caller::Kind;
use crate::core::lease::error::EndCause;
use crate::core::lease::view::{HoldingView, LeaseView};
use crate::core::moment::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    Agent,
    Human,
    Operator,
}

impl From<Kind> for PrincipalKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Agent => Self::Agent,
            Kind::Human => Self::Human,
            Kind::Operator => Self::Operator,
        }
    }
}

/// A lease without its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseWire {
    pub held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<PrincipalKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_to: Option<String>,
    /// The holder lost its connection when the daemon restarted, and may present the lease id again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reclaimable: bool,
    /// Left out of deltas, since every renewal moves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    #[serde(default)]
    pub waiters: usize,
    /// The lease that waits while a person types; it comes back with a higher epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspendedWire>,
}

/// A lease that waits until a person is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuspendedWire {
    pub by: String,
    pub kind: PrincipalKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&HoldingView> for SuspendedWire {
    fn from(holding: &HoldingView) -> Self {
        Self {
            by: holding.by.to_string(),
            kind: holding.kind.into(),
            reason: holding.reason.as_deref().map(str::to_owned),
        }
    }
}

impl From<&LeaseView> for LeaseWire {
    fn from(view: &LeaseView) -> Self {
        let holding = view.holding.as_ref();
        Self {
            held: holding.is_some(),
            by: holding.map(|holding| holding.by.to_string()),
            kind: holding.map(|holding| holding.kind.into()),
            epoch: holding.map(|holding| holding.epoch.0),
            reason: holding.and_then(|holding| holding.reason.as_deref().map(str::to_owned)),
            offered_to: holding.and_then(|it| it.offered_to.as_ref().map(ToString::to_string)),
            reclaimable: holding.is_some_and(|holding| holding.reclaimable),
            expires_in_ms: None,
            waiters: view.waiters,
            suspended: view.suspended.as_ref().map(SuspendedWire::from),
        }
    }
}

impl LeaseWire {
    /// The lease with the time it has left.
    #[must_use]
    pub fn expiring(mut self, at: Option<Moment>, now: Moment) -> Self {
        if self.held {
            self.expires_in_ms = at.map(|at| now.until(at).as_millis() as u64);
        }
        self
    }
}

/// A lease with its key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantWire {
    pub lease_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The mounted server whose lease it is, if it is none of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    pub epoch: u64,
    pub ttl_ms: u64,
    pub expires_in_ms: u64,
    /// By the wall clock, RFC 3339; for display only.
    pub expires_at: String,
    /// It had expired, and the session was free since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revived: bool,
}

/// The lease that a write was made under.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseLeft {
    pub lease_id: String,
    pub expires_in_ms: u64,
}

/// The result of `release_lease`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReleasedWire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    pub outcome: ReleaseOutcome,
    /// How long an offer stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_for_ms: Option<u64>,
    /// How a lease that was already gone had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<LeaseEndCause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseOutcome {
    Freed,
    HandedOver,
    Offered,
    Returned,
    AlreadyGone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEndCause {
    Released,
    Expired,
    HeldTooLong,
    Disconnected,
    Undeliverable,
    Preempted,
    HandedOver,
    Replaced,
    WritingSwitchedOff,
    SessionEnded,
    SessionRestarted,
    RightEnded,
}

impl From<&EndCause> for LeaseEndCause {
    fn from(cause: &EndCause) -> Self {
        match cause {
            EndCause::Released => Self::Released,
            EndCause::Expired => Self::Expired,
            EndCause::HeldTooLong => Self::HeldTooLong,
            EndCause::Disconnected => Self::Disconnected,
            EndCause::Undeliverable => Self::Undeliverable,
            EndCause::Preempted { .. } => Self::Preempted,
            EndCause::HandedOver { .. } => Self::HandedOver,
            EndCause::Replaced { .. } => Self::Replaced,
            EndCause::WritingSwitchedOff => Self::WritingSwitchedOff,
            EndCause::SessionEnded => Self::SessionEnded,
            EndCause::SessionRestarted => Self::SessionRestarted,
            EndCause::RightEnded => Self::RightEnded,
        }
    }
}

/// The notification that reports to its holder what became of a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseNotice {
    pub event: LeaseNews,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The mount whose lease it is, if it is none of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    pub epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<LeaseEndCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseNews {
    LeaseLost,
    LeaseSuspended,
    LeaseResumed,
}

/// An entry of the resource `termgate://leases`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedLease {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The mounted server whose lease it is, if it is none of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    pub lease: LeaseWire,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::core::caller::PrincipalName;
    use crate::core::ids::{Epoch, PrincipalId, TenantId};

    fn holding(label: &str, kind: Kind, number: u64) -> HoldingView {
        HoldingView {
            by: PrincipalName {
                label: Arc::from(label),
                principal: PrincipalId::Connection(number),
            },
            tenant: TenantId::of_uid(1_000),
            kind,
            epoch: Epoch(number),
            reason: Some(Box::from("deploying")),
            offered_to: None,
            reclaimable: false,
        }
    }

    #[test]
    fn the_suspended_lease_is_shown_below_the_person_who_types() {
        let view = LeaseView {
            holding: Some(holding("ada", Kind::Human, 5)),
            suspended: Some(holding("bot", Kind::Agent, 4)),
            waiters: 0,
        };
        let shape = serde_json::to_value(LeaseWire::from(&view)).unwrap();
        assert_eq!((&shape["by"], &shape["kind"]), (&json!("ada#p5"), &json!("human")));
        let suspended = json!({"by": "bot#p4", "kind": "agent", "reason": "deploying"});
        assert_eq!(shape["suspended"], suspended);
    }

    #[test]
    fn only_a_lease_that_can_be_reclaimed_after_a_restart_says_so() {
        let former = PrincipalName { label: Arc::from("bot"), principal: PrincipalId::FORMER };
        let held = holding("bot", Kind::Agent, 4);
        let reclaimable = HoldingView { by: former, reclaimable: true, ..held.clone() };
        let shape = |holding| LeaseWire::from(&LeaseView { holding, ..LeaseView::default() });
        let written = serde_json::to_value(shape(Some(reclaimable))).unwrap();
        assert_eq!((&written["held"], &written["by"]), (&json!(true), &json!("bot#former")));
        assert_eq!(written["reclaimable"], json!(true));
        let written = serde_json::to_value(shape(Some(held))).unwrap();
        assert!(written.get("reclaimable").is_none());
    }

    #[test]
    fn a_lease_without_a_suspended_one_does_not_mention_it() {
        let shape = serde_json::to_value(LeaseWire::default()).unwrap();
        assert!(shape.get("suspended").is_none());
    }
}
