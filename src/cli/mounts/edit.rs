//! `mounts add` and `remove`: edit the mounts file of the user, and have a running daemon read it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::config::{reload, sources};
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::install::file::ClientFile;
use crate::cli::install::format::{Emptied, FileFormat, FileFormatError, Members, Spot};
use crate::cli::output::CommandReport;
use crate::config::mounts;
use crate::config::problem::{ConfigError, Fault, Problem, ValueOrigin};
use crate::core::mount::{MountMode, MountName, MountTable, MountTrust, NotAMountName};
use crate::transport::client::ConnectError;

/// The table of the mounts in the file.
const CONTAINER: &str = "mount";

/// Add a server to the mounts file of the user, as untrusted
#[derive(Debug, Args)]
pub struct AddMount {
    /// 1 to 16 of a-z, 0-9 and -
    #[arg(value_parser = parse_name)]
    name: MountName,
    #[command(flatten)]
    server: AddedServer,
    #[command(flatten)]
    rights: MountRights,
    #[command(flatten)]
    pub(super) file: MountsFileChoice,
    #[command(flatten)]
    pub(super) wait: ServerWait,
}

#[derive(Debug, Default, Args)]
struct AddedServer {
    /// The server's command with its arguments, after --
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["url", "unix_socket"])]
    command: Vec<String>,
    /// The address of a server that speaks Streamable HTTP
    #[arg(long, conflicts_with_all = ["command", "sandbox"])]
    url: Option<String>,
    /// Send this header with each request; the daemon replaces ${VAR} in it
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// The Unix socket of the server; with --url, it speaks HTTP there
    #[arg(long, value_name = "PATH", conflicts_with_all = ["command", "sandbox"])]
    unix_socket: Option<String>,
}

/// Who uses the servers, and how far they are trusted.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct MountRights {
    /// Who uses a server together: shared, leased, per_client or pool:N [default: shared]
    #[arg(long, value_parser = parse_mode)]
    pub(super) mode: Option<MountMode>,
    /// How far a server is trusted: trusted, untrusted or sandbox [default: untrusted]
    #[arg(long, value_parser = parse_trust)]
    pub(super) trust: Option<MountTrust>,
    /// Run the command in a sandbox, as --trust sandbox does
    #[arg(long, conflicts_with = "trust")]
    pub(super) sandbox: bool,
}

/// Remove a server from the mounts file of the user
#[derive(Debug, Args)]
pub struct RemoveMount {
    #[arg(value_parser = parse_name)]
    name: MountName,
    #[command(flatten)]
    pub(super) file: MountsFileChoice,
}

#[derive(Debug, Args)]
pub(super) struct MountsFileChoice {
    /// The configuration file beside which the mounts are, as of `serve --config`
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Do not have a running daemon read its configuration again
    #[arg(long)]
    pub(super) no_reload: bool,
}

/// Whether a command waits for the servers that it has added.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct ServerWait {
    /// Do not wait until the servers have listed their tools or failed, at most 35 s
    #[arg(long)]
    pub(super) no_wait: bool,
}

/// The report of a command that may have written the mounts file.
#[derive(Debug)]
pub(super) struct MountsEdit {
    pub(super) report: CommandReport,
    /// Whether a daemon is to read what was written.
    reloads: bool,
    /// Whether one has read it.
    pub(super) is_read: bool,
}

impl MountsEdit {
    /// Has a running daemon read what was written. If it does not, what was written stays.
    pub(super) async fn reloaded(mut self, context: &Context) -> Self {
        if !self.reloads {
            return self;
        }
        let report = &mut self.report;
        match reload(context).await {
            Ok(reload) => {
                report.data["reload"] = reload.data;
                report.notes.extend(reload.notes);
                report.notes.push(format!("the daemon has read it; {}", reload.text));
                self.is_read = true;
            }
            Err(CliFailure::Unreachable {
                source: ConnectError::Absent | ConnectError::Refused,
                ..
            }) => {
                report.notes.push("no daemon runs; the next one reads it".to_owned());
            }
            Err(failure) => {
                report.exit = failure.exit();
                report.data["reload"] = json!({"error": failure.to_string(), "error_code": failure.code(),
                    "details": failure.details()});
                report.notes.push(format!("the daemon does not read it: {failure}"));
            }
        }
        self
    }
}

