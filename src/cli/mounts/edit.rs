//! `mounts add`, `remove` and `import`: edit the mounts file of the user, which a daemon reads again when it is told to.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::config::sources;
use crate::cli::failure::CliFailure;
use crate::cli::install::file::ClientFile;
use crate::cli::install::format::{Emptied, FileFormat, FileFormatError, Members, Spot};
use crate::cli::output::CommandReport;
use crate::config::mounts;
use crate::config::problem::ConfigError;
use crate::core::invisible::written_out;
use crate::core::mount::{MountMode, MountName, MountTable, MountTrust, NotAMountName};

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
    file: MountsFileChoice,
}

#[derive(Debug, Default, Args)]
struct AddedServer {
    /// The server's command with its arguments, after --
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["url", "socket"])]
    command: Vec<String>,
    /// Who uses a server together: shared, leased, per_client or pool:N [default: shared]
    #[arg(long, value_parser = parse_mode)]
    mode: Option<MountMode>,
    /// Run the command in a sandbox
    #[arg(long, conflicts_with_all = ["url", "socket"])]
    sandbox: bool,
    /// The address of a server that speaks Streamable HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// Send this header with each request; the daemon replaces ${VAR} in it
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// The Unix socket of the server; with --url, it speaks HTTP there
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    socket: Option<String>,
}

/// Remove a server from the mounts file of the user
#[derive(Debug, Args)]
pub struct RemoveMount {
    #[arg(value_parser = parse_name)]
    name: MountName,
    #[command(flatten)]
    file: MountsFileChoice,
}

/// Add the servers of another client's file, as untrusted
///
/// Reads the member `mcpServers` of a file such as .mcp.json, and says which servers it left out.
#[derive(Debug, Args)]
pub struct ImportMounts {
    from: PathBuf,
    #[command(flatten)]
    file: MountsFileChoice,
}

#[derive(Debug, Args)]
struct MountsFileChoice {
    /// The configuration file beside which the mounts are, as of `serve --config`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn parse_mode(text: &str) -> Result<MountMode, String> {
    let unknown = || format!("is not one of {}", MountMode::WORDS.join(", "));
    MountMode::parse(text).ok_or_else(unknown)
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
        members.extend(self.socket.map(|socket| ("socket", json!(socket))));
        if !self.headers.is_empty() {
            let headers = self.headers.into_iter().map(|(name, value)| (name, json!(value)));
            members.push(("headers", Value::Object(headers.collect())));
        }
        if let Some(mode) = self.mode {
            members.push(("mode", json!(mode.to_string())));
        }
        if self.sandbox {
            members.push(("trust", json!(MountTrust::Sandboxed.as_str())));
        }
        members
    }
}

impl MountsFileChoice {
    /// The mounts file with the highest precedence, as it is now.
    fn open(&self) -> Result<ClientFile, CliFailure> {
        let directory = env::current_dir().context("the current directory is gone")?;
        let sources = sources(self.config.as_deref(), &directory, &env::vars_os().collect())?;
        let file = sources.mounts_files().pop().map(|source| source.path);
        let file = file.context("there is no place for mounts; set HOME or XDG_CONFIG_HOME")?;
        Ok(ClientFile::read(&file).with_context(|| file.display().to_string())?)
    }
}

/// Writes the file, if a daemon could read it.
fn write(before: &ClientFile, text: &str) -> Result<(), CliFailure> {
    let file = before.path();
    let problems = mounts::read(text, file, &mut MountTable::new());
    if !problems.is_empty() {
        return Err(ConfigError(problems).into());
    }
    let parent = file.parent().context("the mounts file has no directory")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    Ok(before.replace(text).with_context(|| file.display().to_string())?)
}

fn wrong(file: &Path, error: &FileFormatError) -> CliFailure {
    anyhow::anyhow!("{}: {error}", file.display()).into()
}

fn spot(name: &MountName) -> Spot<'_> {
    Spot { container: CONTAINER, name: name.as_str() }
}

/// The note of a file that was changed.
fn changed(what: &str, file: &Path) -> String {
    format!("{what} {}; `termgate config reload` has a running daemon read it", file.display())
}

impl AddMount {
    pub(super) fn run(self) -> Result<CommandReport, CliFailure> {
        let before = self.file.open()?;
        let (file, text) = (before.path(), before.text().unwrap_or_default());
        if is_known(file, text, &self.name)? {
            let problem = format!("{} has a mount `{}` already", file.display(), self.name);
            return Err(CliFailure::Usage(problem));
        }
        write(&before, &added(file, text, &self.name, &self.server.members())?)?;
        let data = json!({"file": file, "added": [self.name.as_str()]});
        let notes = vec![changed(&format!("added {} to", self.name), file)];
        Ok(CommandReport { notes, ..CommandReport::new(data, "") })
    }
}

