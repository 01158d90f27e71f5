//! `mounts import`: adds the servers of another client's file to the mounts file of the user.

mod foreign_file;

use std::env;
use std::path::{self, Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::failure::CliFailure;
use crate::cli::install::format::Members;
use crate::cli::mounts::edit::{MountRights, MountsEdit, MountsFileChoice, ServerWait, added};
use crate::cli::mounts::import::foreign_file::ForeignFile;
use crate::config::mounts;
use crate::core::invisible::written_out;
use crate::core::mount::{MOUNTS_MAX, MountName, MountSettings, MountTable, NAME_MAX};
use crate::mount::json::{ExactJson, ExactObject};

/// Where they say what kind a server is.
const KINDS: [&str; 3] = ["type", "transport", "transportType"];

/// Where they say the address of a server, beside `url`.
const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// What editors put in for the directory of the project.
const PROJECT: &str = "workspaceFolder";

/// What editors put in for `${…}` and the daemon does not know, beside all with a colon.
const EDITORS: [&str; 8] = [
    PROJECT,
    "workspaceFolderBasename",
    "workspaceRoot",
    "userHome",
    "execPath",
    "pathSeparator",
    "cwd",
    "/",
];

/// The directories of editors' files in a project.
const EDITOR_DIRECTORIES: [&str; 2] = [".vscode", ".cursor"];

/// What the daemon replaces by `$` alone: no variable has this name.
const LITERAL: &str = "${0:-$}";

/// Add the servers of another client's file, as untrusted unless --trust says otherwise
///
/// Reads the servers in `mcpServers` or `servers` of a file such as .mcp.json or .vscode/mcp.json. A name that a mount
/// cannot have, or that is taken, is replaced by a similar one. Says which servers it left out, and why.
#[derive(Debug, Args)]
pub struct ImportMounts {
    from: PathBuf,
    #[command(flatten)]
    rights: MountRights,
    #[command(flatten)]
    file: MountsFileChoice,
    #[command(flatten)]
    pub(super) wait: ServerWait,
}

/// A server as another client has it, in the keys of a mount.
#[derive(Debug, Default, PartialEq)]
struct ForeignServer<'a> {
    /// The directory of the project to which the file belongs.
    project: Option<&'a Path>,
    members: Members,
    /// What differs from what its client does.
    notes: Vec<String>,
    /// The directory in which its client would start it, if it needs that.
    place: Option<PathBuf>,
}

impl ImportMounts {
    pub(super) fn run(&self) -> Result<MountsEdit, CliFailure> {
        let ForeignFile { mut servers, mut notes } = ForeignFile::read(&self.from)?;
        // A server keeps its name, whatever those before it are called.
        servers.sort_by_key(|(name, _)| name.parse::<MountName>().is_err());
        let before = self.file.open()?;
        let (file, mut text) = (before.file(), before.text().to_owned());
        let known = before.with(&text)?;
        let mut all = known.clone();
        let place = place_of(&self.from);
        let (mut names, mut told, mut renamed) = (Vec::new(), Vec::new(), Map::new());
        let (mut skipped, mut remarks) = (Vec::new(), Vec::new());
        for (name, server) in &servers {
            let shown = written_out(name, char::is_control);
            let foreign = server.as_ref().map_err(String::clone);
            let foreign = foreign.and_then(|it| ForeignServer::of(it, place.as_deref()));
            let taken = foreign.and_then(|mut foreign| {
                foreign.members.extend(self.rights.members());
                foreign.add_place();
                let (id, settings) = foreign.mount(name, (&known, &all))?;
                Ok((foreign, id, settings))
            });
            let (foreign, id, settings) = match taken {
                Ok(taken) => taken,
                Err(why) => {
                    skipped.push(format!("{shown}: {why}"));
                    continue;
                }
            };
            text = added(file, &text, &id, &foreign.members)?;
            all.insert(id.clone(), settings);
            remarks.extend(foreign.notes.iter().map(|note| format!("{id}: {note}")));
            let place = foreign.place.map(|it| format!(" (in {})", it.display()));
            let place = place.unwrap_or_default();
            if id.as_str() == name {
                told.push(format!("{id}{place}"));
            } else {
                told.push(format!("{shown} as {id}{place}"));
                renamed.insert(shown.into_owned(), json!(id.as_str()));
            }
            names.push(id.to_string());
        }
        if !names.is_empty() {
            before.write(&text)?;
        }
        notes.extend(skipped.iter().map(|it| format!("left out {it}")));
        notes.extend(remarks.iter().cloned());
        if !names.is_empty() {
            notes.push(format!("added {} to {}", told.join(", "), file.display()));
        }
        let data = json!({"file": file, "added": names, "renamed": renamed, "skipped": skipped,
            "notes": remarks});
        Ok(self.file.edited(data, notes, !names.is_empty()))
    }
}