fn parse_mode(text: &str) -> Result<MountMode, String> {
    let unknown = || format!("is not one of {}", MountMode::WORDS.join(", "));
    MountMode::parse(text).ok_or_else(unknown)
}

fn parse_trust(text: &str) -> Result<MountTrust, String> {
    let words = || MountTrust::ALL.map(MountTrust::as_str).join(", ");
    MountTrust::parse(text).ok_or_else(|| format!("is not one of {}", words()))
}

fn parse_name(text: &str) -> Result<MountName, String> {
    text.parse().map_err(|error: NotAMountName| error.to_string())
}

/// `NAME=VALUE`, or `NAME: VALUE` as other programs write it.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(['=', ':']).ok_or("write it as NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim_start().to_owned()))
}

impl AddedServer {
    fn members(self) -> Members {
        let mut members = Members::new();
        if let Some((command, args)) = self.command.split_first() {
            members.push(("command", json!(command)));
            if !args.is_empty() {
                members.push(("args", json!(args)));
            }
        }
        members.extend(self.url.map(|url| ("url", json!(url))));
        members.extend(self.unix_socket.map(|socket| ("socket", json!(socket))));
        if !self.headers.is_empty() {
            let headers = self.headers.into_iter().map(|(name, value)| (name, json!(value)));
            members.push(("headers", Value::Object(headers.collect())));
        }
        members
    }
}

impl MountRights {
    pub(super) fn members(self) -> Members {
        let trust = self.sandbox.then_some(MountTrust::Sandboxed).or(self.trust);
        let mode = self.mode.map(|mode| ("mode", json!(mode.to_string())));
        mode.into_iter().chain(trust.map(|it| ("trust", json!(it.as_str())))).collect()
    }
}

/// The mounts file with the highest precedence as it is, and the mounts of the other files.
pub(super) struct EditedMounts {
    file: ClientFile,
    others: MountTable,
}

impl MountsFileChoice {
    pub(super) fn open(&self) -> Result<EditedMounts, CliFailure> {
        let directory = env::current_dir().context("the current directory is gone")?;
        let sources = sources(self.config.as_deref(), &directory, &env::vars_os().collect())?;
        let mut files: Vec<_> = sources.mounts_files().into_iter().map(|it| it.path).collect();
        let file =
            files.pop().context("there is no place for mounts; set HOME or XDG_CONFIG_HOME")?;
        let mut others = MountTable::new();
        for other in files {
            // A problem of another file is the daemon's to tell.
            let text = fs::read_to_string(&other).unwrap_or_default();
            mounts::read(&text, &other, &mut others);
        }
        let file = ClientFile::read(&file).with_context(|| file.display().to_string())?;
        Ok(EditedMounts { file, others })
    }

    pub(super) fn edited(
        &self,
        data: Value,
        mut notes: Vec<String>,
        is_written: bool,
    ) -> MountsEdit {
        if is_written && self.no_reload {
            notes.push("`termgate config reload` has a running daemon read it".to_owned());
        }
        let report = CommandReport { notes, ..CommandReport::new(data, "") };
        MountsEdit { report, reloads: is_written && !self.no_reload, is_read: false }
    }
}

impl EditedMounts {
    pub(super) fn file(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn text(&self) -> &str {
        self.file.text().unwrap_or_default()
    }

    /// All mounts, if the file had this text.
    ///
    /// # Errors
    /// A daemon could not read it.
    pub(super) fn with(&self, text: &str) -> Result<MountTable, CliFailure> {
        let mut all = self.others.clone();
        let problems = mounts::read(text, self.file(), &mut all);
        if problems.is_empty() { Ok(all) } else { Err(ConfigError(problems).into()) }
    }

    /// Writes the file, if a daemon could read it.
    pub(super) fn write(&self, text: &str) -> Result<(), CliFailure> {
        self.with(text)?;
        let file = self.file();
        let parent = file.parent().context("the mounts file has no directory")?;
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        Ok(self.file.replace(text).with_context(|| file.display().to_string())?)
    }
}

fn wrong(file: &Path, error: &FileFormatError) -> CliFailure {
    let origin = ValueOrigin::File { path: file.to_owned(), at: None };
    let fault = Fault::Syntax(error.to_string());
    ConfigError(vec![Problem { origin, key: None, fault }]).into()
}

fn spot(name: &MountName) -> Spot<'_> {
    Spot { container: CONTAINER, name: name.as_str() }
}

