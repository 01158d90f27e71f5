//! What answers a call, and any other request that a mounted server answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use rmcp::ErrorData;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::mcp::era::Era;
use crate::mount::json::ExactJson;
use crate::surface::tool::StructuredContent;
use crate::wire::error::{ENVELOPE_KEY, Envelope};

/// More than follows a result in its line.
const LINE_END_BYTES: usize = 8;

/// What answers a call: its result or an error of the protocol.
pub type CallAnswer = Result<CallResult, CallError>;

/// The result of a call, its failure, or a question.
#[derive(Debug)]
pub struct CallResult {
    era: Era,
    body: ResultBody,
    envelope: Option<Envelope>,
}

#[derive(Debug)]
enum ResultBody {
    Own {
        text: String,
        structured: Box<dyn StructuredContent>,
        is_error: bool,
    },
    /// The result of a mounted server, an object.
    Relayed(Box<RawValue>),
    /// What the client is to ask before it makes the call again, and to bring back then.
    Asking {
        /// As JSON.
        questions: String,
        state: String,
    },
}

/// What kind of result it is, as those of the newer era say.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultKind {
    #[serde(default, deserialize_with = "given")]
    result_type: Option<Value>,
}

/// Also a null is given.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl CallResult {
    /// A successful result: text for models and the same as JSON for programs.
    pub fn success(era: Era, text: String, structured: Box<dyn StructuredContent>) -> Self {
        Self::own(era, text, structured, false)
    }

    /// A failed result.
    pub fn failure(era: Era, text: String, structured: Box<dyn StructuredContent>) -> Self {
        Self::own(era, text, structured, true)
    }

    /// A result that has the client answer questions, bring back `state`, and make the call again.
    pub fn asking(era: Era, questions: &impl fmt::Display, state: String) -> Self {
        let questions = questions.to_string();
        Self { era, body: ResultBody::Asking { questions, state }, envelope: None }
    }

    /// The result of a mounted server, which is written unchanged but for what the client's era needs.
    pub fn relayed(era: Era, result: Box<RawValue>) -> Self {
        Self { era, body: ResultBody::Relayed(result), envelope: None }
    }

    /// The same for clients that keep results: that of a server may not be kept. Only the newer era says this.
    #[must_use]
    pub fn uncached(self) -> Self {
        const HINTS: &str = r#"{"ttlMs":0,"cacheScope":"private"}"#;
        let Self { era: Era::Modern, body: ResultBody::Relayed(result), envelope } = self else {
            return self;
        };
        let with_hints = || {
            let mut members: BTreeMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(result.get())?;
            members.extend(serde_json::from_str::<BTreeMap<_, _>>(HINTS)?);
            to_raw_value(&members)
        };
        let result = with_hints().unwrap_or(result);
        Self { era: Era::Modern, body: ResultBody::Relayed(result), envelope }
    }

    fn own(era: Era, text: String, structured: Box<dyn StructuredContent>, is_error: bool) -> Self {
        Self { era, body: ResultBody::Own { text, structured, is_error }, envelope: None }
    }

    /// Adds metadata about the call for programs.
    #[must_use]
    pub fn in_envelope(mut self, envelope: Envelope) -> Self {
        self.envelope = Some(envelope);
        self
    }

    /// Writes the result as JSON.
    ///
    /// # Errors
    /// When the structured content has no JSON form.
    pub fn write_json(&self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        let (text, structured, is_error) = match &self.body {
            ResultBody::Own { text, structured, is_error } => (text, structured, is_error),
            ResultBody::Relayed(result) => return self.write_relayed(result.get(), to),
            ResultBody::Asking { questions, state } => {
                to.extend_from_slice(br#"{"resultType":"input_required","inputRequests":"#);
                to.extend_from_slice(questions.as_bytes());
                to.extend_from_slice(br#","requestState":"#);
                serde_json::to_writer(&mut *to, state)?;
                to.push(b'}');
                return Ok(());
            }
        };
        to.push(b'{');
        if self.era == Era::Modern {
            to.extend_from_slice(br#""resultType":"complete","#);
        }
        to.extend_from_slice(br#""content":[{"type":"text","text":"#);
        serde_json::to_writer(&mut *to, text)?;
        to.extend_from_slice(br#"}],"structuredContent":"#);
        structured.write_json(to)?;
        to.extend_from_slice(br#","isError":"#);
        serde_json::to_writer(&mut *to, is_error)?;
        if let Some(envelope) = &self.envelope {
            to.extend_from_slice(br#","_meta":{"#);
            serde_json::to_writer(&mut *to, ENVELOPE_KEY)?;
            to.push(b':');
            serde_json::to_writer(&mut *to, envelope)?;
            to.push(b'}');
        }
        to.push(b'}');
        Ok(())
    }

    /// Whatever its server says, the result is complete: only the daemon asks clients, by its rules.
    fn write_relayed(&self, result: &str, to: &mut Vec<u8>) -> serde_json::Result<()> {
        const OPENED: &[u8] = br#"{"resultType":"complete""#;
        // It is an object. One that says twice what it is counts as one that says something else.
        let kind: ResultKind =
            serde_json::from_str(result).unwrap_or(ResultKind { result_type: Some(Value::Null) });
        let is_as_wanted = match self.era {
            Era::Modern => kind.result_type.as_ref().is_some_and(|it| it == "complete"),
            // Only the newer era has this member.
            Era::Legacy => kind.result_type.is_none(),
        };
        let bare = match kind.result_type {
            Some(_) if !is_as_wanted => {
                let mut members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(result)?;
                members.remove("resultType");
                Cow::Owned(serde_json::to_string(&members)?)
            }
            Some(_) | None => Cow::Borrowed(result),
        };
        // A long one waits in no more memory than it needs.
        to.reserve_exact(OPENED.len() + bare.len() + LINE_END_BYTES);
        let is_marked = self.era == Era::Modern && !is_as_wanted;
        let Some(members) = bare.strip_prefix('{').filter(|_| is_marked) else {
            to.extend_from_slice(bare.as_bytes());
            return Ok(());
        };
        let is_empty = members.trim_start().starts_with('}');
        to.extend_from_slice(OPENED);
        to.extend_from_slice(if is_empty { b"" } else { b"," });
        to.extend_from_slice(members.as_bytes());
        Ok(())
    }
}

/// The error of the protocol that answers a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CallError {
    Own(ErrorData),
    Relayed(RelayedError),
}

/// The error of a mounted server that clients get as it was written.
#[derive(Debug, Serialize)]
pub struct RelayedError {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<ExactJson>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn relayed(era: Era, result: &str) -> Value {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        let mut line = Vec::new();
        CallResult::relayed(era, result).write_json(&mut line).unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_server_cannot_have_its_result_be_of_another_kind() {
        for kind in [
            "",
            r#""resultType":"complete","#,
            r#""resultType":"input_required","inputRequests":{},"#,
            r#""result\u0054ype":"input_required","#,
            r#""resultType":"task","#,
            r#""resultType":"complete","resultType":"complete","#,
            r#""resultType":"complete","resultType":"task","#,
            r#""resultType":null,"#,
            r#""resultType":5,"#,
        ] {
            let result = format!("{{{kind}\"content\":[]}}");
            let newer = relayed(Era::Modern, &result);
            assert_eq!(newer["resultType"], "complete", "{result}");
            assert_eq!(newer["content"], json!([]));
            assert_eq!(relayed(Era::Legacy, &result).get("resultType"), None, "{result}");
        }
        assert_eq!(relayed(Era::Modern, "{ }"), json!({"resultType": "complete"}));
    }
}
