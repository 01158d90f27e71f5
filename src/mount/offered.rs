//! Definitions of servers in a form that all clients read: strict ones refuse a whole list for one entry.
//!
//! What is mended keeps its meaning. All else stays as the server wrote it.

use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::output_schema::{self, SchemaFault};

/// Why a tool cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnofferedTool {
    #[error("its `inputSchema` is no schema of an object")]
    Input,
    #[error("`properties` of its `inputSchema` has what is no schema")]
    Properties,
    #[error("`required` of its `inputSchema` is no list of names")]
    Required,
}

/// A tool as clients see it.
#[derive(Debug)]
pub struct OfferedTool {
    pub definition: ExactJson,
    /// Why it has no `outputSchema`, if the server gave one.
    pub output: Option<SchemaFault>,
}

/// A tool as clients see it.
///
/// # Errors
/// [`UnofferedTool`] if clients cannot use it.
pub fn offered_tool(definition: &ExactJson) -> Result<OfferedTool, UnofferedTool> {
    let mut tool = definition.as_object().cloned().ok_or(UnofferedTool::Input)?;
    let input = match tool.get("inputSchema").cloned() {
        None => ExactObject::default(),
        Some(ExactJson::Literal(it)) if ["null", "true"].contains(&&*it) => ExactObject::default(),
        Some(ExactJson::Object(schema)) => schema,
        Some(ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_)) => {
            return Err(UnofferedTool::Input);
        }
    };
    tool.insert("inputSchema", ExactJson::Object(input_schema(input)?));
    let output = tool.get("outputSchema").filter(|it| !is_null(it)).cloned().map(output_schema);
    let output = match output.transpose() {
        Ok(Some(schema)) => {
            tool.insert("outputSchema", ExactJson::Object(schema));
            None
        }
        Ok(None) => tool.remove("outputSchema").and(None),
        Err(fault) => tool.remove("outputSchema").and(Some(fault)),
    };
    without_malformed(&mut tool, is_tool_member);
    // It is about tasks, of which clients see nothing.
    tool.remove("execution");
    if let Some(ExactJson::Object(annotations)) = tool.get_mut("annotations") {
        without_malformed(annotations, is_hint);
    }
    Ok(OfferedTool { definition: ExactJson::Object(tool), output })
}

/// The schema of results, which clients compile.
fn output_schema(schema: ExactJson) -> Result<ExactObject, SchemaFault> {
    let ExactJson::Object(schema) = schema else { return Err(SchemaFault::NoObject) };
    if schema.text("type") != Some("object") {
        return Err(SchemaFault::NoObject);
    }
    let schema = with_members(schema).map_err(|_| SchemaFault::NoObject)?;
    output_schema::check(&schema)?;
    Ok(schema)
}

/// An entry of another list as clients see it; `None` if it has no name, which all need.
pub fn offered_content(mut entry: ExactObject) -> Option<ExactObject> {
    entry.text("name")?;
    without_malformed(&mut entry, is_content_member);
    if let Some(ExactJson::Object(annotations)) = entry.get_mut("annotations") {
        without_malformed(annotations, is_annotation);
    }
    Some(entry)
}

/// The schema of arguments, which are always an object.
fn input_schema(mut schema: ExactObject) -> Result<ExactObject, UnofferedTool> {
    let is_object = |it: &ExactJson| it.as_text() == Some("object");
    let fits = match schema.get("type") {
        None => true,
        Some(kind @ ExactJson::Text(_)) => is_object(kind),
        Some(ExactJson::List(kinds)) => kinds.iter().any(is_object),
        Some(kind @ ExactJson::Literal(_)) => is_null(kind),
        Some(ExactJson::Object(_)) => false,
    };
    if !fits {
        return Err(UnofferedTool::Input);
    }
    schema.insert("type", ExactJson::of(&"object"));
    with_members(schema)
}

/// The same schema, where each member is described by an object.
fn with_members(mut schema: ExactObject) -> Result<ExactObject, UnofferedTool> {
    for absent in ["properties", "required"] {
        if schema.get(absent).is_some_and(is_null) {
            schema.remove(absent);
        }
    }
    let is_name = |it: &ExactJson| it.as_text().is_some();
    let is_list =
        |it: &ExactJson| matches!(it, ExactJson::List(names) if names.iter().all(is_name));
    if !schema.get("required").is_none_or(is_list) {
        return Err(UnofferedTool::Required);
    }
    match schema.get_mut("properties") {
        None => Ok(schema),
        Some(ExactJson::Object(properties)) => {
            let members = std::mem::take(properties).into_members().into_iter();
            let members = members.map(|(name, member)| Ok((name, member_schema(member)?)));
            *properties = ExactObject::of(members.collect::<Result<_, _>>()?);
            Ok(schema)
        }
        Some(ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_)) => {
            Err(UnofferedTool::Properties)
        }
    }
}

