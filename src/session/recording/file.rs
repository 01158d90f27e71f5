//! The file of a recording: appended to in whole batches, each of which ends in a comment that says how far it goes.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::session::off_worker::while_others_go_on;
use crate::session::recording::asciicast::RecordingState;

/// How much of the end of a file is searched for its last state: more than batches have; without one a picture follows.
const TAIL_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct RecordingFile {
    file: File,
    /// All that was appended whole, in bytes.
    length: u64,
    /// The file may have more, which the disk took of a batch that it refused.
    is_torn: bool,
}

impl RecordingFile {
    /// Begins a recording with its header.
    ///
    /// # Errors
    /// The error of the system; `AlreadyExists` if there is such a file.
    pub(super) fn create(path: &Path, header: &str) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        let mut begun = Self { file, length: 0, is_torn: false };
        let written = lock(&begun.file).and_then(|()| begun.append(header.as_bytes()));
        if let Err(error) = written {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(begun)
    }

    /// Opens the recording of a daemon before, at its last state; `None` if it has none, and what is broken is cut.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` while another process writes it.
    pub(super) fn resume(path: &Path) -> io::Result<(Self, Option<RecordingState>)> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        lock(&file)?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let (kept, state) = while_others_go_on(|| last_state(&file))?;
        let mut resumed = Self { file, length: from + kept, is_torn: true };
        resumed.mend()?;
        Ok((resumed, state))
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether nobody finds the file any more.
    pub(super) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Appends a batch whole, or nothing of it.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        self.mend()?;
        if let Err(error) = self.file.write_all(batch) {
            self.is_torn = true;
            let _ = self.mend();
            return Err(error);
        }
        self.length += batch.len() as u64;
        Ok(())
    }

    /// Cuts what was appended in part.
    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

/// The last state before the end of the file, read from where it stands, and up to where its lines go from there;
/// without one, all whole lines.
fn last_state(file: &File) -> io::Result<(u64, Option<RecordingState>)> {
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut end = whole;
    while end > 0 {
        let begin = tail[..end - 1].iter().rposition(|byte| *byte == b'\n');
        let begin = begin.map_or(0, |at| at + 1);
        if let Some(state) = RecordingState::read(&tail[begin..end - 1]) {
            return Ok((end as u64, Some(state)));
        }
        end = begin;
    }
    Ok((whole as u64, None))
}

/// Keeps a process that stands still, and goes on later, from writing to the file.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(offset: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let (held, is_over) = (String::new(), false);
        RecordingState { offset, held, at_ms: 1, rows: 24, cols: 80, is_over }.write(&mut out);
        out
    }

    #[test]
    fn what_was_not_written_whole_is_cut_when_a_recording_is_resumed() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("recordings/one.cast");
        let mut file = RecordingFile::create(&path, "header\n").unwrap();
        let whole = [b"[0, \"o\", \"a\"]\n".to_vec(), state(1)].concat();
        file.append(&whole).unwrap();
        file.append(b"[0, \"o\", \"b\"]\n# termgate {\"offs").unwrap();
        drop(file);
        let (mut file, found) = RecordingFile::resume(&path).unwrap();
        assert_eq!(found.map(|found| found.offset), Some(1));
        file.append(&state(2)).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(text, [b"header\n".to_vec(), whole, state(2)].concat());
    }

    #[test]
    fn a_file_without_a_state_keeps_its_whole_lines() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("recordings/one.cast");
        RecordingFile::create(&path, "header\nhalf").unwrap();
        let (_, found) = RecordingFile::resume(&path).unwrap();
        assert_eq!(found, None);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "header\n");
    }

    #[test]
    fn two_do_not_write_one_file_and_only_its_owner_reads_it() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("recordings/one.cast");
        let file = RecordingFile::create(&path, "header\n").unwrap();
        let second = RecordingFile::resume(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(file.file.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        assert!(file.is_removed());
    }
}
