//! Stores tokens: hashes in one file of the state directory, each secret in its own file.
//!
//! One process at a time changes the hashes. A secret is written once and never printed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::tokens;
use crate::core::token::{
    NotASecret, NotAdded, Secret, Token, TokenName, TokenScope, TokenTerms, Tokens, UnixTime,
};
use crate::transport::unix::private::{self, PrivateError};

/// The maximum size of the hash file, in bytes.
const STORE_BYTES_MAX: u64 = 256 * 1024;
/// The maximum size of a secret file, in bytes.
const SECRET_BYTES_MAX: u64 = 256;

/// Why the tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path} cannot be read: {source}")]
    Unreadable { path: PathBuf, source: PrivateError },
    #[error("{path} is not as it should be: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error("{path} cannot be written: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    NotAdded(#[from] NotAdded),
    #[error("no token is named `{0}`")]
    NoSuchToken(TokenName),
    /// The secret file cannot be created.
    #[error("cannot make {path}: {source}")]
    Secret { path: PathBuf, source: io::Error },
    #[error("the system has no random numbers: {0}")]
    NoRandom(getrandom::Error),
}

/// Why a file contains no valid secret; never includes its content.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Private(#[from] PrivateError),
    #[error("it holds no token: {0}")]
    NotASecret(#[from] NotASecret),
}

#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: TokenName,
    pub scope: TokenScope,
    pub expires: Option<UnixTime>,
}

/// Identifies one version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    file: [u64; 3],
    changed: [i64; 4],
}

#[derive(Clone, Debug)]
pub struct TokenStore {
    path: PathBuf,
}

impl TokenStore {
    /// The tokens in a state directory, which need not exist.
    pub fn in_state(directory: &Path) -> Self {
        Self { path: directory.join("tokens.toml") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the file. `None` if it does not exist.
    pub fn stamp(&self) -> Option<FileStamp> {
        let file = fs::metadata(&self.path).ok()?;
        let changed = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Some(FileStamp { file: [file.dev(), file.ino(), file.len()], changed })
    }

    /// Reads the current tokens.
    ///
    /// # Errors
    /// Fails when the file cannot be read, is accessible to other users, or is malformed.
    pub fn read(&self) -> Result<Tokens, StoreError> {
        let path = || self.path.clone();
        match private::read(&self.path, STORE_BYTES_MAX) {
            Ok(text) => tokens::read(&text)
                .map_err(|problem| StoreError::Malformed { path: path(), problem }),
            Err(PrivateError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Tokens::default())
            }
            Err(source) => Err(StoreError::Unreadable { path: path(), source }),
        }
    }

    /// Creates a token and writes its secret to the new file `out`, in directories that are made where they are
    /// missing.
    ///
    /// # Errors
    /// Returns why neither was created. An existing file stays unchanged.
    pub fn make(&self, now: UnixTime, new: NewToken, out: &Path) -> Result<Token, StoreError> {
        let secret = random_secret().map_err(StoreError::NoRandom)?;
        let _alone = self.lock()?;
        let mut tokens = self.read()?;
        let NewToken { name, scope, expires } = new;
        let token =
            tokens.add(now, TokenTerms { name, hash: secret.hash(), scope, expires })?.clone();
        make_directory(out)
            .and_then(|()| private::create(out, &format!("{}\n", secret.reveal())))
            .map_err(|source| StoreError::Secret { path: out.to_owned(), source })?;
        if let Err(error) = self.write(&tokens) {
            // The first error is returned. Without its hash, the secret is useless.
            let _ = fs::remove_file(out);
            return Err(error);
        }
        Ok(token)
    }

    /// Removes a token, which invalidates it, and returns it.
    pub fn revoke(&self, name: &TokenName) -> Result<Token, StoreError> {
        let _alone = self.lock()?;
        let mut tokens = self.read()?;
        let token = tokens.remove(name).ok_or_else(|| StoreError::NoSuchToken(name.clone()))?;
        self.write(&tokens)?;
        Ok(token)
    }

    /// Locks the tokens against other processes until the returned file is dropped.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.path.with_extension("lock");
        let locked = make_directory(&self.path).and_then(|()| {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock().map(|()| file)
        });
        locked.map_err(|source| StoreError::Unwritable { path, source })
    }

    fn write(&self, tokens: &Tokens) -> Result<(), StoreError> {
        let unwritable = |source| StoreError::Unwritable { path: self.path.clone(), source };
        private::replace(&self.path, &tokens::text(tokens)).map_err(unwritable)
    }
}

