//! What the sandbox is told to hide, and what could take that away.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A home with the directories of a daemon.
struct Ground {
    directory: TempDir,
    places: SandboxPlaces,
}

impl Ground {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let places = SandboxPlaces {
            hidden: vec![path("run/termgate"), path("local/state/termgate")],
            protected: vec![path("config/termgate")],
        };
        places.hidden.iter().for_each(|path| fs::create_dir_all(path).unwrap());
        Self { directory, places }
    }

    fn masks(&self) -> Result<Vec<(String, Mask)>, SandboxError> {
        let environment = Environment::new();
        let uid = own_uid();
        let request =
            SandboxRequest { places: &self.places, readable: &[], uid, environment: &environment };
        let masks = request.masks()?;
        Ok(self.own(masks.iter().map(|(path, mask)| (path, *mask))).collect())
    }

    fn pins(&self) -> Vec<String> {
        let masks = self.places.hidden.iter().map(|path| (path.clone(), Mask::Hidden));
        let pins = pins(&masks.collect::<Vec<_>>());
        self.own(pins.iter().map(|path| (path, ()))).map(|(path, ())| path).collect()
    }

    /// What is below the directory of the test, without it.
    fn own<'a, T>(
        &'a self,
        all: impl Iterator<Item = (&'a PathBuf, T)>,
    ) -> impl Iterator<Item = (String, T)> {
        all.filter_map(|(path, it)| {
            let path = path.strip_prefix(self.directory.path()).ok()?;
            Some((path.display().to_string(), it))
        })
    }
}

#[test]
fn what_is_the_daemons_is_hidden_and_its_configuration_cannot_be_changed_even_if_there_is_none() {
    let ground = Ground::new();
    let expected = [
        ("config/termgate", Mask::ReadOnly),
        ("local/state/termgate", Mask::Hidden),
        ("run/termgate", Mask::Hidden),
    ];
    let masks = ground.masks().unwrap();
    assert_eq!(masks, expected.map(|(path, mask)| (path.to_owned(), mask)));
    assert!(ground.places.protected[0].is_dir());
}

#[test]
fn what_is_below_a_hidden_directory_is_not_shown_again() {
    let mut ground = Ground::new();
    ground.places.protected.push(ground.directory.path().join("run/termgate/config"));
    ground.places.hidden.push(ground.directory.path().join("run/termgate"));
    assert_eq!(ground.masks().unwrap().len(), 3);
}

#[test]
fn no_directory_above_can_be_renamed() {
    let ground = Ground::new();
    assert_eq!(ground.pins(), ["", "local", "local/state", "run"]);
}

#[test]
fn a_link_that_could_be_replaced_is_refused() {
    let mut ground = Ground::new();
    let link = ground.directory.path().join("link");
    symlink(ground.directory.path().join("config"), &link).unwrap();
    ground.places.protected.push(link.join("termgate"));
    fs::create_dir_all(ground.directory.path().join("config/termgate")).unwrap();
    let refused = ground.masks().unwrap_err();
    assert!(matches!(&refused, SandboxError::Link(path) if *path == link), "{refused}");
}

#[test]
fn a_configuration_that_is_really_elsewhere_is_refused() {
    let ground = Ground::new();
    let elsewhere = ground.directory.path().join("dotfiles.toml");
    fs::write(&elsewhere, "").unwrap();
    fs::create_dir_all(&ground.places.protected[0]).unwrap();
    let link = ground.places.protected[0].join("termgate.toml");
    symlink(elsewhere, &link).unwrap();
    let refused = ground.masks().unwrap_err();
    assert!(matches!(&refused, SandboxError::Link(path) if *path == link), "{refused}");
}

#[test]
fn a_sandbox_that_cannot_be_made_says_why() {
    let words = ["sh", "-c", "echo no namespaces >&2; exit 1"].map(OsString::from);
    let refused = try_once(&words).unwrap_err();
    assert_eq!(refused.to_string(), "bwrap cannot make a sandbox here: no namespaces");
}
