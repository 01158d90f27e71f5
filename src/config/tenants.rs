//! Reads a tenants file: who belongs to which tenant, with which roles and limits, and its problems.
//!
//! The files of all places hold together; no tenant may be in two of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use crate::config::accounts::Accounts;
use crate::config::key::ConfigKey;
use crate::config::problem::{Fault, FilePosition, Problem, ValueOrigin};
use crate::core::ids::TenantId;
use crate::core::policy::roles::{Role, Roles};
use crate::core::policy::rules::patterns::Patterns;
use crate::core::policy::tenants::{
    Members, NamedGrant, NamedTenant, TenantLimits, Tenants, Visibility,
};
use crate::core::token::TokenName;

/// The most tenants, grants, and principals that one of them names.
pub const TENANTS_MAX: usize = 256;
const GRANTS_MAX: usize = 1_024;
const MEMBERS_MAX: usize = 1_024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantsFile {
    #[serde(default)]
    tenant: BTreeMap<String, Spanned<TenantTable>>,
    #[serde(default)]
    role: Vec<Spanned<RoleTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantTable {
    #[serde(default)]
    users: Vec<AccountWord>,
    #[serde(default)]
    groups: Vec<AccountWord>,
    #[serde(default)]
    tokens: Vec<String>,
    roles: Option<Vec<String>>,
    visibility: Option<String>,
    run_as: Option<AccountWord>,
    #[serde(default)]
    sandbox: bool,
    tools: Option<Vec<String>>,
    #[serde(default)]
    limits: LimitsTable,
}

/// A user or a group, by name or number.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a user or a group is a name or a number")]
enum AccountWord {
    Number(u32),
    Name(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    sessions: Option<u64>,
    connections: Option<u64>,
    subscriptions: Option<u64>,
    calls_per_second: Option<u64>,
    waiters: Option<u64>,
    history_rows: Option<u64>,
    history_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleTable {
    role: String,
    #[serde(default)]
    users: Vec<AccountWord>,
    #[serde(default)]
    groups: Vec<AccountWord>,
    #[serde(default)]
    tokens: Vec<String>,
    tenant: Option<String>,
    tag: Option<String>,
    session: Option<String>,
}

/// Adds what a tenants file says, and returns its problems. With problems, the tenants are not to be used.
pub fn read(text: &str, path: &Path, accounts: Accounts, tenants: &mut Tenants) -> Vec<Problem> {
    let file: TenantsFile = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let fault = Fault::Syntax(error.message().replace('\n', " "));
            return vec![problem((text, path), at, None, fault)];
        }
    };
    let mut problems = Vec::new();
    for (name, table) in file.tenant {
        let (at, key) = (table.span().start, format!("tenant.{name}"));
        let wrong = match table.into_inner().tenant(accounts) {
            Ok(tenant) => add(tenants, &name, tenant).err().into_iter().collect(),
            Err(wrong) => wrong,
        };
        let faults = wrong.into_iter().map(Fault::Rule);
        problems.extend(faults.map(|it| problem((text, path), at, Some(key.clone()), it)));
    }
    for table in file.role {
        let at = table.span().start;
        match table.into_inner().grant(accounts) {
            Ok(grant) => match grant.tenant.as_ref().filter(|it| !tenants.knows(it)) {
                Some(unknown) => problems.push(problem(
                    (text, path),
                    at,
                    Some("role".to_owned()),
                    Fault::Rule(format!("there is no tenant {unknown}")),
                )),
                None => tenants.grants.push(grant),
            },
            Err(wrong) => problems.extend(
                wrong
                    .into_iter()
                    .map(|it| problem((text, path), at, Some("role".to_owned()), Fault::Rule(it))),
            ),
        }
    }
    for (count, most, what) in
        [(tenants.named.len(), TENANTS_MAX, "tenants"), (tenants.grants.len(), GRANTS_MAX, "roles")]
    {
        if count > most {
            let fault = Fault::Rule(format!("more than {most} {what}"));
            problems.push(problem((text, path), 0, None, fault));
        }
    }
    problems.sort_by_key(Problem::position);
    problems
}

fn problem((text, path): (&str, &Path), at: usize, key: Option<String>, fault: Fault) -> Problem {
    let at = Some(FilePosition::of(text, at));
    Problem { origin: ValueOrigin::File { path: path.to_owned(), at }, key, fault }
}

/// Adds a tenant, unless there is one of this name or one of its members is in another one.
fn add(tenants: &mut Tenants, name: &str, tenant: NamedTenant) -> Result<(), String> {
    let id = named(name)?;
    if tenants.named.contains_key(&id) {
        return Err("another tenant has this name".to_owned());
    }
    for (other, known) in &tenants.named {
        let (its, known) = (&tenant.members, &known.members);
        let group = its.groups.iter().find(|it| known.groups.contains(it));
        let user = its.users.iter().find(|it| known.users.contains(it));
        let token = its.tokens.iter().find(|it| known.tokens.contains(it));
        if let Some(user) = user {
            return Err(format!("the user {user} belongs to the tenant {other} already"));
        }
        if let Some(group) = group {
            return Err(format!("the group {group} belongs to the tenant {other} already"));
        }
        if let Some(token) = token {
            return Err(format!("the token {token} belongs to the tenant {other} already"));
        }
    }
    tenants.named.insert(id, tenant);
    Ok(())
}

/// The tenant that a file names.
fn named(name: &str) -> Result<TenantId, String> {
    let is_of_user = name.starts_with("uid:");
    let id = name.parse::<TenantId>().ok().filter(|id| !is_of_user && !id.is_private());
    id.ok_or_else(|| {
        "a tenant's name has 1 to 40 of A-Z a-z 0-9 . _ - and begins with a letter".to_owned()
    })
}

impl TenantTable {
    /// The tenant, or all that is wrong with it.
    fn tenant(self, accounts: Accounts) -> Result<NamedTenant, Vec<String>> {
        let Self { users, groups, tokens, roles, visibility, run_as, sandbox, tools, limits } =
            self;
        let mut wrong = Vec::new();
        let members = members((users, groups, tokens), accounts, &mut wrong);
        if members.users.contains(&accounts.own) {
            wrong.push(
                "the daemon's own user belongs to no other tenant; name its tokens".to_owned(),
            );
        }
        let tools = tools.map(Patterns::new).transpose();
        let tools = tools.map_err(|problem| wrong.push(format!("tools: {problem}")));
        let limits = limits.check(&mut wrong);
        let roles = roles.map(|roles| {
            roles.iter().filter_map(|word| role_of(word, &mut wrong)).collect::<Roles>()
        });
        let visibility = match visibility.as_deref().map(|word| (word, Visibility::parse(word))) {
            None => Visibility::default(),
            Some((_, Some(visibility))) => visibility,
            Some((word, None)) => {
                let all = Visibility::ALL.map(Visibility::as_str).join(", ");
                wrong.push(format!("visibility: `{word}` is not one of {all}"));
                Visibility::default()
            }
        };
        let run_as = run_as.and_then(|user| user.number(accounts.uid, "run_as: user", &mut wrong));
        if run_as.is_some_and(|uid| accounts.own != 0 && uid != accounts.own) {
            wrong.push("run_as: only a daemon of root runs programs as others".to_owned());
        }
        let has_users = !(members.users.is_empty() && members.groups.is_empty());
        if has_users && !members.tokens.is_empty() && run_as.is_none() {
            wrong.push(
                "say with run_as as whom its programs run: with users and tokens in one tenant, the users could \
                 type into programs of the daemon's user"
                    .to_owned(),
            );
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(NamedTenant {
            members,
            roles,
            visibility,
            run_as,
            sandbox,
            tools: tools.ok().flatten().map(Arc::new),
            limits,
        })
    }
}

impl AccountWord {
    /// The number of the user or group, or a complaint that there is none.
    fn number(
        &self,
        of: fn(&str) -> Option<u32>,
        kind: &str,
        wrong: &mut Vec<String>,
    ) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => {
                let found = of(name);
                if found.is_none() {
                    wrong.push(format!("there is no {kind} {name}"));
                }
                found
            }
        }
    }
}

