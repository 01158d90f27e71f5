//! `send_text`: types or pastes text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::keys::paste::PasteRule;
use crate::core::policy::PermittedAct;
use crate::session::command::Content;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{WriteOptions, write};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::write::WriteResult;

/// The tool.
#[derive(Debug)]
pub struct SendText;

/// Whether text is sent as a bracketed paste.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Paste {
    #[default]
    Auto,
    Always,
    Never,
}

/// How the text is written in the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Utf8,
    Base64,
}

/// The parameters of `send_text`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    text: String,
    /// Press Enter after it
    #[serde(default)]
    enter: bool,
    #[serde(default)]
    paste: Paste,
    #[serde(default)]
    encoding: Encoding,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendText {
    const NAME: &'static str = "send_text";
    const TITLE: &'static str = "Type text";
    const DESCRIPTION: &'static str = "Types text under your lease; enter=true runs it. With \
        wait_ms or until it also waits and returns what changed. Use send_keys for keys.";
    const ACCESS: Access = Access::WriteSession(PermittedAct::Type);

    type Parameters = Parameters;
    type Result = WriteResult;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<WriteResult>, SurfaceError> {
        let Parameters { text, enter, paste, encoding, options, .. } = parameters;
        if text.is_empty() && !enter {
            return Err(SurfaceError::argument("text", "nothing to send"));
        }
        let content = match encoding {
            Encoding::Utf8 => Content::Text { text, paste: paste.into(), enter },
            Encoding::Base64 => {
                let bytes = STANDARD.decode(text).map_err(|error| {
                    SurfaceError::argument("text", format!("not base64: {error}"))
                })?;
                Content::Bytes { bytes, enter }
            }
        };
        write(call, content, options).await
    }
}

impl From<Paste> for PasteRule {
    fn from(paste: Paste) -> Self {
        match paste {
            Paste::Auto => Self::Auto,
            Paste::Always => Self::Always,
            Paste::Never => Self::Never,
        }
    }
}
