//! The note with the state of the lease. It contains the lease id, so anyone who can read the note can write
//! to the session.

use std::time::Duration;

use uuid::Uuid;

use crate::core::caller::{Caller, Kind};
use crate::core::ids::{Epoch, LeaseId};
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::record::{HoldingRecord, LeaseRecord};
use crate::core::lease::request::OnDisconnect;
use crate::session::records::{RecordError, cut, millis, read, write};

/// The most bytes of JSON for each text.
const LABEL_BYTES: usize = 128;
const REASON_BYTES: usize = 1_024;

#[derive(serde::Serialize, serde::Deserialize)]
struct LeaseNote {
    #[serde(default)]
    epoch: u64,
    #[serde(default)]
    holding: Option<HoldingNote>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct HoldingNote {
    lease: String,
    tenant: String,
    kind: String,
    #[serde(default)]
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    ttl_ms: Option<u64>,
    on_disconnect: Option<OnDisconnectNote>,
    reason: Option<String>,
    #[serde(default)]
    must_look: bool,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnDisconnectNote {
    Release,
    GraceMs(u64),
    Keep,
}

pub fn to_note(record: &LeaseRecord) -> Vec<u8> {
    let holding = record.holding.as_ref().map(HoldingNote::of);
    write(LeaseNote { epoch: record.epoch.0, holding })
}

/// Reads a note.
pub fn from_note(bytes: &[u8]) -> Result<LeaseRecord, RecordError> {
    let LeaseNote { epoch, holding } = read(bytes)?;
    if epoch > Epoch::MAX.0 {
        return Err(RecordError::value("epoch", epoch));
    }
    let holding = holding.map(HoldingNote::record).transpose()?;
    Ok(LeaseRecord { epoch: Epoch(epoch), holding })
}

impl HoldingNote {
    fn of(holding: &HoldingRecord) -> Self {
        Self {
            lease: holding.lease.to_string(),
            tenant: holding.tenant.as_str().to_owned(),
            kind: holding.kind.as_str().to_owned(),
            label: cut(&holding.label, LABEL_BYTES),
            token: holding.token,
            ttl_ms: Some(millis(holding.ttl)),
            on_disconnect: Some(match holding.on_disconnect {
                OnDisconnect::Release => OnDisconnectNote::Release,
                OnDisconnect::Grace(grace) => OnDisconnectNote::GraceMs(millis(grace)),
                OnDisconnect::Keep => OnDisconnectNote::Keep,
            }),
            reason: holding.reason.as_deref().map(|reason| cut(reason, REASON_BYTES)),
            must_look: holding.must_look,
        }
    }

    fn record(self) -> Result<HoldingRecord, RecordError> {
        let Self { lease, tenant, kind, label, token, ttl_ms, on_disconnect, reason, must_look } =
            self;
        let limits = LeaseLimits::default();
        let kinds = [Kind::Agent, Kind::Human, Kind::Operator];
        let known = kinds.into_iter().find(|known| known.as_str() == kind);
        Ok(HoldingRecord {
            lease: Uuid::parse_str(&lease)
                .map(LeaseId)
                .map_err(|_| RecordError::value("lease", "what is no id"))?,
            tenant: tenant.parse().map_err(|_| RecordError::value("tenant", tenant))?,
            kind: known.ok_or_else(|| RecordError::value("kind", kind))?,
            label: Caller::clean_label(&label),
            token,
            ttl: ttl_ms.map_or(limits.ttl_default, Duration::from_millis),
            on_disconnect: match on_disconnect {
                Some(OnDisconnectNote::Release) => OnDisconnect::Release,
                Some(OnDisconnectNote::GraceMs(grace)) => {
                    OnDisconnect::Grace(Duration::from_millis(grace).min(limits.ttl_max))
                }
                Some(OnDisconnectNote::Keep) => OnDisconnect::Keep,
                None => OnDisconnect::Grace(limits.grace_default),
            },
            reason: reason.map(String::into_boxed_str),
            must_look,
        })
    }
}
