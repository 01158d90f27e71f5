//! `call`: calls any tool by name, for tools without a command.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Map, Value};

use crate::cli::candidates::offer_tools;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::own_lease;
use crate::cli::pair::parse_argument;

/// Call a tool, such as: call read_screen session=build count=5
#[derive(Debug, Args)]
pub struct Call {
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

impl Call {
    /// Runs the command.
    ///
    /// # Errors
    /// Invalid arguments, or the daemon's error.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let mut arguments = match &self.json_args {
            Some(file) => object(&text_of(file)?)?,
            None => Map::new(),
        };
        add(&mut arguments, self.arguments)?;
        if let Some(file) = &self.lease_file {
            arguments.insert(LEASE_ID.to_owned(), own_lease::read(file)?.into());
        }
        let answer = context.daemon().await?.call(&self.tool, Value::Object(arguments)).await?;
        Ok(answer.report_as_told())
    }
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(file)
    };
    Ok(text.with_context(|| format!("cannot read {}", file.display()))?)
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::Usage(format!("the arguments are no JSON object: {error}")))
}

/// The parameter that must not be on a command line.
const LEASE_ID: &str = "lease_id";

/// Adds arguments, which replace those of the file. Each may occur once.
fn add(arguments: &mut Map<String, Value>, given: Vec<(String, Value)>) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = given.iter().find(|(name, _)| !names.insert(name)) {
        let advice = format!("write a list as `{name}=[…]`, in JSON");
        return Err(Failure::Usage(format!("`{name}` is given twice; {advice}")));
    }
    if names.iter().any(|name| name.as_str() == LEASE_ID) {
        let words = "everybody on this machine can read a lease_id here; give it with --lease-file, or in \
                     the file of --json-args";
        return Err(Failure::Usage(words.to_owned()));
    }
    arguments.extend(given);
    Ok(())
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
    }
}
