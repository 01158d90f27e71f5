//! `create_session`: starts a program in a terminal of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::TenantId;
use crate::core::lease::request::AcquireRequest;
use crate::core::policy::denial::Denial;
use crate::core::policy::roles::NewSession;
use crate::core::policy::tenants::Visibility;
use crate::core::policy::{Standing, decide_operate};
use crate::session::command::Accepted;
use crate::session::error::{CreateError, TAGS_MAX};
use crate::session::handle::Session;
use crate::session::pty::account::{Account, own_uid};
use crate::session::pty::command::Launch;
use crate::session::pty::environment::ClientEnvironment;
use crate::session::registry::creating::Creation;
use crate::surface::answer::session::ALONE;
use crate::surface::argument::plain;
use crate::surface::call::{Call, note_touched};
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::lease::fresh_lease;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::lease::GrantWire;
use crate::wire::session::{Created, SessionWire};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CreateSession {
    /// Letters, digits, `.` `_` `-`
    name: Option<String>,
    /// A shell line, or with `args` a program; without it, your shell
    command: Option<String>,
    args: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Locale, PATH and SSH_AUTH_SOCK of the caller, under `env`
    #[serde(default)]
    env_client: BTreeMap<String, String>,
    /// 2 to 1000 (default 40)
    rows: Option<u64>,
    /// 2 to 1000 (default 120)
    cols: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
    /// Hold its first lease (default true)
    lease: Option<bool>,
    /// Who may know of it
    visibility: Option<VisibilityWord>,
    /// Record it from its first byte, for operators
    #[serde(default)]
    record: bool,
    /// Keep its programs from other processes and from termgate
    #[serde(default)]
    sandbox: bool,
    /// Its creator ends it after one command, and is not asked about that
    #[serde(default)]
    one_command: bool,
}

/// Who may know of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VisibilityWord {
    Private,
    Tenant,
    Listed,
}

impl From<VisibilityWord> for Visibility {
    fn from(word: VisibilityWord) -> Self {
        match word {
            VisibilityWord::Private => Self::Private,
            VisibilityWord::Tenant => Self::Tenant,
            VisibilityWord::Listed => Self::Listed,
        }
    }
}

impl Tool for CreateSession {
    const NAME: &'static str = "create_session";
    const TITLE: &'static str = "Create a session";
    const DESCRIPTION: &'static str = "Starts your shell or a program in a new terminal and gives \
        you its first lease.";
    const ACCESS: ToolAccess = ToolAccess::Create;
    const DESTRUCTIVE: bool = true;
    const OPEN_WORLD: bool = true;
    const UNLISTED: &'static [&'static str] = &["env_client", "record", "one_command"];

    type Result = Created;

    async fn call(self, mut call: Call) -> Result<Answer<Created>, SurfaceError> {
        let permit = call.take_permit()?;
        let run_as = account_of(&call).await?;
        let is_for_one = self.one_command;
        let creation = self.creation(&call, run_as)?;
        let sessions = &call.daemon.sessions;
        let (daemon, touched) = (Arc::clone(&call.daemon), Arc::clone(&call.touched));
        // The recording of a short program is over before the answer.
        let recorded = Arc::new(OnceLock::new());
        let noted = Arc::clone(&recorded);
        let accepted = std::mem::replace(&mut call.accepted, Accepted::nothing());
        let listed = move |session: &Session| {
            if let Some(file) = session.live().recording() {
                let _ = noted.set(file);
            }
            daemon.switchboard.tell_one(session);
            note_touched(&touched, session);
        };
        let (session, grant) = sessions.create(&permit, creation, accepted, listed).await?;
        if is_for_one {
            call.daemon.principals.note_made(call.standing.caller.principal, session.id());
        }
        let recording = recorded.get().map(|file| sessions.recordings().join(&**file));
        let recording = recording.map(|path| path.display().to_string());
        let lease = grant.map(|grant| {
            GrantWire::of((Some(session.id().to_string()), None), &grant, sessions.clock())
        });
        let session = SessionWire::of(&session, true, sessions.clock().now()).within(ALONE);
        let held = lease.as_ref().map_or_else(
            || "its lease is free".to_owned(),
            |lease| format!("you hold lease {}", lease.lease_id),
        );
        let command = session.command_told();
        let text = format!("created {} {:?} ({command}); {held}", session.id, session.name);
        Ok(Answer { result: Created { session, lease, recording }, text })
    }
}