impl RemoveMount {
    pub(super) fn run(self) -> Result<CommandReport, CliFailure> {
        let before = self.file.open()?;
        let (file, text) = (before.path(), before.text().unwrap_or_default());
        if !is_known(file, text, &self.name)? {
            return Err(CliFailure::NotFound {
                why: format!("{} has no mount `{}`", file.display(), self.name),
                hint: "`termgate mounts` lists them; one may be in another file.".to_owned(),
            });
        }
        let text = FileFormat::Toml.remove(text, spot(&self.name), Emptied::Goes);
        write(&before, &text.map_err(|error| wrong(file, &error))?)?;
        let data = json!({"file": file, "removed": [self.name.as_str()]});
        let notes = vec![changed(&format!("removed {} from", self.name), file)];
        Ok(CommandReport { notes, ..CommandReport::new(data, "") })
    }
}

impl ImportMounts {
    pub(super) fn run(self) -> Result<CommandReport, CliFailure> {
        let from = self.from.display();
        let read = fs::read_to_string(&self.from).with_context(|| from.to_string())?;
        let read: Value = serde_json::from_str(&read).with_context(|| from.to_string())?;
        let servers = read.get("mcpServers").and_then(Value::as_object);
        let servers = servers.with_context(|| format!("{from} has no object mcpServers"))?;
        let before = self.file.open()?;
        let (file, mut text) = (before.path(), before.text().unwrap_or_default().to_owned());
        let (mut names, mut skipped) = (Vec::new(), Vec::new());
        for (name, server) in servers {
            match imported(name, server) {
                Ok((name, _)) if is_known(file, &text, &name)? => {
                    skipped.push(format!("{name}: there is a mount of this name"));
                }
                Ok((name, members)) => {
                    text = added(file, &text, &name, &members)?;
                    names.push(name.to_string());
                }
                Err(why) => skipped.push(format!("{}: {why}", written_out(name, char::is_control))),
            }
        }
        if !names.is_empty() {
            write(&before, &text)?;
        }
        let data = json!({"file": file, "added": names, "skipped": skipped});
        let mut notes: Vec<String> =
            skipped.iter().map(|skipped| format!("left out {skipped}")).collect();
        if !names.is_empty() {
            notes.push(changed(&format!("added {} to", names.join(", ")), file));
        }
        Ok(CommandReport { notes, ..CommandReport::new(data, "") })
    }
}

/// A server of another client's file as a mount, or why it cannot be one.
fn imported(name: &str, server: &Value) -> Result<(MountName, Members), String> {
    let plain = name.to_ascii_lowercase().replace(['_', ' ', '.'], "-");
    let id: MountName = plain.parse().map_err(|error: NotAMountName| error.to_string())?;
    if server.get("disabled") == Some(&json!(true)) {
        return Err("it is disabled".to_owned());
    }
    let (first, others) = kind_of(server)?;
    let needed = server.get(first).filter(|it| it.is_string());
    let needed = needed.ok_or_else(|| format!("it has no {first}"))?;
    let mut members: Members = vec![(first, needed.clone())];
    for key in others {
        if let Some(value) = server.get(key) {
            members.push((key, value.clone()));
        }
    }
    Ok((id, members))
}

