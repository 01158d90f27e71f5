//! What a server says of its tools, and the set of them that an operator accepted.
//!
//! Clients rely on the words of a definition, so a set that changes needs to be accepted again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::core::mount::MountName;
use crate::mount::declared::DeclaredCapabilities;
use crate::mount::json::ExactJson;
use crate::mount::json::reading::{JsonFault, read_whole};
use crate::mount::offered::offered_tool;

/// The most tools of a server.
pub const TOOLS_MAX: usize = 256;

/// The members of a definition that clients act on.
const PINNED: [&str; 6] =
    ["annotations", "description", "inputSchema", "name", "outputSchema", "title"];

/// The largest file of accepted definitions, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// All tools of a server, by its own names for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSet {
    tools: BTreeMap<Arc<str>, Arc<ExactJson>>,
    left_out: LeftOut,
}

/// What clients are not told of the tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Those that nobody can use, also those that cannot even be read and are not among the tools.
    pub tools: Vec<LeftOutTool>,
    /// Those whose `outputSchema` alone is left out.
    pub outputs: Vec<LeftOutTool>,
}

/// A tool that a server lists and of which all or a part is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutTool {
    /// The server's own name for it, if it has one.
    pub name: String,
    pub problem: String,
}

impl LeftOutTool {
    pub fn of(definition: &RawValue, fault: &JsonFault) -> Self {
        #[derive(Deserialize)]
        struct OnlyName {
            name: String,
        }
        let named = read_whole::<OnlyName>(definition.get());
        Self { name: named.map(|it| it.name).unwrap_or_default(), problem: fault.to_string() }
    }
}

/// A server lists more tools than one may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it lists more than {TOOLS_MAX} tools")]
pub struct TooManyTools;

/// How one tool differs between two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDifference {
    Added,
    Removed,
    /// These members differ.
    Changed(Vec<&'static str>),
}

impl ToolSet {
    /// The set of these definitions.
    ///
    /// # Errors
    /// There are more than [`TOOLS_MAX`].
    pub fn of(definitions: Vec<ExactJson>) -> Result<Self, TooManyTools> {
        Self::of_list(definitions, Vec::new())
    }

    /// The set of a list with these definitions, and with these tools that cannot be read. Those without a name, and with the
    /// name of another one, are left out: a call names one.
    ///
    /// # Errors
    /// There are more than [`TOOLS_MAX`].
    pub fn of_list(
        definitions: Vec<ExactJson>,
        unread: Vec<LeftOutTool>,
    ) -> Result<Self, TooManyTools> {
        if definitions.len() + unread.len() > TOOLS_MAX {
            return Err(TooManyTools);
        }
        let (mut tools, mut left_out) = (BTreeMap::new(), LeftOut::default());
        let mut repeated = BTreeSet::new();
        let leave_out =
            |name: &str, problem: String| LeftOutTool { name: name.to_owned(), problem };
        for definition in definitions {
            let Some(name) = definition.get("name").and_then(ExactJson::as_text) else {
                left_out.tools.push(leave_out("", "it has no name".to_owned()));
                continue;
            };
            let name: Arc<str> = Arc::from(name);
            if tools.insert(Arc::clone(&name), Arc::new(definition)).is_some() {
                repeated.insert(name);
            }
        }
        let is_unread = |name: &&Arc<str>| unread.iter().any(|it| *it.name == ***name);
        repeated.extend(tools.keys().filter(is_unread).cloned());
        for name in &repeated {
            tools.remove(name);
            left_out.tools.push(leave_out(name, "it is listed more than once".to_owned()));
        }
        for (name, definition) in &tools {
            let (problem, of) = match offered_tool(definition) {
                Ok(tool) => (tool.output.map(|it| it.to_string()), &mut left_out.outputs),
                Err(problem) => (Some(problem.to_string()), &mut left_out.tools),
            };
            of.extend(problem.map(|problem| leave_out(name, problem)));
        }
        left_out.tools.extend(unread);
        Ok(Self { tools, left_out })
    }

    /// The tools with their definitions as the server wrote them, by name.
    pub fn tools(&self) -> &BTreeMap<Arc<str>, Arc<ExactJson>> {
        &self.tools
    }