/// The schema of one member as an object: `true` allows all, and `false` nothing.
fn member_schema(schema: ExactJson) -> Result<ExactJson, UnofferedTool> {
    let empty = || ExactJson::Object(ExactObject::default());
    match schema {
        ExactJson::Object(_) => Ok(schema),
        ExactJson::Literal(literal) if &*literal == "true" => Ok(empty()),
        ExactJson::Literal(literal) if &*literal == "false" => {
            Ok(ExactJson::Object(ExactObject::of(vec![("not".to_owned(), empty())])))
        }
        ExactJson::Literal(_) | ExactJson::Text(_) | ExactJson::List(_) => {
            Err(UnofferedTool::Properties)
        }
    }
}

/// Takes out the members that are not as the protocol has them. Those that it does not know stay.
fn without_malformed(object: &mut ExactObject, is_right: impl Fn(&str, &ExactJson) -> bool) {
    let malformed =
        |(name, value): (&str, &ExactJson)| (!is_right(name, value)).then(|| name.to_owned());
    let malformed: Vec<String> = object.iter().filter_map(malformed).collect();
    for name in malformed {
        object.remove(&name);
    }
}

fn is_tool_member(name: &str, value: &ExactJson) -> bool {
    match name {
        "title" | "description" => value.as_text().is_some(),
        "annotations" | "_meta" => value.as_object().is_some(),
        "icons" => is_icons(value),
        _ => true,
    }
}

fn is_hint(name: &str, value: &ExactJson) -> bool {
    match name {
        "title" => value.as_text().is_some(),
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
            value.as_literal().is_some_and(|it| ["true", "false"].contains(&it))
        }
        _ => true,
    }
}

fn is_content_member(name: &str, value: &ExactJson) -> bool {
    match name {
        "mimeType" => value.as_text().is_some(),
        "size" => value.as_literal().is_some_and(|it| it.parse::<u64>().is_ok()),
        "arguments" => is_arguments(value),
        _ => is_tool_member(name, value),
    }
}

/// Whether it is what a prompt takes.
fn is_arguments(value: &ExactJson) -> bool {
    let is_text = |it: &ExactJson| it.as_text().is_some();
    let is_flag = |it: &ExactJson| matches!(it.as_literal(), Some("true" | "false"));
    let is_argument = |it: &ExactJson| {
        it.get("name").is_some_and(is_text)
            && ["title", "description"].iter().all(|name| it.get(name).is_none_or(is_text))
            && it.get("required").is_none_or(is_flag)
    };
    matches!(value, ExactJson::List(arguments) if arguments.iter().all(is_argument))
}

fn is_annotation(name: &str, value: &ExactJson) -> bool {
    match name {
        "audience" => {
            let is_role = |it: &ExactJson| matches!(it.as_text(), Some("user" | "assistant"));
            matches!(value, ExactJson::List(roles) if roles.iter().all(is_role))
        }
        "priority" => {
            let number = value.as_literal().and_then(|it| it.parse::<f64>().ok());
            number.is_some_and(|it| (0.0..=1.0).contains(&it))
        }
        "lastModified" => value.as_text().is_some_and(is_moment),
        _ => true,
    }
}

fn is_icons(value: &ExactJson) -> bool {
    let is_text = |it: &ExactJson| it.as_text().is_some();
    let is_texts = |it: &ExactJson| matches!(it, ExactJson::List(all) if all.iter().all(is_text));
    let is_theme = |it: &ExactJson| matches!(it.as_text(), Some("light" | "dark"));
    let is_icon = |it: &ExactJson| {
        it.get("src").is_some_and(is_text)
            && it.get("mimeType").is_none_or(is_text)
            && it.get("sizes").is_none_or(is_texts)
            && it.get("theme").is_none_or(is_theme)
    };
    matches!(value, ExactJson::List(icons) if icons.iter().all(is_icon))
}