impl<'a> ForeignServer<'a> {
    /// Reads a server of a file that belongs to this project.
    ///
    /// # Errors
    /// Why it cannot be a mount.
    fn of(server: &ExactObject, project: Option<&'a Path>) -> Result<Self, String> {
        let is = |key: &str, value| server.get(key).and_then(ExactJson::as_literal) == Some(value);
        if is("disabled", "true") || is("enabled", "false") {
            return Err("it is disabled".to_owned());
        }
        let mut foreign = Self { project, ..Self::default() };
        let used: &[&str] = if is_http(server)? {
            let mut urls = ADDRESSES.into_iter().filter_map(|key| server.text(key));
            let url = urls.next().ok_or("it has no url")?;
            foreign.members.push(("url", json!(foreign.with_variables(url)?)));
            foreign.add_texts("headers", server)?;
            &["url", "serverUrl", "httpUrl", "headers"]
        } else {
            foreign.add_word("command", server)?.ok_or("it has no command")?;
            foreign.add_args(server)?;
            foreign.add_texts("env", server)?;
            foreign.add_word("cwd", server)?;
            &["command", "args", "env", "cwd"]
        };
        let known = |key: &str| {
            used.contains(&key) || KINDS.contains(&key) || ["disabled", "enabled"].contains(&key)
        };
        let mut ignored: Vec<_> =
            server.iter().map(|(key, _)| key).filter(|key| !known(key)).collect();
        ignored.sort_unstable();
        let ignored = ignored.into_iter();
        foreign.notes.extend(
            ignored.map(|key| format!("{} is ignored", written_out(key, char::is_control))),
        );
        Ok(foreign)
    }

    /// Adds a text. Returns nothing if the server has none.
    fn add_word(&mut self, key: &'static str, server: &ExactObject) -> Result<Option<()>, String> {
        let Some(word) = given(server, key) else { return Ok(None) };
        let word = word.as_text().ok_or_else(|| format!("its {key} is no text"))?;
        self.members.push((key, json!(self.with_variables(word)?)));
        Ok(Some(()))
    }

    fn add_args(&mut self, server: &ExactObject) -> Result<(), String> {
        let Some(args) = given(server, "args") else { return Ok(()) };
        let ExactJson::List(args) = args else { return Err("its args are no list".to_owned()) };
        let args: Option<Vec<String>> = args.iter().map(text).collect();
        let args = args.ok_or("one of its args is neither a text nor a number")?;
        let args: Result<Vec<String>, String> =
            args.iter().map(|it| self.with_variables(it)).collect();
        let mut args = args?;
        // Programs such as mcp-remote replace the variables of their own environment themselves.
        let env = server.get("env").and_then(ExactJson::as_object).into_iter();
        for (name, _) in env.flat_map(ExactObject::iter) {
            for arg in &mut args {
                *arg = arg.replace(&format!("${{{name}}}"), &format!("{LITERAL}{{{name}}}"));
            }
        }
        self.members.push(("args", json!(args)));
        Ok(())
    }

    /// Adds named texts. Without a value there is none.
    fn add_texts(&mut self, key: &'static str, server: &ExactObject) -> Result<(), String> {
        let Some(texts) = given(server, key) else { return Ok(()) };
        let texts = texts.as_object().ok_or_else(|| format!("its {key} has no names"))?;
        let mut taken = Map::new();
        for (name, value) in texts.iter().filter(|(_, value)| !is_null(value)) {
            let shown = written_out(name, char::is_control);
            let value = text(value)
                .ok_or_else(|| format!("{key}.{shown} is neither a text nor a number"))?;
            taken.insert(name.to_owned(), json!(self.with_variables(&value)?));
        }
        self.members.push((key, Value::Object(taken)));
        Ok(())
    }

    /// The text with the variables of the environment as the daemon has them.
    fn with_variables(&self, text: &str) -> Result<String, String> {
        let is_known = |variable: &str| variable == PROJECT && self.project.is_some();
        if let Some(of) = variables(text).find(|it| is_of_editors(it) && !is_known(it)) {
            return Err(format!("it needs ${{{of}}}, which only its editor knows"));
        }
        let text = text.replace("${env:", "${");
        Ok(match self.project {
            Some(project) => text.replace(&format!("${{{PROJECT}}}"), &unchanged(project)),
            None => text,
        })
    }

    /// Gives a program that names files by relative paths the directory of its client.
    fn add_place(&mut self) {
        let of = |key: &str| self.members.iter().find(|(name, _)| *name == key).map(|it| &it.1);
        let (Some(command), None, Some(place)) = (of("command"), of("cwd"), self.project) else {
            return;
        };
        let args = of("args").and_then(Value::as_array).into_iter().flatten();
        // A command without a slash is looked up in PATH.
        let command = command.as_str().into_iter().filter(|it| it.contains('/'));
        let mut words = command.chain(args.filter_map(Value::as_str));
        if words.any(|it| is_in(place, it)) {
            self.members.push(("cwd", json!(unchanged(place))));
            self.place = Some(place.to_owned());
        }
    }

