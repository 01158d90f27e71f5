//! An MCP server whose tools answer with the text they are given: what a gateway is put before.
//!
//! It speaks on its standard input and output, and answers each line before it reads the next.

use std::borrow::Cow;
use std::io::{BufRead, Write, stdin, stdout};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::support::child::Owned;

/// The argument that makes the bench such a server.
pub(crate) const SERVE: &str = "--tool-server";
/// Its tool that only reads, and the one that may write.
pub(crate) const TOOLS: [&str; 2] = ["look", "change"];

/// Starts one where the bench itself may run, and gives back the pipes it writes and reads.
///
/// # Errors
/// Why it does not run.
pub(crate) fn start() -> anyhow::Result<(Owned, OwnedFd, OwnedFd)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SERVE).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().map(Owned).context("cannot start the server of tools")?;
    let said = process.0.stdout.take().context("it has no standard output")?;
    let asked = process.0.stdin.take().context("it has no standard input")?;
    Ok((process, said.into(), asked.into()))
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

/// Serves until the input ends, if that is what this process was started for.
///
/// # Errors
/// What it cannot read, or not write.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    if std::env::args().nth(1).as_deref() != Some(SERVE) {
        return Ok(false);
    }
    let (mut asked, mut said) = (stdin().lock(), stdout().lock());
    let mut line = String::new();
    while asked.read_line(&mut line)? > 0 {
        let request: Request<'_> = serde_json::from_str(&line)?;
        if let Some(id) = request.id {
            let answer = answer(&request)?;
            writeln!(said, r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)?;
        }
        line.clear();
    }
    Ok(true)
}

fn answer(request: &Request<'_>) -> anyhow::Result<String> {
    let result = match &*request.method {
        "tools/call" => {
            let params = request.params.context("a call without parameters")?;
            let call: Call<'_> = serde_json::from_str(params.get())?;
            format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, call.arguments.text)
        }
        "tools/list" => {
            let tools = TOOLS.map(|name| {
                json!({
                    "name": name,
                    "description": "Answers with its text.",
                    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
                    "annotations": {"readOnlyHint": name == TOOLS[0]},
                })
            });
            json!({"tools": tools}).to_string()
        }
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "0"},
        })
        .to_string(),
        "ping" => "{}".to_owned(),
        _ => return Ok(r#""error":{"code":-32601,"message":"unknown method"}"#.to_owned()),
    };
    Ok(format!(r#""result":{result}"#))
}