    /// The names of the tools that clients can use.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_left_out = |name: &str| self.left_out.tools.iter().any(|it| it.name == name);
        self.tools.keys().filter(move |name| !is_left_out(name))
    }

    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Stands for the set: another one has another digest.
    pub fn digest(&self) -> String {
        let texts = self.tools.values().map(|it| serde_json::to_vec(&it.sorted()));
        let mut hash = Sha256::new();
        for text in texts {
            hash.update(text.expect("JSON has a text"));
            // No text of JSON has a line end.
            hash.update("\n");
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// How the tools of another set differ from these.
    pub fn differences(&self, other: &Self) -> BTreeMap<Arc<str>, ToolDifference> {
        let names: BTreeSet<&Arc<str>> = self.tools.keys().chain(other.tools.keys()).collect();
        let mut differences = BTreeMap::new();
        for name in names {
            let difference = match (self.tools.get(name), other.tools.get(name)) {
                (None, _) => ToolDifference::Added,
                (_, None) => ToolDifference::Removed,
                (Some(before), Some(after)) => {
                    let differs = |member: &&str| before.get(member) != after.get(member);
                    let members: Vec<_> = PINNED.into_iter().filter(differs).collect();
                    if members.is_empty() {
                        continue;
                    }
                    ToolDifference::Changed(members)
                }
            };
            differences.insert(Arc::clone(name), difference);
        }
        differences
    }
}

/// The tools of a mount that were accepted, and what its server declared, if that was kept.
pub type AcceptedMount = (ToolSet, Option<DeclaredCapabilities>);

/// A file of accepted definitions.
#[derive(Deserialize, Serialize)]
struct KeptMount<T> {
    /// In the form of a greeting.
    capabilities: Option<Value>,
    tools: Vec<T>,
}

/// The directory of the accepted definitions, one file per mount.
#[derive(Clone, Debug)]
pub struct AcceptedTools(PathBuf);

impl AcceptedTools {
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The file of a mount.
    pub fn file(&self, mount: &MountName) -> PathBuf {
        self.0.join(format!("{mount}.json"))
    }

    /// What was accepted of a mount, with what its server declared, if that was kept; `None` if nothing was.
    ///
    /// # Errors
    /// The file cannot be read, or is not one that [`AcceptedTools::keep`] wrote.
    pub fn read(&self, mount: &MountName) -> io::Result<Option<AcceptedMount>> {
        let path = self.file(mount);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(about) if about.len() > FILE_MAX => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(_) => {}
        }
        let bytes = fs::read(&path)?;
        // Earlier versions kept the tools alone.
        let (definitions, declared) = match bytes.trim_ascii_start().first() {
            Some(b'[') => (serde_json::from_slice(&bytes)?, None),
            Some(_) | None => {
                let KeptMount { capabilities, tools } = serde_json::from_slice(&bytes)?;
                (tools, capabilities.as_ref().map(DeclaredCapabilities::of))
            }
        };
        let count = definitions.len();
        let tools = ToolSet::of(definitions).map_err(io::Error::other)?;
        // What was kept has names of their own.
        let is_whole = tools.tools.len() == count;
        if is_whole { Ok(Some((tools, declared))) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Keeps what was accepted of a mount and what its server declared, whole or not at all.
    ///
    /// # Errors
    /// The system's error; then what was kept before stays.
    pub fn keep(
        &self,
        mount: &MountName,
        tools: &ToolSet,
        declared: Option<&DeclaredCapabilities>,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let (path, fresh) = (self.file(mount), self.0.join(format!("{mount}.json.new")));
        let capabilities = declared.map(DeclaredCapabilities::to_json);
        let kept = KeptMount { capabilities, tools: tools.tools.values().collect() };
        write_private(&fresh, &serde_json::to_vec(&kept)?)?;
        fs::rename(fresh, path)
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(definitions: Value) -> ToolSet {
        ToolSet::of(serde_json::from_str(&definitions.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn sets_differ_in_what_clients_act_on_and_not_in_order() {
        let one = set(json!([
            {"name": "a", "description": "x", "inputSchema": {"type": "object", "x": [1, 2]}},
            {"name": "b"}
        ]));
        let text = r#"[{"name": "b", "icons": []}, {"inputSchema": {"x": [1, 2], "type": "object"}, "description": "x", "name": "a"}]"#;
        let same = set(serde_json::from_str(text).unwrap());
        assert!(one.differences(&same).is_empty());
        for other in [
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a", "description": "y", "inputSchema": {"type": "object", "x": [1, 2]}}, {"name": "b"}]),
            json!([{"name": "a", "description": "x", "inputSchema": {"type": "object", "x": [2, 1]}}, {"name": "b"}]),
        ] {
            assert!(!one.differences(&set(other.clone())).is_empty(), "{other}");
        }
    }

    #[test]
    fn sets_that_differ_have_different_digests() {
        let one = set(json!([{"name": "a", "inputSchema": {"x": 1, "y": 2}}, {"name": "b"}]));
        let same: Vec<ExactJson> = serde_json::from_str(
            r#"[{"name": "b"}, {"inputSchema": {"y": 2, "x": 1}, "name": "a"}]"#,
        )
        .unwrap();
        assert_eq!(one.digest(), ToolSet::of(same).unwrap().digest());
        for other in [
            json!([{"name": "a", "inputSchema": {"x": 1, "y": 2}}]),
            json!([{"name": "a", "inputSchema": {"x": 1, "y": 3}}, {"name": "b"}]),
            json!([{"name": "a", "inputSchema": {"x": 1, "y": 2}}, {"name": "b", "icons": []}]),
        ] {
            assert_ne!(one.digest(), set(other.clone()).digest(), "{other}");
        }
    }

    #[test]
    fn differences_name_the_members() {
        let before = set(json!([{"name": "a", "description": "x"}, {"name": "b"}]));
        let after = set(json!([{"name": "a", "description": "y", "title": "A"}, {"name": "c"}]));
        let differences: Vec<_> = before.differences(&after).into_values().collect();
        let changed = ToolDifference::Changed(vec!["description", "title"]);
        assert_eq!(differences, [changed, ToolDifference::Removed, ToolDifference::Added]);
    }

    #[test]
    fn a_list_that_cannot_be_told_apart_is_refused() {
        let of = |definitions: Value| {
            ToolSet::of(serde_json::from_str(&definitions.to_string()).unwrap())
        };
        let schema = json!({"type": "object"});
        let tool = |name: &str, note: &str| json!({"name": name, "description": note, "inputSchema": schema});
        let some =
            of(json!([{}, tool("a", "x"), tool("b", ""), tool("a", "y"), {"name": 5}])).unwrap();
        assert_eq!(some.tools().keys().map(|it| &**it).collect::<Vec<_>>(), ["b"]);
        let left_out: Vec<_> =
            some.left_out().tools.iter().map(|it| (&*it.name, &*it.problem)).collect();
        let nameless = ("", "it has no name");
        assert_eq!(left_out, [nameless, nameless, ("a", "it is listed more than once")]);
        let many: Vec<Value> = (0..=TOOLS_MAX).map(|n| json!({"name": n.to_string()})).collect();
        assert_eq!(of(json!(many)), Err(TooManyTools));
    }

    #[test]
    fn a_tool_is_left_out_with_another_one_of_its_name_that_cannot_be_read() {
        let tool = |name| ExactJson::of(&json!({"name": name, "inputSchema": {"type": "object"}}));
        let (name, problem) = ("a".to_owned(), "it is too deep".to_owned());
        let unread = vec![LeftOutTool { name, problem }];
        let some = ToolSet::of_list(vec![tool("a"), tool("b")], unread).unwrap();
        // What is kept, and so is all that the next daemon knows.
        assert_eq!(some.tools().keys().map(|it| &**it).collect::<Vec<_>>(), ["b"]);
        let left_out: Vec<_> =
            some.left_out().tools.iter().map(|it| (&*it.name, &*it.problem)).collect();
        assert_eq!(left_out, [("a", "it is listed more than once"), ("a", "it is too deep")]);
    }

    #[test]
    fn what_was_accepted_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let kept = AcceptedTools::at(directory.path().join("mounts"));
        let mount: MountName = "fs".parse().unwrap();
        assert_eq!(kept.read(&mount).unwrap(), None);
        let tools = set(json!([{"name": "a", "description": "x"}]));
        let declared = DeclaredCapabilities::of(&json!({"prompts": {"listChanged": true}}));
        kept.keep(&mount, &tools, Some(&declared)).unwrap();
        assert_eq!(kept.read(&mount).unwrap(), Some((tools.clone(), Some(declared))));
        kept.keep(&mount, &tools, None).unwrap();
        assert_eq!(kept.read(&mount).unwrap(), Some((tools.clone(), None)));
        let write = |text: &str| fs::write(directory.path().join("mounts/fs.json"), text).unwrap();
        write(r#"[{"name": "a", "description": "x"}]"#);
        assert_eq!(kept.read(&mount).unwrap(), Some((tools, None)), "of an earlier version");
        let twice = r#"[{"name": "a"}, {"name": "a"}]"#;
        for malformed in ["{", "", "{}", "[1]", twice, r#"{"capabilities": {}}"#] {
            write(malformed);
            assert!(kept.read(&mount).is_err(), "{malformed}");
        }
    }
}