impl LimitsTable {
    /// The limits within the bounds of the keys that set those of other tenants.
    fn check(self, wrong: &mut Vec<String>) -> TenantLimits {
        let mut within = |name: &str, like: &str, value: Option<u64>| {
            let value = value?;
            let bounds = ConfigKey::find(like).and_then(ConfigKey::bounds);
            let fits = bounds.as_ref().is_none_or(|bounds| bounds.contains(&value));
            if let Some(bounds) = bounds.filter(|_| !fits) {
                let (least, most) = (bounds.start(), bounds.end());
                wrong.push(format!("limits.{name}: {value} is not within {least} to {most}"));
            }
            usize::try_from(value).ok()
        };
        TenantLimits {
            sessions: within("sessions", "sessions.others_max", self.sessions),
            connections: within("connections", "connections.others_max", self.connections),
            subscriptions: within("subscriptions", "subscriptions.others_max", self.subscriptions),
            calls_per_second: within(
                "calls_per_second",
                "calls.others_per_second",
                self.calls_per_second,
            ),
            waiters: within("waiters", "lease.waiters", self.waiters),
            history_rows: within("history_rows", "history.rows", self.history_rows),
            history_bytes: within("history_bytes", "history.bytes", self.history_bytes),
        }
    }
}

impl RoleTable {
    /// The grant, or all that is wrong with it.
    fn grant(self, accounts: Accounts) -> Result<NamedGrant, Vec<String>> {
        let Self { role, users, groups, tokens, tenant, tag, session } = self;
        let mut wrong = Vec::new();
        let to = members((users, groups, tokens), accounts, &mut wrong);
        if to == Members::default() && wrong.is_empty() {
            wrong.push("name who has it: users, groups or tokens".to_owned());
        }
        // Here the tenant of a user may be meant as well.
        let tenant = tenant.map(|name| name.parse::<TenantId>()).transpose();
        let tenant = tenant.map_err(|error| wrong.push(format!("tenant: {error}")));
        let tenant = tenant.ok().flatten();
        if tenant.as_ref().is_some_and(TenantId::is_private) {
            wrong.push("tenant: what is private is granted to nobody".to_owned());
        }
        let roles = role_of(&role, &mut wrong).map(Roles::from).unwrap_or_default();
        for (name, text) in [("tag", &tag), ("session", &session)] {
            if text.as_ref().is_some_and(String::is_empty) {
                wrong.push(format!("{name}: is empty"));
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let (tag, session) = (tag.map(Arc::from), session.map(Arc::from));
        Ok(NamedGrant { to, tenant, roles, tag, session })
    }
}

/// The role with this name, or a complaint that there is none.
fn role_of(word: &str, wrong: &mut Vec<String>) -> Option<Role> {
    let role = Role::parse(word);
    if role.is_none() {
        let all = Role::ALL.map(Role::as_str).join(", ");
        wrong.push(format!("role: `{word}` is not one of {all}"));
    }
    role
}

/// The principals that a table names.
fn members(
    (users, groups, tokens): (Vec<AccountWord>, Vec<AccountWord>, Vec<String>),
    accounts: Accounts,
    wrong: &mut Vec<String>,
) -> Members {
    if users.len() + groups.len() + tokens.len() > MEMBERS_MAX {
        wrong.push(format!("more than {MEMBERS_MAX} principals"));
        return Members::default();
    }
    let users: Vec<u32> =
        users.iter().filter_map(|it| it.number(accounts.uid, "user", wrong)).collect();
    let groups = groups.iter().filter_map(|it| it.number(accounts.gid, "group", wrong)).collect();
    let named = |name: &String| name.parse::<TokenName>().map(|name| Arc::clone(name.label()));
    let mut unfit = |name: &String| wrong.push(format!("`{name}` is not the name of a token"));
    let tokens =
        tokens.iter().filter_map(|name| named(name).map_err(|_| unfit(name)).ok()).collect();
    Members { users, groups, tokens }
}

#[cfg(test)]
mod tests;
