//! Shapes on the wire that several tools and resources share, made by hand from core values.
//!
//! Core types are not serializable; the words and units that clients see are fixed here.

pub mod activity;
pub mod budget;
pub mod command;
pub mod date;
pub mod delta;
pub mod gap;
pub mod lease;
pub mod line;
pub mod modes;
pub mod page;
pub mod session;

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::frame::{Cursor, CursorShape, Exit, ScreenMode};
use crate::core::lease::view::{HoldingView, LeaseView};
use crate::core::moment::Moment;
use crate::session::pty::signal::name_of_signal;

/// A lease, as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeaseShape {
    pub held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_to: Option<String>,
    /// Its shim lost its connection when the daemon started anew, and may take it back by its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reclaimable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    pub waiters: usize,
    /// Whose lease waits while a person types; it comes back with a higher epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspendedShape>,
}

/// A lease that waits for a person to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SuspendedShape {
    pub by: String,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SuspendedShape {
    fn of(holding: &HoldingView) -> Self {
        Self {
            by: holding.by.to_string(),
            kind: holding.kind.as_str(),
            reason: holding.reason.as_deref().map(str::to_owned),
        }
    }
}

impl LeaseShape {
    /// The lease as a frame tells it; the expiry, which frames do not hold, is left out.
    pub fn of(view: &LeaseView) -> Self {
        let holding = view.holding.as_ref();
        Self {
            held: holding.is_some(),
            by: holding.map(|holding| holding.by.to_string()),
            kind: holding.map(|holding| holding.kind.as_str()),
            epoch: holding.map(|holding| holding.epoch.0),
            reason: holding.and_then(|holding| holding.reason.as_deref().map(str::to_owned)),
            offered_to: holding.and_then(|it| it.offered_to.as_ref().map(ToString::to_string)),
            reclaimable: holding.is_some_and(|holding| holding.reclaimable),
            expires_in_ms: None,
            waiters: view.waiters,
            suspended: view.suspended.as_ref().map(SuspendedShape::of),
        }
    }

    /// The lease with the time it has left.
    #[must_use]
    pub fn expiring(mut self, at: Option<Moment>, now: Moment) -> Self {
        if self.held {
            self.expires_in_ms = at.map(|at| now.until(at).as_millis() as u64);
        }
        self
    }
}

/// How a program ended; neither code nor signal when nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExitShape {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// `shim_lost`: the process that held the terminal is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
}

impl From<Exit> for ExitShape {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self { code: Some(code), signal: None, cause: None },
            Exit::Signal(signal) => Self { code: None, signal: Some(signal), cause: None },
            Exit::Unknown => Self { code: None, signal: None, cause: None },
            Exit::Lost => Self { code: None, signal: None, cause: Some("shim_lost") },
        }
    }
}

impl std::fmt::Display for ExitShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(number)) => match name_of_signal(number) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {number}"),
            },
            (None, None) if self.cause.is_some() => {
                f.write_str("ended, as the process that held its terminal is gone")
            }
            (None, None) => f.write_str("ended, nobody knows how"),
        }
    }
}

/// The cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CursorWire {
    pub row: u64,
    pub col: u16,
    pub visible: bool,
    pub shape: &'static str,
}

impl From<Cursor> for CursorWire {
    fn from(cursor: Cursor) -> Self {
        let shape = match cursor.shape {
            CursorShape::Block => "block",
            CursorShape::Underline => "underline",
            CursorShape::Beam => "beam",
        };
        Self { row: cursor.row.0, col: cursor.col, visible: cursor.visible, shape }
    }
}

/// Whether there is nothing to tell of it.
#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The word for a screen mode.
pub fn mode_word(mode: ScreenMode) -> &'static str {
    match mode {
        ScreenMode::Normal => "normal",
        ScreenMode::Alternate => "alt",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::core::caller::{Kind, PrincipalName};
    use crate::core::ids::{Epoch, PrincipalId};

    fn holding(label: &str, kind: Kind, number: u64) -> HoldingView {
        HoldingView {
            by: PrincipalName {
                label: Arc::from(label),
                principal: PrincipalId::Connection(number),
            },
            kind,
            epoch: Epoch(number),
            reason: Some(Box::from("deploying")),
            offered_to: None,
            reclaimable: false,
        }
    }

    #[test]
    fn whose_lease_waits_is_shown_below_the_person_who_types() {
        let view = LeaseView {
            holding: Some(holding("ada", Kind::Human, 5)),
            suspended: Some(holding("bot", Kind::Agent, 4)),
            waiters: 0,
        };
        let shape = serde_json::to_value(LeaseShape::of(&view)).unwrap();
        assert_eq!((&shape["by"], &shape["kind"]), (&json!("ada#p5"), &json!("human")));
        let suspended = json!({"by": "bot#p4", "kind": "agent", "reason": "deploying"});
        assert_eq!(shape["suspended"], suspended);
    }

    #[test]
    fn a_lease_that_is_to_be_taken_back_after_a_restart_says_so_and_no_other_does() {
        let former = PrincipalName { label: Arc::from("bot"), principal: PrincipalId::FORMER };
        let held = holding("bot", Kind::Agent, 4);
        let reclaimable = HoldingView { by: former, reclaimable: true, ..held.clone() };
        let shape = |holding| LeaseShape::of(&LeaseView { holding, ..LeaseView::default() });
        let told = serde_json::to_value(shape(Some(reclaimable))).unwrap();
        assert_eq!((&told["held"], &told["by"]), (&json!(true), &json!("bot#former")));
        assert_eq!(told["reclaimable"], json!(true));
        let told = serde_json::to_value(shape(Some(held))).unwrap();
        assert!(told.get("reclaimable").is_none());
    }

    #[test]
    fn a_lease_below_which_none_waits_does_not_mention_it() {
        let shape = serde_json::to_value(LeaseShape::of(&LeaseView::default())).unwrap();
        assert!(shape.get("suspended").is_none());
    }
}
