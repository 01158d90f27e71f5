//! The addresses of resources in what a server answers, as clients know them.
//!
//! Nothing else of an answer changes: the part of an address that is new is put before the server's own one, where that
//! stands in the text.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::core::mount::MountName;
use crate::core::mount::naming::exposed_address;

/// What is in the text of each answer with a link to a resource, or with a resource.
const SIGN: &str = "\"resource";

/// The types of content that have addresses, as JSON.
const LINK: &str = "\"resource_link\"";
const EMBEDDED: &str = "\"resource\"";

/// The result of a tool.
#[derive(Deserialize)]
struct AddressedResult<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// A prompt that is filled in.
#[derive(Deserialize)]
struct AddressedPrompt<'a> {
    #[serde(borrow)]
    messages: Vec<AddressedMessage<'a>>,
}

#[derive(Deserialize)]
struct AddressedMessage<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// A resource that was read.
#[derive(Deserialize)]
struct AddressedContents<'a> {
    #[serde(borrow)]
    contents: Vec<&'a RawValue>,
}

/// One part of a result or prompt.
#[derive(Deserialize)]
struct AddressedBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a RawValue,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Addressed<'a> {
    #[serde(borrow)]
    uri: &'a RawValue,
}

/// The addresses in the result of a tool, in the order of the text, as JSON.
pub(super) fn of_tool(result: &str) -> Vec<&RawValue> {
    if !result.contains(SIGN) {
        return Vec::new();
    }
    let parts = serde_json::from_str::<AddressedResult<'_>>(result);
    let content = parts.map(|it| it.content).unwrap_or_default();
    content.into_iter().filter_map(of_block).collect()
}

/// Those in a prompt.
pub(super) fn of_prompt(prompt: &str) -> Vec<&RawValue> {
    if !prompt.contains(SIGN) {
        return Vec::new();
    }
    let parts = serde_json::from_str::<AddressedPrompt<'_>>(prompt);
    let messages = parts.map(|it| it.messages).unwrap_or_default();
    messages.into_iter().filter_map(|message| of_block(message.content)).collect()
}

/// Those of the contents of a resource.
pub(super) fn of_resource(read: &str) -> Vec<&RawValue> {
    let parts = serde_json::from_str::<AddressedContents<'_>>(read);
    let contents = parts.map(|it| it.contents).unwrap_or_default();
    contents.into_iter().filter_map(own_address).collect()
}

/// The address of a link or of an embedded resource.
fn of_block(block: &RawValue) -> Option<&RawValue> {
    let block: AddressedBlock<'_> = serde_json::from_str(block.get()).ok()?;
    match block.kind.get() {
        LINK => block.uri,
        EMBEDDED => own_address(block.resource?),
        _ => None,
    }
}

fn own_address(resource: &RawValue) -> Option<&RawValue> {
    Some(serde_json::from_str::<Addressed<'_>>(resource.get()).ok()?.uri)
}

/// An answer in which the addresses that `find` finds are those of this mount that clients know.
pub(super) fn exposed(
    mount: &MountName,
    answer: Box<RawValue>,
    find: fn(&str) -> Vec<&RawValue>,
) -> Box<RawValue> {
    let text = answer.get();
    let mut found = find(text);
    found.retain(|address| address.get().starts_with('"'));
    if found.is_empty() {
        return answer;
    }
    let before = exposed_address(mount, "");
    let mut exposed = String::with_capacity(text.len() + found.len() * before.len());
    let mut done = 0;
    for address in found {
        // Behind the quotation mark. What is put there needs no escape.
        let at = address.get().as_ptr().addr() - text.as_ptr().addr() + 1;
        exposed.push_str(&text[done..at]);
        exposed.push_str(&before);
        done = at;
    }
    exposed.push_str(&text[done..]);
    RawValue::from_string(exposed).unwrap_or(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(answer: &str, find: fn(&str) -> Vec<&RawValue>) -> String {
        let answer = RawValue::from_string(answer.to_owned()).unwrap();
        exposed(&"wiki".parse().unwrap(), answer, find).get().to_owned()
    }

    #[test]
    fn addresses_are_those_that_clients_know_and_nothing_else_changes() {
        let own = r#"{ "z":1.0,"content":[{"type":"text","text":"\"resource_link\" uri"},
            {"uri" : "file:///a\u0020b\/\"c\"","n":123456789012345678901234567890,"type":"resource_link"},
            {"type":"resource","uri":"own","resource":{"text":"\u00e9","uri":"x:"}} ],"structuredContent":
            {"content":[{"type":"resource_link","uri":"x:"}],"a":1e2},"_meta":{"uri":"x:"}}"#;
        let known = own
            .replace("file:///a", "termgate://mount/wiki/file:///a")
            .replace(r#"\u00e9","uri":"x:"#, r#"\u00e9","uri":"termgate://mount/wiki/x:"#);
        assert_ne!(own, known);
        assert_eq!(seen(own, of_tool), known);
        let own = r#"{"messages":[{"role":"user","content":{"type":"text","text":"x:"}},
            {"role":"user","content":{"type":"resource","resource":{"uri":"x:","blob":""}}}]}"#;
        let known = own.replace(r#""uri":""#, r#""uri":"termgate://mount/wiki/"#);
        assert_eq!(seen(own, of_prompt), known);
        let own = r#"{"contents":[{"uri":"x:","text":"a"},{"text":"b","uri":""}],"n":1e400}"#;
        let known = own.replace(r#""uri":""#, r#""uri":"termgate://mount/wiki/"#);
        assert_eq!(seen(own, of_resource), known);
    }

    #[test]
    fn what_is_not_of_the_protocol_stays_as_it_is() {
        for answer in [
            r#"{"content":{"type":"resource_link","uri":"x:"}}"#,
            r#"{"content":["resource",{"type":"resource_link","uri":7},{"type":"resource_link"}]}"#,
            r#"{"content":[{"type":"resource","resource":"x:"},{"type":"resource","resource":null}]}"#,
            r#"{"content":[{"type":"resource_link","uri":"x:","uri":"y:"}],"messages":"resource"}"#,
            r#"["resource"]"#,
        ] {
            for find in [of_tool, of_prompt, of_resource] {
                assert_eq!(seen(answer, find), answer);
            }
        }
    }
}