fn is_null(value: &ExactJson) -> bool {
    value.as_literal() == Some("null")
}

/// Whether a text is a date and a time of day with its offset, such as `2025-01-12T15:00:58.1+01:00`.
fn is_moment(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let (time, offset) = match (time.strip_suffix('Z'), time.rfind(['+', '-'])) {
        (Some(time), _) => (time, "+00:00"),
        (None, Some(at)) => time.split_at(at),
        (None, None) => return false,
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
    let [Some(date), Some(time), Some(offset)] = [
        numbers(date, '-', [4, 2, 2]),
        numbers(time, ':', [2, 2, 2]),
        numbers(&format!("{}:00", &offset[1..]), ':', [2, 2, 2]),
    ] else {
        return false;
    };
    let is_time = |[hour, minute, second]: [u32; 3]| hour < 24 && minute < 60 && second < 60;
    is_date(date) && is_time(time) && is_time(offset) && is_fraction
}

fn is_date([year, month, day]: [u32; 3]) -> bool {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// The three numbers of a text that have this many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(between);
    let mut next = |digits: usize| {
        let part = parts.next().filter(|it| it.len() == digits)?;
        part.bytes().all(|it| it.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let numbers = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> ExactJson {
        serde_json::from_str(json).unwrap()
    }

    fn content(entry: &str) -> Option<String> {
        offered_content(read(entry).try_into().unwrap()).map(|it| it.to_string())
    }

    fn offered(members: &str) -> Result<String, UnofferedTool> {
        let tool = offered_tool(&read(&format!(r#"{{"name":"a",{members}}}"#)))?;
        Ok(tool.definition.to_string())
    }

    #[test]
    fn a_schema_of_arguments_becomes_one_of_an_object() {
        for (schema, expected) in [
            (r#"{"type":"object","z":1.10,"a":123456789012345678901,"b":1e400}"#, None),
            (
                r#"{"properties":{"z":{"maximum":1e2},"a":{}},"type":"object","required":["z"]}"#,
                None,
            ),
            ("{}", Some(r#"{"type":"object"}"#)),
            ("null", Some(r#"{"type":"object"}"#)),
            ("true", Some(r#"{"type":"object"}"#)),
            (r#"{"type":null,"z":1}"#, Some(r#"{"type":"object","z":1}"#)),
            (
                r#"{"anyOf":[{"required":["a"]}]}"#,
                Some(r#"{"anyOf":[{"required":["a"]}],"type":"object"}"#),
            ),
            (r#"{"type":["object","null"]}"#, Some(r#"{"type":"object"}"#)),
            (
                r#"{"type":"object","properties":{"z":true,"a":false},"required":null}"#,
                Some(r#"{"type":"object","properties":{"z":{},"a":{"not":{}}}}"#),
            ),
            (r#"{"type":"object","properties":null}"#, Some(r#"{"type":"object"}"#)),
        ] {
            let expected =
                format!(r#"{{"name":"a","inputSchema":{}}}"#, expected.unwrap_or(schema));
            assert_eq!(offered(&format!(r#""inputSchema":{schema}"#)), Ok(expected));
        }
        let without = offered(r#""title":"A""#);
        assert_eq!(without.unwrap(), r#"{"name":"a","title":"A","inputSchema":{"type":"object"}}"#);
    }

    #[test]
    fn a_tool_whose_arguments_nobody_can_write_is_not_offered() {
        for (schema, problem) in [
            (r#"{"type":"string"}"#, UnofferedTool::Input),
            (r#"{"type":["string","null"]}"#, UnofferedTool::Input),
            (r#"{"type":{}}"#, UnofferedTool::Input),
            ("false", UnofferedTool::Input),
            ("5", UnofferedTool::Input),
            ("[]", UnofferedTool::Input),
            (r#"{"properties":[]}"#, UnofferedTool::Properties),
            (r#"{"properties":{"a":5}}"#, UnofferedTool::Properties),
            (r#"{"properties":{"a":null}}"#, UnofferedTool::Properties),
            (r#"{"required":true}"#, UnofferedTool::Required),
            (r#"{"required":["a",1]}"#, UnofferedTool::Required),
        ] {
            assert_eq!(offered(&format!(r#""inputSchema":{schema}"#)), Err(problem), "{schema}");
        }
        assert_eq!(offered_tool(&read("[]")).unwrap_err(), UnofferedTool::Input);
    }

    #[test]
    fn members_that_may_be_absent_are_left_out_if_they_are_malformed() {
        let plain = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
        for malformed in [
            r#""outputSchema":{"anyOf":[]}"#,
            r#""outputSchema":{"type":"array"}"#,
            r#""outputSchema":true"#,
            r#""outputSchema":{"type":"object","properties":{"a":5}}"#,
            r#""outputSchema":{"type":"object","required":"a"}"#,
            r#""outputSchema":{"type":"object","items":{"type":"text"}}"#,
            r#""outputSchema":null"#,
            r#""title":5"#,
            r#""description":null"#,
            r#""annotations":[]"#,
            r#""_meta":1"#,
            r#""icons":[{"src":1}]"#,
            r#""icons":[{"src":"a:b","theme":"blue"}]"#,
        ] {
            let members = format!(r#""inputSchema":{{"type":"object"}},{malformed}"#);
            assert_eq!(offered(&members).unwrap(), plain, "{malformed}");
        }
        let right = r#""inputSchema":{"type":"object"},"outputSchema":{"type":"object","maxProperties":1e2},"annotations":{"readOnlyHint":true},"icons":[{"src":"a:b","sizes":["any"]}],"more":[1.0]"#;
        assert_eq!(offered(right).unwrap(), format!(r#"{{"name":"a",{right}}}"#));
        let hints = r#""inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes","openWorldHint":false}"#;
        let kept = hints.replace(r#""readOnlyHint":"yes","#, "");
        assert_eq!(offered(hints).unwrap(), format!(r#"{{"name":"a",{kept}}}"#));
    }

    #[test]
    fn annotations_of_resources_are_left_out_if_they_are_malformed() {
        for (annotations, kept) in [
            (
                r#"{"priority":1.0,"audience":["user"],"lastModified":"2024-02-29T23:59:58.25+05:30"}"#,
                None,
            ),
            (r#"{"priority":2,"audience":["user"]}"#, Some(r#"{"audience":["user"]}"#)),
            (r#"{"priority":-0.1,"audience":["me"]}"#, Some("{}")),
            (r#"{"priority":"1","lastModified":"yesterday"}"#, Some("{}")),
        ] {
            let entry = |annotations: &str| {
                format!(r#"{{"uri":"a:b","name":"x","annotations":{annotations}}}"#)
            };
            assert_eq!(content(&entry(annotations)), Some(entry(kept.unwrap_or(annotations))));
        }
        let malformed = r#"{"uri":"a:b","annotations":5,"size":-1.5,"mimeType":1,"name":"x"}"#;
        assert_eq!(content(malformed).as_deref(), Some(r#"{"uri":"a:b","name":"x"}"#));
        assert_eq!(content(r#"{"uri":"a:b","name":5}"#), None);
    }

    #[test]
    fn arguments_of_a_prompt_are_left_out_if_they_are_malformed() {
        let right = r#"{"name":"x","arguments":[{"name":"a","required":true,"more":1.0},{"name":"b","title":"B"}]}"#;
        assert_eq!(content(right).as_deref(), Some(right));
        for malformed in ["{}", r#"[{"required":true}]"#, r#"[{"name":"a","required":"yes"}]"#] {
            let prompt = format!(r#"{{"name":"x","arguments":{malformed}}}"#);
            assert_eq!(content(&prompt).as_deref(), Some(r#"{"name":"x"}"#), "{malformed}");
        }
    }

    #[test]
    fn a_moment_has_a_date_a_time_and_an_offset() {
        for moment in ["2025-01-12T15:00:58Z", "2025-12-31T00:00:00.1-23:59"] {
            assert!(is_moment(moment), "{moment}");
        }
        for other in [
            "",
            "T",
            "2025-01-12",
            "2025-01-12T15:00:58",
            "2025-01-12 15:00:58Z",
            "2025-01-12T15:00:58z",
            "2025-02-29T15:00:58Z",
            "2025-13-01T15:00:58Z",
            "2025-01-00T15:00:58Z",
            "2025-01-12T24:00:00Z",
            "2025-01-12T15:00:58+1",
            "2025-01-12T15:00:58+24:00",
            "2025-01-12T15:00:58.Z",
            "25-01-12T15:00:58Z",
            "2025-01-12T15:00:58+\u{e9}0:00",
            "2025-1-012T15:00:58Z",
        ] {
            assert!(!is_moment(other), "{other}");
        }
    }
}