/// The member that says where a server is, and those that go with it.
fn kind_of(server: &Value) -> Result<(&'static str, &'static [&'static str]), String> {
    let program: (&str, &[&str]) = ("command", &["args", "env", "cwd"]);
    let http: (&str, &[&str]) = ("url", &["headers"]);
    match server.get("type").and_then(Value::as_str) {
        None if server.get("url").is_some() => Ok(http),
        None | Some("stdio" | "local") => Ok(program),
        Some("http" | "streamable-http" | "streamableHttp") => Ok(http),
        Some("sse") => Err("its transport `sse` is not supported; \
            many such servers have an address for `http` beside it"
            .to_owned()),
        Some(other) => {
            Err(format!("its type `{}` is not known", written_out(other, char::is_control)))
        }
    }
}

fn is_known(file: &Path, text: &str, name: &MountName) -> Result<bool, CliFailure> {
    let known = FileFormat::Toml.get(text, spot(name)).map_err(|error| wrong(file, &error))?;
    Ok(known.is_some())
}

fn added(
    file: &Path,
    text: &str,
    name: &MountName,
    members: &Members,
) -> Result<String, CliFailure> {
    FileFormat::Toml.add(text, spot(name), members).map_err(|error| wrong(file, &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::core::mount::server::MountedServer;

    #[test]
    fn a_server_of_another_client_becomes_a_mount_or_is_left_out() {
        let server =
            json!({"command": "npx", "args": ["-y"], "env": {"A": "${A}"}, "type": "stdio"});
        let (name, members) = imported("My_Server", &server).unwrap();
        assert_eq!(name.as_str(), "my-server");
        let keys: Vec<_> = members.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["command", "args", "env"]);
        let server = json!({"type": "http", "url": "https://a", "headers": {"A": "${A}"}});
        let (_, members) = imported("web", &server).unwrap();
        let keys: Vec<_> = members.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["url", "headers"]);
        for (name, server) in [
            ("old", json!({"type": "sse", "url": "https://example.com/sse"})),
            ("other", json!({"type": "ws", "url": "wss://example.com"})),
            ("nowhere", json!({"type": "http"})),
            ("nothing", json!({})),
            ("off", json!({"command": "x", "disabled": true})),
            ("a-name-that-is-too-long", json!({"command": "x"})),
        ] {
            assert!(imported(name, &server).is_err(), "{name}");
        }
    }

    #[test]
    fn an_imported_file_is_one_that_a_daemon_reads() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let servers = json!({"mcpServers": {
            "fs": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
            "web": {"url": "https://example.com", "headers": {"Authorization": "Bearer ${A}"}},
            "old": {"type": "sse", "url": "https://example.com"},
        }});
        fs::write(at(".mcp.json"), servers.to_string()).unwrap();
        let choice = || MountsFileChoice { config: Some(at("termgate.toml")) };
        let report = ImportMounts { from: at(".mcp.json"), file: choice() }.run().unwrap();
        assert_eq!(report.data["added"], json!(["fs", "web"]));
        assert!(report.notes[0].starts_with("left out old: its transport `sse`"), "{report:?}");
        let add = |name: &str| {
            let server = AddedServer { command: vec!["server".to_owned()], ..Default::default() };
            AddMount { name: name.parse().unwrap(), server, file: choice() }.run()
        };
        add("two").unwrap();
        assert!(add("two").is_err());
        RemoveMount { name: "two".parse().unwrap(), file: choice() }.run().unwrap();
        let mode = fs::metadata(at("mounts.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it may have secrets");
        let text = fs::read_to_string(at("mounts.toml")).unwrap();
        let mut table = MountTable::new();
        assert!(mounts::read(&text, Path::new("mounts.toml"), &mut table).is_empty(), "{text}");
        let fs = &table[&"fs".parse().unwrap()];
        let MountedServer::Program(program) = &fs.server else { panic!("{text}") };
        assert_eq!((program.command.as_str(), program.env["A"].as_str()), ("npx", "b"));
        assert_eq!((fs.trust, table.len()), (MountTrust::Untrusted, 2));
        let MountedServer::Http(web) = &table[&"web".parse().unwrap()].server else {
            panic!("{text}")
        };
        assert_eq!(web.headers["Authorization"], "Bearer ${A}");
    }

    #[test]
    fn each_kind_of_server_can_be_added() {
        let server = |server: AddedServer| {
            let members = server.members();
            let text = added(Path::new("mounts.toml"), "", &"a".parse().unwrap(), &members);
            let mut table = MountTable::new();
            let problems = mounts::read(&text.unwrap(), Path::new("mounts.toml"), &mut table);
            assert!(problems.is_empty(), "{problems:?}");
            table.remove(&"a".parse().unwrap()).unwrap()
        };
        let (command, url) = (vec!["server".to_owned()], Some("http://localhost/mcp".to_owned()));
        let mode = Some(MountMode::Pool(3));
        let sandboxed = server(AddedServer { command, mode, sandbox: true, ..Default::default() });
        assert_eq!((sandboxed.trust, sandboxed.mode), (MountTrust::Sandboxed, MountMode::Pool(3)));
        let headers = ["A=b=c", "Authorization: Bearer x"].map(|it| parse_header(it).unwrap());
        let socket = Some("/run/a".to_owned());
        let http = AddedServer {
            url,
            headers: headers.to_vec(),
            socket: socket.clone(),
            ..Default::default()
        };
        let MountedServer::Http(http) = server(http).server else { panic!("it is HTTP") };
        assert_eq!((http.headers["A"].as_str(), &http.socket), ("b=c", &socket));
        assert_eq!(http.headers["Authorization"], "Bearer x");
        let socket = server(AddedServer { socket, ..Default::default() });
        assert_eq!(socket.server, MountedServer::Socket("/run/a".to_owned()));
        assert!(parse_header("Authorization").is_err());
    }
}
