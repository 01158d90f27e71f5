//! Files beside a shim's socket. Some take its place once its program has ended; the others serve one case: the shim is
//! killed while no daemon runs. Nothing waits for these files or fails because of them.
//! A file beside a shim that cannot be written is removed, so that it never shows an old state.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::session::pty::Note;
use crate::shim::readiness;

const IDENTITY: &str = "session";
const SCREEN: &str = "screen";
/// What a shim had of a session whose program has ended.
const ENDED: &str = "ended";
/// The notes that such a session still changes.
const NOTES: &str = "notes";
/// All extensions of these files, including files that are being written.
/// The first one stands for a session by itself, and so goes first.
const ENDINGS: [&str; 8] =
    [ENDED, "ended.new", NOTES, "notes.new", IDENTITY, "session.new", SCREEN, "screen.new"];

/// Larger screens are not stored, because the directory is small and shared by all programs of the user.
const SCREEN_BYTES_MAX: usize = 256 << 10;
/// The shortest time between two stored screens of a busy terminal.
const SCREEN_EVERY: Duration = Duration::from_secs(1);
/// An ended session takes at most this part of the room that is left until the file system is half full.
const ROOM_PART: u64 = 16;

/// Whether this daemon may still write the files; another one may have taken over.
type Ours<'a> = &'a dyn Fn() -> bool;

/// Writes a file.
type WriteContent<'a> = &'a dyn Fn(&mut File) -> io::Result<()>;

/// What takes the place of a shim once its program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedFile {
    Identity,
    /// What else the shim would tell, and the rows of history.
    Session,
    Screen,
    Notes,
}

impl EndedFile {
    fn ending(self) -> &'static str {
        match self {
            Self::Identity => IDENTITY,
            Self::Session => ENDED,
            Self::Screen => SCREEN,
            Self::Notes => NOTES,
        }
    }
}

