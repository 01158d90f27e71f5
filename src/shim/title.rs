//! The command line of a shim, by which daemons find it.
//! The process that forks shims is started with a word that has room for any socket path. Each shim writes its own
//! path there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// As long as the longest path of a socket, in bytes.
const ROOM: usize = 108;
/// Which word of the command line has the room.
const WORD_AT: usize = 2;
/// Which fields of `/proc/self/stat` behind the name say where the words are.
const BOUNDS_AT: usize = 45;

/// The word that has the room.
pub fn room() -> String {
    "-".repeat(ROOM)
}

/// Writes a path over the word that has the room for it. The rest of that word becomes zeros.
///
/// Nothing else may use the words of the command line at that time: this process has one thread.
///
/// # Errors
/// `InvalidInput` if there is no room for the path, or one of the kernel.
pub fn set(path: &Path) -> io::Result<()> {
    let place = find()?;
    let path = path.as_os_str();
    if path.len() >= place.bytes {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    place.write(path);
    Ok(())
}

struct WordPlace {
    start: usize,
    bytes: usize,
}

/// Looks where the word is in the memory of this process.
fn find() -> io::Result<WordPlace> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let stat = fs::read_to_string("/proc/self/stat")?;
    // A name may have brackets.
    let (_, fields) = stat.rsplit_once(')').ok_or_else(invalid)?;
    let mut bounds = fields.split_ascii_whitespace().skip(BOUNDS_AT).map(str::parse);
    let mut bound = || bounds.next().and_then(Result::ok).ok_or_else(invalid);
    let (start, end): (usize, usize) = (bound()?, bound()?);
    let line = fs::read("/proc/self/cmdline")?;
    // Otherwise the words are not where the kernel put them.
    if end.checked_sub(start) != Some(line.len()) {
        return Err(invalid());
    }
    let before: usize =
        line.split_inclusive(|byte| *byte == 0).take(WORD_AT).map(<[u8]>::len).sum();
    Ok(WordPlace { start: start + before, bytes: line.len() - before })
}

impl WordPlace {
    #[allow(unsafe_code)]
    fn write(&self, text: &OsStr) {
        let place = ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: the kernel has put the words of the command line there, in memory of this process that stays
        // writable and where it is. Nobody refers to them: the standard library has copied what was read.
        unsafe {
            place.copy_from_nonoverlapping(text.as_bytes().as_ptr(), text.len());
            place.add(text.len()).write_bytes(0, self.bytes - text.len());
        }
    }
}