/// Makes the directory of a file, for this user only, where it is missing.
fn make_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Reads the secret from a file.
///
/// # Errors
/// Fails when the file cannot be read, is accessible to other users, or contains no secret.
pub fn read_secret(path: &Path) -> Result<Secret, SecretError> {
    let text = private::read(path, SECRET_BYTES_MAX)?;
    Ok(text.trim_ascii_end().parse()?)
}

fn random_secret() -> Result<Secret, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(Secret::from_random(bits))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    const NOW: UnixTime = UnixTime(1_000);

    fn home() -> (TempDir, TokenStore) {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::in_state(&home.path().join("state/termgate"));
        (home, store)
    }

    fn new(name: &str) -> NewToken {
        NewToken { name: name.parse().unwrap(), scope: TokenScope::Write, expires: None }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_in_the_file_opens_what_is_in_the_store() {
        let (home, store) = home();
        let out = home.path().join("ci.token");
        let token = store.make(NOW, new("ci"), &out).unwrap();
        let secret = read_secret(&out).unwrap();
        assert_eq!(store.read().unwrap().find(NOW, &secret.hash()), Ok(&token));
        assert_eq!((mode(&out), mode(store.path())), (0o600, 0o600));
        assert_eq!(mode(store.path().parent().unwrap()), 0o700);
        assert!(!fs::read_to_string(store.path()).unwrap().contains(&secret.reveal()[4..]));
        store.revoke(&token.name).unwrap();
        assert!(store.read().unwrap().find(NOW, &secret.hash()).is_err());
        assert!(matches!(store.revoke(&token.name), Err(StoreError::NoSuchToken(_))));
    }

    #[test]
    fn no_two_tokens_have_the_same_secret() {
        let (home, store) = home();
        let secrets = ["a", "b"].map(|name| {
            let out = home.path().join(name);
            store.make(NOW, new(name), &out).unwrap();
            read_secret(&out).unwrap()
        });
        assert_ne!(secrets[0], secrets[1]);
    }

    #[test]
    fn a_file_that_is_there_is_left_as_it_is_and_no_token_is_made() {
        let (home, store) = home();
        let out = home.path().join("letter");
        fs::write(&out, "dear").unwrap();
        assert!(matches!(store.make(NOW, new("ci"), &out), Err(StoreError::Secret { .. })));
        assert_eq!(fs::read_to_string(&out).unwrap(), "dear");
        assert_eq!(store.read().unwrap(), Tokens::default());
    }

    #[test]
    fn a_name_that_is_taken_leaves_no_file_behind() {
        let (home, store) = home();
        store.make(NOW, new("ci"), &home.path().join("one")).unwrap();
        let directory = home.path().join("new");
        let made = store.make(NOW, new("ci"), &directory.join("deep/two"));
        assert!(matches!(made, Err(StoreError::NotAdded(_))));
        assert!(!directory.exists());
    }

    #[test]
    fn tokens_that_are_made_at_the_same_time_are_all_kept() {
        let (home, store) = home();
        thread::scope(|scope| {
            for number in 0..8 {
                let (home, store) = (&home, &store);
                scope.spawn(move || {
                    let name = format!("t{number}");
                    store.make(NOW, new(&name), &home.path().join(&name)).unwrap();
                });
            }
        });
        assert_eq!(store.read().unwrap().all().len(), 8);
        assert_eq!(store.read().unwrap().last_number(), 8);
    }

    #[test]
    fn a_store_that_others_could_read_or_that_is_damaged_is_no_store() {
        let (home, store) = home();
        store.make(NOW, new("ci"), &home.path().join("one")).unwrap();
        fs::set_permissions(store.path(), Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(store.read(), Err(StoreError::Unreadable { .. })));
        fs::set_permissions(store.path(), Permissions::from_mode(0o600)).unwrap();
        fs::write(store.path(), "last_number = 1\n[[token").unwrap();
        assert!(matches!(store.read(), Err(StoreError::Malformed { .. })));
        let refused = store.make(NOW, new("more"), &home.path().join("two"));
        assert!(matches!(refused, Err(StoreError::Malformed { .. })));
    }

    #[test]
    fn a_file_with_anything_but_a_secret_is_refused_and_not_told_of() {
        let (home, store) = home();
        let out = home.path().join("ci.token");
        store.make(NOW, new("ci"), &out).unwrap();
        let text = fs::read_to_string(&out).unwrap();
        fs::write(&out, &text[..text.len() - 2]).unwrap();
        let error = read_secret(&out).unwrap_err();
        assert!(matches!(error, SecretError::NotASecret(_)));
        assert!(!error.to_string().contains("tgt_"), "{error}");
        fs::set_permissions(&out, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_secret(&out), Err(SecretError::Private(_))));
    }
}
