//! The epochs of a mount's lease grow over restarts of the daemon and the machine: each daemon begins above a number that
//! is kept in a file.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::core::ids::Epoch;
use crate::core::mount::MountName;

/// How many epochs one daemon may give.
const BLOCK: u64 = 1 << 32;

/// The files of the epochs, one per mount.
#[derive(Clone, Debug)]
pub struct EpochFiles(PathBuf);

impl EpochFiles {
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The epoch above which this daemon may begin, which is at least `least`.
    ///
    /// # Errors
    /// The file cannot be written. A file that is missing or damaged counts as one of epoch 0.
    pub fn begin(&self, mount: &MountName, least: Epoch) -> io::Result<Epoch> {
        let path = self.0.join(format!("{mount}.epoch"));
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let above = kept.trim().parse::<u64>().unwrap_or(0).max(least.0).min(Epoch::MAX.0);
        fs::create_dir_all(&self.0)?;
        let fresh = self.0.join(format!("{mount}.epoch.new"));
        fs::write(&fresh, format!("{}\n", above.saturating_add(BLOCK).min(Epoch::MAX.0)))?;
        fs::rename(fresh, path)?;
        Ok(Epoch(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_begins_above_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let files = EpochFiles::at(directory.path().join("mounts"));
        let mount: MountName = "fs".parse().unwrap();
        let begin = |least| files.begin(&mount, Epoch(least)).unwrap();
        assert_eq!(begin(0), Epoch(0));
        assert_eq!(begin(7), Epoch(BLOCK));
        assert_eq!(begin(3 * BLOCK), Epoch(3 * BLOCK));
        // The machine was started anew.
        assert_eq!(begin(1), Epoch(4 * BLOCK));
        assert_eq!(files.begin(&"other".parse().unwrap(), Epoch(1)).unwrap(), Epoch(1));
        fs::write(directory.path().join("mounts/fs.epoch"), "x").unwrap();
        assert_eq!(begin(5), Epoch(5));
    }
}