impl AddMount {
    pub(super) fn run(self) -> Result<MountsEdit, CliFailure> {
        let before = self.file.open()?;
        let (file, text) = (before.file(), before.text());
        if is_known(file, text, &self.name)? {
            let problem = format!("{} has a mount `{}` already", file.display(), self.name);
            return Err(CliFailure::Usage(problem));
        }
        let members = [self.server.members(), self.rights.members()].concat();
        before.write(&added(file, text, &self.name, &members)?)?;
        let data = json!({"file": file, "added": [self.name.as_str()]});
        Ok(self.file.edited(data, vec![format!("added {} to {}", self.name, file.display())], true))
    }
}

impl RemoveMount {
    pub(super) fn run(&self) -> Result<MountsEdit, CliFailure> {
        let before = self.file.open()?;
        let (file, text) = (before.file(), before.text());
        if !is_known(file, text, &self.name)? {
            return Err(CliFailure::NotFound {
                why: format!("{} has no mount `{}`", file.display(), self.name),
                hint: "`termgate mounts` lists them; one may be in another file.".to_owned(),
            });
        }
        let text = FileFormat::Toml.remove(text, spot(&self.name), Emptied::Goes);
        before.write(&text.map_err(|error| wrong(file, &error))?)?;
        let data = json!({"file": file, "removed": [self.name.as_str()]});
        Ok(self.file.edited(
            data,
            vec![format!("removed {} from {}", self.name, file.display())],
            true,
        ))
    }
}

fn is_known(file: &Path, text: &str, name: &MountName) -> Result<bool, CliFailure> {
    let known = FileFormat::Toml.get(text, spot(name)).map_err(|error| wrong(file, &error))?;
    Ok(known.is_some())
}

pub(super) fn added(
    file: &Path,
    text: &str,
    name: &MountName,
    members: &Members,
) -> Result<String, CliFailure> {
    FileFormat::Toml.add(text, spot(name), members).map_err(|error| wrong(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::mount::server::MountedServer;

    #[test]
    fn each_kind_of_server_can_be_added() {
        let with = |server: AddedServer, rights: MountRights| {
            let members = [server.members(), rights.members()].concat();
            let text = added(Path::new("mounts.toml"), "", &"a".parse().unwrap(), &members);
            let mut table = MountTable::new();
            let problems = mounts::read(&text.unwrap(), Path::new("mounts.toml"), &mut table);
            assert!(problems.is_empty(), "{problems:?}");
            table.remove(&"a".parse().unwrap()).unwrap()
        };
        let server = |it| with(it, MountRights::default());
        let (command, url) = (vec!["server".to_owned()], Some("http://localhost/mcp".to_owned()));
        let mode = Some(MountMode::Pool(3));
        let added = AddedServer { command, ..Default::default() };
        let sandboxed = with(added, MountRights { mode, sandbox: true, trust: None });
        assert_eq!((sandboxed.trust, sandboxed.mode), (MountTrust::Sandboxed, MountMode::Pool(3)));
        let headers = ["A=b=c", "Authorization: Bearer x"].map(|it| parse_header(it).unwrap());
        let socket = Some("/run/a".to_owned());
        let http = AddedServer {
            url,
            headers: headers.to_vec(),
            unix_socket: socket.clone(),
            ..Default::default()
        };
        let MountedServer::Http(http) = server(http).server else { panic!("it is HTTP") };
        assert_eq!((http.headers["A"].as_str(), &http.socket), ("b=c", &socket));
        assert_eq!(http.headers["Authorization"], "Bearer x");
        let socket = server(AddedServer { unix_socket: socket, ..Default::default() });
        assert_eq!(socket.server, MountedServer::Socket("/run/a".to_owned()));
        assert!(parse_header("Authorization").is_err());
    }
}
