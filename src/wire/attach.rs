//! The requests of observers and attached people, and what answers them.
//!
//! `Id` is the id of the request that attached, as each side has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::frame::delta::Lane;
use crate::wire::lease::LeaseWire;

/// The parameters of `termgate/observe`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserveRequest {
    pub session: Option<String>,
    pub since: Option<u64>,
    #[serde(default)]
    pub top: u16,
    pub rows: Option<u16>,
    #[serde(default)]
    pub lane: LaneWord,
    pub max_rate_hz: Option<u32>,
    #[serde(rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneWord {
    #[default]
    Foreground,
    Recent,
    History,
}

impl From<LaneWord> for Lane {
    fn from(word: LaneWord) -> Self {
        match word {
            LaneWord::Foreground => Self::Foreground,
            LaneWord::Recent => Self::Recent,
            LaneWord::History => Self::History,
        }
    }
}

/// The parameters of `termgate/attach`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// The session created last of those that run, when left out.
    pub session: Option<String>,
    pub cols: u16,
    pub rows: u16,
    #[serde(default)]
    pub view_only: bool,
    #[serde(rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

/// The result of `termgate/attach`, which comes when the person is detached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttachEnd {
    pub session: String,
    pub name: String,
    pub ended: Detached,
}

/// Why a person is no longer attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detached {
    Detached,
    Exited,
    Closed,
}

/// The parameters of `termgate/attach/input`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRequest<Id> {
    pub attach: Id,
    /// Base64 of the bytes.
    pub data: String,
    /// Input with the same key is typed once, however often it is sent.
    pub idempotency_key: Option<String>,
    /// Whether the session takes the size of the person's view.
    #[serde(default = "takes_size")]
    pub resize: bool,
    #[serde(rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

fn takes_size() -> bool {
    true
}

/// What became of typed input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypedResult {
    pub written: usize,
    pub queued_bytes: usize,
    pub discarded: usize,
    /// The name of the person who typed.
    pub you: String,
}

/// The parameters of `termgate/attach/size`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRequest<Id> {
    pub attach: Id,
    pub cols: u16,
    pub rows: u16,
    #[serde(rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

/// The result of `termgate/attach/size`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SizeResult {
    pub you: String,
}

/// The parameters of `termgate/attach/take_over` and `termgate/attach/hand_back`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyboardRequest<Id> {
    pub attach: Id,
    #[serde(rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

/// The result of `termgate/attach/take_over`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakenOver {
    pub lease: LeaseWire,
    pub you: String,
}

/// The result of `termgate/attach/hand_back`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HandedBack {
    /// Whether the person had the keyboard.
    pub handed_back: bool,
}