#[derive(Debug)]
pub struct Remains {
    socket: PathBuf,
    /// When the screen was last stored, on the clock of [`readiness::now`].
    screen_at: Mutex<Option<Duration>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastScreen {
    pub snapshot: Vec<u8>,
    pub kept_at: SystemTime,
}

impl Remains {
    pub fn beside(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), screen_at: Mutex::default() }
    }

    /// The session part of a file name, if the name is that of a sidecar file.
    pub fn owner(name: &str) -> Option<&str> {
        let (owner, ending) = name.split_once('.')?;
        ENDINGS.contains(&ending).then_some(owner)
    }

    /// The session part of the name of a file that stands for a session: a shim's socket, or what took its place.
    pub fn session_of(name: &str) -> Option<&str> {
        let (session, ending) = name.split_once('.')?;
        ["sock", ENDED].contains(&ending).then_some(session)
    }

    pub fn keep_identity(&self, bytes: &[u8], ours: Ours<'_>) -> io::Result<()> {
        self.keep(IDENTITY, &|file| file.write_all(bytes), ours)
    }

    /// Whether so many bytes of an ended session leave room for others.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        let Some(Ok(system)) = self.socket.parent().map(statfs) else { return false };
        let spare = system.blocks_available().saturating_sub(system.blocks() / 2);
        bytes <= spare.saturating_mul(system.block_size() as u64) / ROOM_PART
    }

    /// Replaces a file of an ended session. If that fails, the one before stays.
    ///
    /// # Errors
    /// If it was not written.
    pub fn replace(
        &self,
        file: EndedFile,
        content: WriteContent<'_>,
        ours: Ours<'_>,
    ) -> io::Result<()> {
        self.put(file.ending(), content, ours)
    }

    /// A file of an ended session; `None` if there is none.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn open(&self, file: EndedFile) -> io::Result<Option<File>> {
        match self.open_by(file.ending()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The session's identity; `None` if it is unknown.
    pub fn identity(&self) -> Option<Vec<u8>> {
        self.read(IDENTITY, Note::BYTES_MAX)
    }

    /// Replaces the screen, unless the last one is recent and the terminal is not `still`.
    ///
    /// Only on tmpfs, because screens may show what must not reach a disk.
    pub fn keep_screen(&self, snapshot: &[u8], still: bool, ours: Ours<'_>) -> io::Result<()> {
        let mut kept_at = self.screen_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = readiness::now();
        let recent = kept_at.is_some_and(|at| now.saturating_sub(at) < SCREEN_EVERY);
        if (recent && !still) || snapshot.is_empty() || !self.is_in_memory() {
            return Ok(());
        }
        *kept_at = Some(now);
        if snapshot.len() > SCREEN_BYTES_MAX {
            return if ours() { remove(&self.path(SCREEN)) } else { Ok(()) };
        }
        self.keep(SCREEN, &|file| file.write_all(snapshot), ours)
    }

    /// The last screen; `None` if it is unknown.
    pub fn screen(&self) -> Option<LastScreen> {
        let kept_at = fs::symlink_metadata(self.path(SCREEN)).ok()?.modified().ok()?;
        Some(LastScreen { snapshot: self.read(SCREEN, SCREEN_BYTES_MAX)?, kept_at })
    }

    /// Whether the files are in memory, where screens may be.
    pub fn is_in_memory(&self) -> bool {
        let system = self.socket.parent().map(statfs);
        matches!(system, Some(Ok(system)) if system.filesystem_type() == TMPFS_MAGIC)
    }

    /// Whether a file stands for the session, whose program has ended.
    pub fn has_ended(&self) -> bool {
        self.path(ENDED).exists()
    }

    pub fn remove_ended(&self) {
        let _ = fs::remove_file(self.path(ENDED));
    }

    pub fn clear(&self) {
        for ending in ENDINGS {
            // Usually the file does not exist.
            let _ = fs::remove_file(self.path(ending));
        }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.socket.with_extension(ending)
    }

    /// Replaces a file, or else removes it.
    fn keep(&self, ending: &str, content: WriteContent<'_>, ours: Ours<'_>) -> io::Result<()> {
        let kept = self.put(ending, content, ours);
        if kept.is_err() && ours() {
            let _ = fs::remove_file(self.path(ending));
        }
        kept
    }

    fn put(&self, ending: &str, content: WriteContent<'_>, ours: Ours<'_>) -> io::Result<()> {
        match self.try_put(ending, content, ours) {
            // A daemon that was stopped just before its rename may have renamed our file. It does so at most
            // once.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.try_put(ending, content, ours)
            }
            put => put,
        }
    }

    fn try_put(&self, ending: &str, content: WriteContent<'_>, ours: Ours<'_>) -> io::Result<()> {
        let (path, fresh) = (self.path(ending), self.path(&format!("{ending}.new")));
        if !ours() {
            return Ok(());
        }
        let written = write(&fresh, content);
        // This process may have been stopped and superseded. The files then belong to another daemon.
        if !ours() {
            return Ok(());
        }
        let put = written.and_then(|()| fs::rename(&fresh, &path));
        if put.is_err() && ours() {
            let _ = fs::remove_file(fresh);
        }
        put
    }

    fn read(&self, ending: &str, bytes_max: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open_by(ending).ok()?;
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() <= bytes_max).then_some(bytes)
    }

    fn open_by(&self, ending: &str) -> io::Result<File> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let path = self.path(ending);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