    /// The mount that it becomes, with a name that is free. Mounts that were `known` before may be this server.
    ///
    /// # Errors
    /// Why it cannot be one.
    fn mount(
        &self,
        name: &str,
        (known, all): (&MountTable, &MountTable),
    ) -> Result<(MountName, MountSettings), String> {
        let settings = self.settings()?;
        let is_known =
            |id: &MountName| known.get(id).is_some_and(|it| it.server == settings.server);
        let id = names(name).find(|id| !all.contains_key(id) || is_known(id));
        let id = id.ok_or("its name is taken")?;
        if all.contains_key(&id) {
            return Err(format!("it is the mount {id} already"));
        }
        if all.len() >= MOUNTS_MAX {
            return Err(format!("there are {MOUNTS_MAX} mounts already"));
        }
        Ok((id, settings))
    }

    /// The settings as a daemon reads them.
    fn settings(&self) -> Result<MountSettings, String> {
        let (file, name) = (Path::new(mounts::MOUNTS), names("").next().ok_or("it has no name")?);
        let text = added(file, "", &name, &self.members).map_err(|error| error.to_string())?;
        let mut table = MountTable::new();
        let problems = mounts::read(&text, file, &mut table);
        let problems: Vec<_> = problems.iter().map(|it| it.fault.to_string()).collect();
        table.remove(&name).ok_or_else(|| problems.join("; "))
    }
}

/// Whether a word is a path that means something in this directory alone.
fn is_in(place: &Path, word: &str) -> bool {
    let is_written =
        ["./", "../"].iter().any(|it| word.starts_with(it)) || [".", ".."].contains(&word);
    is_written || (!word.is_empty() && Path::new(word).is_relative() && place.join(word).exists())
}

/// The directory in which a client of this file starts programs. A user's own file has none.
fn place_of(file: &Path) -> Option<PathBuf> {
    let file = path::absolute(file).ok()?;
    let beside = file.parent()?;
    let is_of_editor = EDITOR_DIRECTORIES.iter().any(|it| beside.ends_with(it));
    let place = if is_of_editor { beside.parent()? } else { beside };
    let directory = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let configuration = directory("XDG_CONFIG_HOME").is_some_and(|it| place.starts_with(it));
    let below_home = directory("HOME").and_then(|it| Some(place.strip_prefix(it).ok()?.to_owned()));
    let is_own = below_home.is_some_and(|below| {
        let first = below.iter().next().unwrap_or_default();
        first.is_empty() || first == "Library" || first.as_encoded_bytes().starts_with(b".")
    });
    let is_desktop = file.file_name().is_some_and(|it| it == "claude_desktop_config.json");
    (!configuration && !is_own && !is_desktop).then(|| place.to_owned())
}

fn is_null(value: &ExactJson) -> bool {
    value.as_literal() == Some("null")
}

/// A member that is there and not `null`.
fn given<'a>(server: &'a ExactObject, key: &str) -> Option<&'a ExactJson> {
    server.get(key).filter(|it| !is_null(it))
}

/// A value as a text. Numbers keep their digits.
fn text(value: &ExactJson) -> Option<String> {
    match value {
        ExactJson::Text(text) => Some(text.clone()),
        ExactJson::Literal(literal) => (!is_null(value)).then(|| literal.to_string()),
        ExactJson::List(_) | ExactJson::Object(_) => None,
    }
}

/// Whether a server is reached by HTTP; else it is a program.
fn is_http(server: &ExactObject) -> Result<bool, String> {
    match KINDS.into_iter().find_map(|key| server.text(key)) {
        None => Ok(ADDRESSES.into_iter().any(|key| server.get(key).is_some())),
        Some("stdio" | "local") => Ok(false),
        Some("http" | "streamable-http" | "streamable_http" | "streamableHttp") => Ok(true),
        Some("sse") => Err("its transport `sse` is not supported; many such servers have an \
            address for `http` beside it"
            .to_owned()),
        Some(other) => {
            Err(format!("its type `{}` is not known", written_out(other, char::is_control)))
        }
    }
}

/// What is between `${` and `}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// Whether a variable is one that an editor knows and the daemon does not.
fn is_of_editors(variable: &str) -> bool {
    let is_prefixed = variable.split_once(':').is_some_and(|(_, rest)| !rest.starts_with('-'));
    EDITORS.contains(&variable) || (is_prefixed && !variable.starts_with("env:"))
}

/// A path in which the daemon replaces nothing.
fn unchanged(path: &Path) -> String {
    path.to_string_lossy().replace("${", &format!("{LITERAL}{{"))
}

/// The names that a server may have as a mount, the best first.
fn names(name: &str) -> impl Iterator<Item = MountName> {
    let mut stem = slug(name);
    if stem.len() > NAME_MAX
        && let Some((_, last)) = name.rsplit_once('/')
    {
        // What is before it says whose the server is.
        stem = Some(slug(last)).filter(|it| !it.is_empty()).unwrap_or(stem);
    }
    if stem.is_empty() {
        "server".clone_into(&mut stem);
    }
    let numbered = (2..=MOUNTS_MAX + 1).map(|number| format!("-{number}"));
    let others = std::iter::once(String::new()).chain(numbered).filter_map(move |ending| {
        let most = stem.len().min(NAME_MAX - ending.len());
        format!("{}{ending}", stem[..most].trim_end_matches('-')).parse().ok()
    });
    name.parse().ok().into_iter().chain(others)
}

/// The text in the characters of a mount's name.
fn slug(text: &str) -> String {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
