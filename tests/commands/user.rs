//! A user for whom things are installed: a home directory with a project in it, and a directory of
//! programs that is all there is on `PATH`.
//!
//! It knows nothing of what is installed; the tests of each add what they look at.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::harness::home::Home;

/// Such a user.
#[derive(Debug)]
pub(crate) struct User(pub(crate) Home);

impl User {
    pub(crate) fn new() -> Self {
        let user = Self(Home::new());
        fs::create_dir(user.path("bin")).unwrap();
        fs::create_dir(user.path("work")).unwrap();
        user
    }

    /// A path below the home directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path("home").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, words: &str) -> Output {
        let mut command = self.0.termgate(&format!("install {words}"));
        command.env_remove("XDG_CONFIG_HOME").env("PATH", self.path("bin"));
        command.current_dir(self.path("work")).output().unwrap()
    }

    /// Runs it with `--json` and gives back the answer.
    pub(crate) fn json(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} --json"));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words}: {output:?}"))
    }
}