impl CreateSession {
    fn creation(self, call: &Call, run_as: Option<Account>) -> Result<Creation, SurfaceError> {
        let rows = self.rows.unwrap_or(40);
        let cols = self.cols.unwrap_or(120);
        if self.tags.len() > TAGS_MAX {
            return Err(SurfaceError::argument("tags", format!("more than {TAGS_MAX}")));
        }
        for tag in &self.tags {
            plain("tags", tag, 64)?;
        }
        let os = |vars: BTreeMap<String, String>| {
            vars.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)))
        };
        if self.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err(SurfaceError::argument("cwd", "must be an absolute path"));
        }
        let visibility = self.visibility.map(Visibility::from);
        let (tenant, is_listed) = placed(call, visibility);
        let limits = call.daemon.sessions.limits();
        let named = limits.tenants.find(&call.standing.caller.tenant);
        let id = call.creates.unwrap_or_else(|| call.daemon.sessions.fresh_id());
        let whole = call.standing.roles_in(&tenant);
        // The program's name is not known yet, and may be one that gives the caller roles.
        let is_unnamed = call.standing.rights.gain_by_names(&tenant, whole);
        let name = self.name.or_else(|| is_unnamed.then(|| format!("session-{id}")));
        let new = NewSession { id, tenant: &tenant, name: name.as_deref(), tags: &self.tags };
        if call.standing.roles_at(&new).and(whole) != whole {
            // Whoever gives itself such a session gives itself rights.
            return Err(Denial::NoRole.into());
        }
        Ok(Creation {
            id,
            name,
            launch: Launch::new(self.command, self.args).map_err(CreateError::from)?,
            cwd: self.cwd,
            run_as,
            sandbox: self.sandbox || named.is_some_and(|tenant| tenant.sandbox),
            client: ClientEnvironment::of(os(self.env_client)),
            env: self.env,
            size: size(rows, cols, call.cells_max())?,
            tags: self.tags,
            record: self.record.then(|| decide_operate(&call.standing)).transpose()?.is_some(),
            first: self.lease.unwrap_or(true).then(|| first_lease(call)),
            tenant,
            is_listed,
        })
    }
}

/// The user whom the program of a new session runs as; `None` for the daemon's.
///
/// It is the one that the configuration says for the tenant, or else whoever connects: nobody gets the rights of the
/// daemon's user by that alone.
async fn account_of(call: &Call) -> Result<Option<Account>, SurfaceError> {
    let Some(user) = other_user(call) else { return Ok(None) };
    // The user database may be somewhere in the network.
    let finding = spawn_blocking(move || Account::of_uid(user)).await;
    let found = finding.map_err(|error| SurfaceError::Internal(error.to_string()))?;
    Ok(Some(found.map_err(CreateError::from)?))
}

/// The id of the user whom the program of a new session runs as; `None` for the daemon's.
pub fn other_user(call: &Call) -> Option<u32> {
    let Standing { caller, uid, token, .. } = &call.standing;
    let limits = call.daemon.sessions.limits();
    let named = limits.tenants.find(&caller.tenant).and_then(|tenant| tenant.run_as);
    let has_daemons = token.is_some() || *uid == own_uid() || *uid == 0;
    named.or_else(|| (!has_daemons).then_some(*uid))
}

/// The tenant of a session that a call with these arguments is to create, or that of the caller.
pub fn tenant_of_new(call: &Call, arguments: &CallArguments) -> TenantId {
    let visibility = arguments.get("visibility").and_then(Value::as_str);
    match call.creates {
        Some(_) => placed(call, visibility.and_then(Visibility::parse)).0,
        None => call.standing.caller.tenant.clone(),
    }
}

/// The tenant of a new session, and whether other tenants learn its name.
fn placed(call: &Call, visibility: Option<Visibility>) -> (TenantId, bool) {
    let tenant = call.standing.caller.tenant.clone();
    let limits = call.daemon.sessions.limits();
    let default = limits.tenants.find(&tenant).map(|it| it.visibility).unwrap_or_default();
    match visibility.unwrap_or(default) {
        Visibility::Private => (call.standing.private_tenant(), false),
        Visibility::Tenant => (tenant, false),
        Visibility::Listed => (tenant, true),
    }
}

/// The lease that the creator holds from the first moment on.
fn first_lease(call: &Call) -> (Caller, AcquireRequest) {
    let request = AcquireRequest {
        waiters_max: None,
        fresh: fresh_lease(),
        presented: None,
        ttl: None,
        on_disconnect: call.on_disconnect(),
        reason: None,
        wait_until: None,
    };
    (call.standing.caller.clone(), request)
}

/// Reads the size of a terminal, which may have so many cells.
pub fn size(rows: u64, cols: u64, cells_max: u32) -> Result<Size, SurfaceError> {
    let side = |side: u64| u16::try_from(side).unwrap_or(u16::MAX);
    Size::checked(side(rows), side(cols), cells_max).ok_or_else(|| {
        let side = Size::SIDE_MIN..=Size::SIDE_MAX;
        let name =
            if side.contains(&u16::try_from(rows).unwrap_or(u16::MAX)) { "cols" } else { "rows" };
        let problem = format!(
            "{rows} rows of {cols} columns; a terminal has {} to {} of each and at most \
             {cells_max} cells",
            Size::SIDE_MIN,
            Size::SIDE_MAX,
        );
        SurfaceError::argument(name, problem)
    })
}
