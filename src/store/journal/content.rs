//! What a record keeps of the content of an act.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::core::journal::{ActContent, RefusedInput};
use crate::store::journal::line::{RecordHash, RecordLine};

/// Shorter inputs could be guessed from their hash.
const HASHED_MIN: usize = 16;

impl<'a> RecordLine<'a> {
    /// Adds the content. Without `keep_input`, bytes are counted and hashed instead.
    pub(super) fn with_content(self, content: &ActContent<'a>, keep_input: bool) -> Self {
        match content {
            ActContent::Bytes(bytes) if keep_input => match str::from_utf8(bytes) {
                Ok(text) => Self { text: Some(text.into()), ..self },
                Err(_) => Self { base64: Some(STANDARD.encode(bytes).into()), ..self },
            },
            ActContent::Bytes(bytes) => {
                let hash = (bytes.len() >= HASHED_MIN)
                    .then(|| RecordHash(Sha256::digest(bytes).into()).to_string().into());
                Self { bytes: Some(bytes.len()), sha256: hash, ..self }
            }
            ActContent::Command { bytes, command } if keep_input => {
                let command = Some((*command).into());
                Self { command, ..self.with_content(&ActContent::Bytes(bytes), keep_input) }
            }
            ActContent::Command { command, .. } => {
                self.with_content(&ActContent::Bytes(command.as_bytes()), keep_input)
            }
            ActContent::RefusedCommand(input) if keep_input => {
                Self { command: Some(input.told.into()), ..self.with_length_of(input) }
            }
            ActContent::RefusedInput(input) if keep_input => {
                Self { text: Some(input.told.into()), ..self.with_length_of(input) }
            }
            ActContent::RefusedCommand(input) => {
                self.with_content(&ActContent::Bytes(input.whole.as_bytes()), keep_input)
            }
            // It may name keys, so that its hash would have more bytes than what it stands for.
            ActContent::RefusedInput(input) => Self { bytes: Some(input.whole.len()), ..self },
            ActContent::Secret => Self { secret: true, ..self },
            ActContent::Arguments(json) => {
                let arguments = serde_json::from_str::<&RawValue>(json).ok();
                Self { arguments: arguments.map(Cow::Borrowed), ..self }
            }
            ActContent::Nothing => self,
        }
    }

    /// Says how long refused input was that is not told whole.
    fn with_length_of(self, input: &RefusedInput<'_>) -> Self {
        let is_cut = input.whole != input.told;
        Self { bytes: is_cut.then_some(input.whole.len()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::store::journal::line::RecordKind;

    fn recorded(content: &ActContent<'_>, keep_input: bool) -> serde_json::Value {
        let line = RecordLine::new(UNIX_EPOCH, RecordKind::Refused);
        let mut json = serde_json::json!(line.with_content(content, keep_input));
        let members = json.as_object_mut().unwrap();
        members.retain(|name, _| ["command", "text", "bytes", "sha256"].contains(&name.as_str()));
        json
    }

    #[test]
    fn of_refused_input_no_more_is_kept_than_of_what_is_typed() {
        let input = RefusedInput { whole: "rm -rf / --no-preserve-root", told: "rm … root" };
        let whole = RefusedInput { whole: "C-c", told: "C-c" };
        let command = ActContent::RefusedCommand(input);
        let text = ActContent::RefusedInput(input);
        let json = serde_json::json!({"command": "rm … root", "bytes": 27});
        assert_eq!(recorded(&command, true), json);
        assert_eq!(recorded(&text, true), serde_json::json!({"text": "rm … root", "bytes": 27}));
        let keys = recorded(&ActContent::RefusedInput(whole), true);
        assert_eq!(keys, serde_json::json!({"text": "C-c"}));
        let hashed = recorded(&command, false);
        assert_eq!((&hashed["bytes"], hashed["sha256"].is_string()), (&27.into(), true));
        assert_eq!(hashed.as_object().unwrap().len(), 2);
        assert_eq!(recorded(&text, false), serde_json::json!({"bytes": 27}));
    }
}
