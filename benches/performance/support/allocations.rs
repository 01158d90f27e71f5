//! How often a daemon asks for memory, counted by a library that stands before that of C.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

/// What the library is made of.
const SOURCE: &str = include_str!("allocations.c");

/// A library that counts for the program that is started with it, and its count.
#[derive(Debug)]
pub(crate) struct Allocations {
    count: File,
    directory: TempDir,
}

impl Allocations {
    /// Compiles the library.
    ///
    /// # Errors
    /// What the compiler or the kernel said.
    pub(crate) fn prepare() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let place = directory.path();
        fs::write(place.join("allocations.c"), SOURCE)?;
        fs::write(place.join("count"), 0_u64.to_ne_bytes())?;
        let compiled = Command::new("cc")
            .current_dir(place)
            .args(["-O2", "-shared", "-fPIC", "-o", "allocations.so", "allocations.c"])
            .status()
            .context("there is no C compiler")?;
        ensure!(compiled.success(), "the library that counts does not compile");
        Ok(Self { count: File::open(place.join("count"))?, directory })
    }

    /// What has the dynamic loader count for a program.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let at = |name: &str| Path::join(self.directory.path(), name);
        [("LD_PRELOAD", at("allocations.so")), ("ALLOCATIONS", at("count"))]
    }

    /// How often it has asked so far.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn count(&self) -> anyhow::Result<u64> {
        let mut count = [0; 8];
        self.count.read_exact_at(&mut count, 0)?;
        Ok(u64::from_ne_bytes(count))
    }
}
