//! What else is mounted: the kernel's own file systems at unusual places, and other paths to the same directories.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File systems through which processes are seen, or the machine is changed.
const OF_KERNEL: [&str; 13] = [
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Where a sandbox has its own of these.
const REPLACED: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
    kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts(Vec<Mount>);

impl Mounts {
    pub(super) fn read() -> Self {
        Self::parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(table: &[u8]) -> Self {
        Self(table.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect())
    }

    /// The kernel's own file systems where a sandbox would show those of the machine.
    pub(super) fn of_kernel(&self) -> impl Iterator<Item = &Path> {
        let is_replaced = |point: &Path| REPLACED.iter().any(|own| point.starts_with(own));
        let found = self.0.iter().filter(|mount| OF_KERNEL.contains(&&*mount.kind));
        found.map(|mount| &*mount.point).filter(move |point| !is_replaced(point))
    }

    /// Other paths at which this directory is.
    pub(super) fn aliases(&self, directory: &Path) -> Vec<PathBuf> {
        let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        let own = identity(directory);
        let is_it = |path: &PathBuf| path != directory && identity(path) == own;
        self.candidates(directory).into_iter().filter(is_it).collect()
    }

    fn candidates(&self, directory: &Path) -> Vec<PathBuf> {
        let holds = |mount: &&Mount| directory.starts_with(&mount.point);
        let depth = |mount: &&Mount| mount.point.components().count();
        // Of several at one point, the last one is seen.
        let Some(own) = self.0.iter().filter(holds).max_by_key(depth) else { return Vec::new() };
        let Ok(below) = directory.strip_prefix(&own.point) else { return Vec::new() };
        let inner = own.root.join(below);
        let others = self.0.iter().filter(|other| other.device == own.device);
        let at = |other: &Mount| Some(other.point.join(inner.strip_prefix(&other.root).ok()?));
        others.filter_map(at).collect()
    }
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = String::from_utf8_lossy(fields.nth(2)?).into_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some(Self { device, root, point, kind: String::from_utf8_lossy(kind).into_owned() })
    }
}

/// A path in which the kernel has written some bytes as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut path, mut rest) = (Vec::new(), text);
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let escaped = escaped.filter(|_| *byte == b'\\');
        path.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:30 / /srv/old\\040root/proc rw,nosuid shared:3 - proc proc rw
25 22 0:31 / /sys/fs/cgroup rw - cgroup2 none rw
26 22 254:0 /home /mnt/homes rw - ext4 /dev/vda rw
27 22 254:1 / /var rw - ext4 /dev/vdb rw
";

    #[test]
    fn the_kernels_file_systems_are_found_where_a_sandbox_has_none_of_its_own() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        assert_eq!(mounts.of_kernel().collect::<Vec<_>>(), [Path::new("/srv/old root/proc")]);
    }

    #[test]
    fn a_directory_is_found_at_each_of_its_paths() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        let found = mounts.candidates(Path::new("/home/ada/.config"));
        let expected = ["/home/ada/.config", "/mnt/homes/ada/.config"].map(PathBuf::from);
        assert_eq!(found, expected);
        assert_eq!(mounts.candidates(Path::new("/var/x")), [PathBuf::from("/var/x")]);
        assert_eq!(mounts.aliases(Path::new("/")), Vec::<PathBuf>::new());
    }

    #[test]
    fn bytes_that_are_escaped_are_read() {
        assert_eq!(unescaped(br"/a\040b\134"), Path::new(r"/a b\"));
        assert_eq!(unescaped(br"/a\0"), Path::new(r"/a\0"));
    }
}