/// Writes a file that only this user can read. It does not sync to disk, because a crash of the machine ends
/// the sessions as well.
fn write(path: &Path, content: WriteContent<'_>) -> io::Result<()> {
    remove(path)?;
    let mut options = OpenOptions::new();
    let mut file: File = options.write(true).create_new(true).mode(0o600).open(path)?;
    content(&mut file)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const OURS: Ours<'static> = &|| true;

    fn remains() -> (tempfile::TempDir, Remains) {
        let directory = tempfile::tempdir().unwrap();
        let remains = Remains::beside(&directory.path().join("0123456789ab.sock"));
        (directory, remains)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_newest_identity_is_read_back_and_is_for_us_alone() {
        let (directory, remains) = remains();
        assert_eq!(remains.identity(), None);
        remains.keep_identity(b"one", OURS).unwrap();
        remains.keep_identity(b"two", OURS).unwrap();
        assert_eq!(remains.identity().unwrap(), b"two");
        assert_eq!(names(directory.path()), ["0123456789ab.session"]);
        let mode = fs::metadata(directory.path().join("0123456789ab.session")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn what_was_cleared_is_gone_and_so_is_what_was_half_written() {
        let (directory, remains) = remains();
        remains.keep_identity(b"one", OURS).unwrap();
        fs::write(directory.path().join("0123456789ab.session.new"), "half").unwrap();
        for name in names(directory.path()) {
            assert_eq!(Remains::owner(&name), Some("0123456789ab"));
        }
        remains.clear();
        assert_eq!(names(directory.path()), Vec::<String>::new());
        assert_eq!(Remains::owner("0123456789ab.sock"), None);
    }

    #[test]
    fn what_cannot_be_kept_is_not_told_as_it_was_before() {
        let (directory, remains) = remains();
        remains.keep_identity(b"one", OURS).unwrap();
        // Whoever stands in the way can be neither removed nor written to.
        fs::create_dir(directory.path().join("0123456789ab.session.new")).unwrap();
        remains.keep_identity(b"two", OURS).unwrap_err();
        assert_eq!(remains.identity(), None);
    }

    #[test]
    fn the_screen_of_a_still_terminal_is_kept_in_memory_and_on_no_disk() {
        // A file system that is not of memory, where whoever tries to write fails.
        let elsewhere = Remains::beside(Path::new("/proc/self/0123456789ab.sock"));
        elsewhere.keep_screen(b"one", true, OURS).unwrap();
        elsewhere.keep_identity(b"one", OURS).unwrap_err();
        let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let socket = in_memory.path().join("0123456789ab.sock");
        let kept = Remains::beside(&socket);
        kept.keep_screen(b"one", false, OURS).unwrap();
        assert_eq!(kept.screen().unwrap().snapshot, b"one");
        kept.keep_screen(b"on its way", false, OURS).unwrap();
        assert_eq!(kept.screen().unwrap().snapshot, b"one", "that was just now");
        kept.keep_screen(b"two", true, OURS).unwrap();
        assert_eq!(kept.screen().unwrap().snapshot, b"two");
        kept.keep_screen(&vec![0; SCREEN_BYTES_MAX + 1], true, OURS).unwrap();
        assert_eq!(kept.screen(), None, "it is not as it was before");
        kept.keep_screen(b"three", true, OURS).unwrap();
        kept.clear();
        assert_eq!((kept.screen(), names(in_memory.path())), (None, Vec::new()));
    }

    #[test]
    fn who_lost_its_place_while_it_wrote_replaces_nothing() {
        let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let kept = Remains::beside(&in_memory.path().join("0123456789ab.sock"));
        kept.keep_screen(b"theirs", true, OURS).unwrap();
        kept.keep_identity(b"theirs", OURS).unwrap();
        for asked in [0, 1] {
            let left = std::cell::Cell::<u32>::new(asked);
            let ours = || left.replace(left.get().saturating_sub(1)) > 0;
            kept.keep_screen(b"ours", true, &ours).unwrap();
            left.set(asked);
            kept.keep_identity(b"ours", &ours).unwrap();
        }
        assert_eq!(kept.screen().unwrap().snapshot, b"theirs");
        assert_eq!(kept.identity().unwrap(), b"theirs");
    }

    /// Keeps an identity while another daemon does at the moment before the file is renamed, and says how that
    /// went and what is kept then. That one has the place from then on, or had it.
    fn kept_with_another(theirs_now: bool) -> (io::Result<()>, Vec<u8>) {
        let (directory, remains) = remains();
        let path = |ending| directory.path().join(format!("0123456789ab.{ending}"));
        let asked = std::cell::Cell::new(0);
        let ours = || {
            asked.set(asked.get() + 1);
            if asked.get() == 2 {
                if theirs_now {
                    fs::write(path("session.new"), "theirs").unwrap();
                }
                fs::rename(path("session.new"), path("session")).unwrap();
            }
            !theirs_now || asked.get() <= 2
        };
        let kept = remains.keep_identity(b"ours", &ours);
        (kept, remains.identity().unwrap_or_default())
    }

    #[test]
    fn of_two_daemons_that_keep_at_once_the_one_that_has_the_place_is_read() {
        for (theirs_now, whose) in [(false, b"ours".as_slice()), (true, b"theirs")] {
            let (kept, read) = kept_with_another(theirs_now);
            assert!(kept.is_ok(), "{kept:?}");
            assert_eq!(read, whose);
        }
    }

    #[test]
    fn neither_a_link_nor_what_is_too_long_is_read() {
        let (directory, remains) = remains();
        fs::write(directory.path().join("elsewhere"), "text").unwrap();
        symlink("elsewhere", directory.path().join("0123456789ab.session")).unwrap();
        assert_eq!(remains.identity(), None);
        remains.keep_identity(&vec![b'x'; Note::BYTES_MAX + 1], OURS).unwrap();
        assert_eq!(remains.identity(), None);
    }
}
