//! Errors of calls that rules refuse, or want to be approved first.

use crate::core::code::Code;
use crate::surface::error::{RuleRefusal, WhyRefused};
use crate::wire::error::{ErrorDetails, ErrorWire};

/// Why a call may not pass, or not yet.
pub(super) fn ruled(refusal: &RuleRefusal) -> ErrorWire {
    use WhyRefused::{AsksPerson, Denied, DeniedBy, TooLong, Waits, WouldAsk};
    let (code, retry_after) = match &refusal.why {
        Denied | TooLong => (Code::PolicyDenied, None),
        DeniedBy { retry_after, .. } => (Code::PolicyDenied, Some(*retry_after)),
        Waits { .. } | AsksPerson(_) | WouldAsk => (Code::ApprovalRequired, None),
    };
    let mut details = ErrorDetails {
        decision_id: Some(refusal.decision.to_string()),
        rule: refusal.rule.as_deref().map(str::to_owned),
        ..ErrorDetails::default()
    };
    if let Waits { id, expires_in } = &refusal.why {
        details.approval_id = Some(id.to_string());
        details.expires_in_ms = Some(expires_in.as_millis() as u64);
    }
    let mut wire = ErrorWire::because(code, refusal).details(details);
    wire.retry_after_ms = retry_after.map(|time| time.as_millis() as u64);
    if let TooLong = refusal.why {
        wire.hint =
            "Write what is long to a file, which a person can read, and use that.".to_owned();
    }
    let id = wire.details.as_ref().and_then(|details| details.approval_id.as_ref());
    let id = id.map(|id| format!(" {id}")).unwrap_or_default();
    wire.hint = wire.hint.replace(" APPROVAL_ID", &id);
    wire
}
