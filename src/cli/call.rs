//! `call`: calls any tool by name, for tools without a command.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Map, Value};

use crate::cli::candidates::offer_tools;
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::own_lease;

/// Call a tool, such as: call read_screen session=build count=5
#[derive(Debug, Args)]
pub struct CallCommand {
    /// The tool's name
    #[arg(add = ArgValueCompleter::new(offer_tools))]
    tool: String,
    /// Its arguments; a value that is valid JSON is JSON, any other is text
    #[arg(value_name = "NAME=VALUE", value_parser = parse_argument)]
    arguments: Vec<(String, Value)>,
    /// Read more arguments from this file: one JSON object; `-` is standard input
    #[arg(long, value_name = "FILE")]
    json_args: Option<PathBuf>,
    /// Use the lease whose id is in this file, `-` for standard input
    #[arg(long, value_name = "FILE")]
    lease_file: Option<PathBuf>,
}

impl CallCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let mut arguments = match &self.json_args {
            Some(file) => object(&text_of(file)?)?,
            None => Map::new(),
        };
        add(&mut arguments, self.arguments)?;
        if let Some(file) = &self.lease_file {
            arguments.insert(LEASE_ID.to_owned(), own_lease::read(file)?.into());
        }
        let answer = context.daemon().await?.act(&self.tool, Value::Object(arguments)).await?;
        Ok(answer.report_as_told())
    }
}

fn text_of(file: &Path) -> Result<String, CliFailure> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(file)
    };
    text.map_err(|error| {
        CliFailure::Usage(format!("--json-args: cannot read {}: {error}", file.display()))
    })
}

fn object(text: &str) -> Result<Map<String, Value>, CliFailure> {
    serde_json::from_str(text)
        .map_err(|error| CliFailure::Usage(format!("--json-args: not a JSON object: {error}")))
}

/// The parameter that must not be on a command line.
const LEASE_ID: &str = "lease_id";

/// Adds arguments, which replace those of the file. Each may occur once.
fn add(arguments: &mut Map<String, Value>, given: Vec<(String, Value)>) -> Result<(), CliFailure> {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = given.iter().find(|(name, _)| !names.insert(name)) {
        let advice = format!("write a list as `{name}=[…]`, in JSON");
        return Err(CliFailure::Usage(format!("`{name}` is given twice; {advice}")));
    }
    if names.iter().any(|name| name.as_str() == LEASE_ID) {
        let words = "everybody on this machine can read a lease_id here; give it with --lease-file, or in \
                     the file of --json-args";
        return Err(CliFailure::Usage(words.to_owned()));
    }
    arguments.extend(given);
    Ok(())
}

/// Parses `NAME=VALUE` as text; the value may contain `=`.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Parses `name=value`. The value is JSON if it is valid JSON, otherwise text.
pub fn parse_argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = parse_pair(text)?;
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_argument_replaces_that_of_the_file_and_is_given_once() {
        let pair = |name: &str, value: u64| (name.to_owned(), json!(value));
        let mut arguments = object(r#"{"a": 1, "b": 2}"#).unwrap();
        add(&mut arguments, vec![pair("b", 3), pair("c", 4)]).unwrap();
        assert_eq!(Value::Object(arguments.clone()), json!({"a": 1, "b": 3, "c": 4}));
        let twice = add(&mut arguments, vec![pair("c", 5), pair("c", 5)]);
        assert_eq!(twice.unwrap_err().exit().number(), 2);
    }

    #[test]
    fn a_lease_id_is_taken_from_a_file_and_never_from_the_words() {
        let shown = vec![("lease_id".to_owned(), json!("6f1b"))];
        let refused = add(&mut Map::new(), shown).unwrap_err();
        assert_eq!(refused.exit().number(), 2);
        assert!(refused.to_string().contains("--lease-file"), "{refused}");
        let mut from_file = object(r#"{"lease_id": "6f1b"}"#).unwrap();
        add(&mut from_file, Vec::new()).unwrap();
        assert_eq!(from_file["lease_id"], "6f1b");
    }

    #[test]
    fn arguments_from_a_file_are_one_object() {
        assert_eq!(object(r#"{"a": 1}"#).unwrap()["a"], 1);
        for text in ["[1]", "{", "", r#"{"a": 1} {}"#] {
            assert_eq!(object(text).unwrap_err().exit().number(), 2, "{text}");
        }
        let missing = text_of(Path::new("/nowhere/arguments")).unwrap_err();
        assert_eq!(missing.exit().number(), 2);
        assert!(missing.to_string().contains("/nowhere/arguments: No such file"), "{missing}");
    }

    #[test]
    fn a_pair_is_split_at_its_first_sign() {
        assert_eq!(parse_pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("A="), Ok(("A".to_owned(), String::new())));
    }

    #[test]
    fn a_pair_without_a_name_or_a_sign_is_refused() {
        assert!(parse_pair("=b").is_err());
        assert!(parse_pair("b").is_err());
    }

    #[test]
    fn a_value_that_is_json_is_taken_as_json_and_any_other_as_text() {
        let expected = [
            ("n=5", json!(5)),
            ("n=true", json!(true)),
            (r#"n={"idle_ms": 5}"#, json!({"idle_ms": 5})),
            (r#"n="5""#, json!("5")),
            ("n=hello world", json!("hello world")),
            ("n={broken", json!("{broken")),
            ("n=", json!("")),
        ];
        for (text, value) in expected {
            assert_eq!(parse_argument(text), Ok(("n".to_owned(), value)), "{text}");
        }
    }
}
