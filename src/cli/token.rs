//! `token`: creates, lists and revokes tokens, which give agents a lasting identity.
//!
//! It needs no daemon: the tokens are in a file that every daemon of the user reads. A secret is never
//! printed.

use std::env;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::duration::parse_duration;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::config::paths::state_directory;
use crate::core::caller::PrincipalName;
use crate::core::token::{NotATokenName, Token as Kept, TokenName, TokenScope, UnixTime};
use crate::transport::tokens::{NewToken, TokenStore};
use crate::wire::date::rfc3339;

/// The shortest life of a token. Its end is kept in whole seconds.
const EXPIRES_MIN: Duration = Duration::from_secs(1);

/// Give agents a lasting identity
///
/// By default every connection is a new principal. A token keeps one identity across connections and
/// restarts of the daemon; an agent that reconnects in time keeps its leases. Present the token with
/// `termgate mcp --token-file FILE`.
#[derive(Debug, Args)]
pub struct TokenCommand {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    New(CreateToken),
    Ls(ListTokens),
    Revoke(Revoke),
}

/// Create a token and write its secret to a new file
///
/// The secret is stored nowhere else and never printed. The file has mode 0600; termgate rejects a
/// copy that others can read.
#[derive(Debug, Args)]
struct CreateToken {
    /// The owner's name in lists and leases: letters, digits and . _ -
    #[arg(value_parser = parse_name)]
    name: TokenName,
    /// The file to create; an existing file is not changed
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The owner can only watch, even if the daemon allows writing
    #[arg(long)]
    read_only: bool,
    /// What the owner may do in its tenant: write; approve calls of others and watch; or operate, which is all
    /// [default: write]
    #[arg(long, value_name = "SCOPE", conflicts_with = "read_only", value_parser = ["write", "read_only", "approve", "operate"])]
    scope: Option<String>,
    /// Expire after this long [default: valid until revoked]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
}

/// List the tokens, without their secrets
#[derive(Debug, Args)]
struct ListTokens {}

/// Revoke a token, and close the connections of its owner
#[derive(Debug, Args)]
struct Revoke {
    /// Its name, as `termgate token ls` shows it
    #[arg(value_parser = parse_name)]
    name: TokenName,
}

impl TokenCommand {
    pub fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let state = state_directory(|name| env::var_os(name))
            .context("there is no place for tokens; set HOME or XDG_STATE_HOME")?;
        let store = TokenStore::in_state(&state);
        let now = now(context);
        match self.action {
            TokenAction::New(new) => new.run(&store, now),
            TokenAction::Ls(ListTokens {}) => list(&store, now),
            TokenAction::Revoke(Revoke { name }) => revoke(&store, &name, now),
        }
    }
}

impl CreateToken {
    fn run(self, store: &TokenStore, now: UnixTime) -> Result<CommandReport, CliFailure> {
        let Self { name, out, read_only, scope, expires } = self;
        let out = std::path::absolute(out)
            .map_err(|error| CliFailure::Usage(format!("--out: {error}")))?;
        if expires.is_some_and(|lasts| lasts < EXPIRES_MIN) {
            return Err(CliFailure::Usage("--expires: at least 1s".to_owned()));
        }
        let given = scope.as_deref().and_then(TokenScope::parse).unwrap_or(TokenScope::Write);
        let scope = if read_only { TokenScope::ReadOnly } else { given };
        let expires = expires.map(|lasts| UnixTime(now.0.saturating_add(lasts.as_secs())));
        let new = NewToken { name, scope, expires };
        let token = store.make(now, new, &out)?;
        let mut data = member(&token, now);
        data["file"] = json!(out);
        let note = format!(
            "the token of {} is in {out}; use it with: termgate mcp --token-file {out}",
            principal(&token),
            out = out.display()
        );
        Ok(CommandReport { notes: vec![note], ..CommandReport::new(data, "") })
    }
}

fn list(store: &TokenStore, now: UnixTime) -> Result<CommandReport, CliFailure> {
    let tokens = store.read()?;
    let members: Vec<Value> = tokens.all().iter().map(|token| member(token, now)).collect();
    let rows: Vec<_> = tokens.all().iter().map(|token| row(token, now)).collect();
    let data = json!({"tokens": members});
    if rows.is_empty() {
        let notes = vec!["there are no tokens".to_owned()];
        return Ok(CommandReport { notes, ..CommandReport::new(data, "") });
    }
    let head = ["NAME", "PRINCIPAL", "SCOPE", "CREATED", "EXPIRES"];
    Ok(CommandReport::new(data, render(head, &rows)))
}

fn revoke(
    store: &TokenStore,
    name: &TokenName,
    now: UnixTime,
) -> Result<CommandReport, CliFailure> {
    let token = store.revoke(name)?;
    let note = format!("the token of {} is revoked", principal(&token));
    Ok(CommandReport { notes: vec![note], ..CommandReport::new(member(&token, now), "") })
}

fn member(token: &Kept, now: UnixTime) -> Value {
    let mut member = json!({
        "name": token.name.to_string(),
        "principal": principal(token),
        "scope": token.scope.as_str(),
        "created_at": rfc3339(token.created.0),
        "expired": token.has_expired(now),
    });
    if let Some(at) = token.expires {
        member["expires_at"] = json!(rfc3339(at.0));
    }
    member
}

fn row(token: &Kept, now: UnixTime) -> [String; 5] {
    let expires = match token.expires {
        None => "never".to_owned(),
        Some(at) if at <= now => format!("{} (expired)", rfc3339(at.0)),
        Some(at) => rfc3339(at.0),
    };
    let scope = token.scope.as_str().to_owned();
    [token.name.to_string(), principal(token), scope, rfc3339(token.created.0), expires]
}

/// The token's owner as others see it.
fn principal(token: &Kept) -> String {
    let label = token.name.label().clone();
    PrincipalName { label, principal: token.principal() }.to_string()
}

fn parse_name(text: &str) -> Result<TokenName, NotATokenName> {
    text.parse()
}

fn now(context: &Context) -> UnixTime {
    let since = context.output.clock().wall_time().duration_since(UNIX_EPOCH);
    UnixTime(since.unwrap_or_default().as_secs())
}
