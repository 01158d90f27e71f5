//! The names under which clients know the tools of mounts.
//!
//! A name is a key of a map and is never taken apart to find its mount.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

use crate::core::fnv::Fnv;
use crate::core::mount::MountName;

/// The longest name. Clients put a prefix before it, and refuse more than 64 characters.
pub const EXPOSED_MAX: usize = 40;

/// How many digits of a hash stand for what a name cannot hold.
const DIGITS: usize = 6;

/// A tool of a mount, by the server's own name for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolSource {
    pub mount: MountName,
    pub tool: Arc<str>,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposed {
    Tool(ToolSource),
    /// Several tools would have this name, so that none has it.
    Contested(Vec<ToolSource>),
}

/// The name of a tool: `MOUNT__TOOL`, at most 40 of `a-z A-Z 0-9 _ -`. What does not fit is cut, and a hash stands for it.
pub fn exposed_name(source: &ToolSource) -> String {
    let whole = format!("{}__{}", source.mount, source.tool);
    let fine = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if whole.len() <= EXPOSED_MAX && whole.chars().all(fine) {
        return whole;
    }
    let mut hash = Fnv::default();
    hash.write(whole.as_bytes());
    let kept = whole.chars().map(|it| if fine(it) { it } else { '_' });
    let kept: String = kept.take(EXPOSED_MAX - DIGITS - 1).collect();
    format!("{kept}_{:06x}", hash.finish() & 0xff_ffff)
}

/// The names of all these tools. Two tools with one name both lose it: policy for one would hold for the other.
pub fn exposed(sources: impl IntoIterator<Item = ToolSource>) -> BTreeMap<Arc<str>, Exposed> {
    let mut names: BTreeMap<Arc<str>, Vec<ToolSource>> = BTreeMap::new();
    for source in sources {
        names.entry(Arc::from(exposed_name(&source))).or_default().push(source);
    }
    let exposed = names.into_iter().map(|(name, mut sources)| {
        let only = if sources.len() == 1 { sources.pop() } else { None };
        (name, only.map_or(Exposed::Contested(sources), Exposed::Tool))
    });
    exposed.collect()
}

/// What the addresses of all resources of mounts begin with.
const RESOURCES: &str = "termgate://mount/";

/// The address under which clients know a resource of a mount, or a template of addresses: `termgate://mount/NAME/` and
/// the server's own address.
pub fn exposed_address(mount: &MountName, own: &str) -> String {
    format!("{RESOURCES}{mount}/{own}")
}

/// The mount and the server's own address; `None` if it is no address of a mount. The name of a mount has no `/`, and
/// nothing behind it is read, so that each address has one mount.
pub fn mount_of_address(exposed: &str) -> Option<(&str, &str)> {
    exposed.strip_prefix(RESOURCES)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(mount: &str, tool: &str) -> ToolSource {
        ToolSource { mount: mount.parse().unwrap(), tool: Arc::from(tool) }
    }

    #[test]
    fn a_plain_name_is_the_mount_and_the_tool() {
        assert_eq!(exposed_name(&source("fs", "read_file")), "fs__read_file");
    }

    #[test]
    fn what_does_not_fit_has_a_hash_and_differs() {
        let names = ["a.b", "a/b", &"x".repeat(99), &"x".repeat(98)];
        let names = names.map(|tool| exposed_name(&source("m", tool)));
        assert!(names[0].starts_with("m__a_b_") && names[0] != names[1], "{names:?}");
        assert_eq!(names[2].len(), EXPOSED_MAX);
        assert_ne!(names[2], names[3]);
    }

    #[test]
    fn a_contested_name_belongs_to_none() {
        let both = [source("a", "-__b"), source("a", "-__b"), source("a", "c")];
        let names = exposed(both.clone());
        assert_eq!(names["a__-__b"], Exposed::Contested(both[..2].to_vec()));
        assert_eq!(names["a__c"], Exposed::Tool(both[2].clone()));
        // Names that only look alike once they are put together.
        let other = exposed([source("a", "b__c"), source("a-b", "c")]);
        assert_eq!(other.len(), 2);
    }

    proptest! {
        #[test]
        fn every_address_comes_back(own in "\\PC{0,80}") {
            let mount = "some-mount".parse().unwrap();
            let exposed = exposed_address(&mount, &own);
            prop_assert_eq!(mount_of_address(&exposed), Some(("some-mount", &*own)));
        }

        #[test]
        fn every_name_is_one_that_clients_take(tool in "\\PC{0,80}") {
            let name = exposed_name(&source("some-mount", &tool));
            let fine = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
            prop_assert!(name.len() <= EXPOSED_MAX && name.chars().all(fine), "{name}");
            prop_assert!(name.starts_with("some-mount__"));
        }
    }
}
