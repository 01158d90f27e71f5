//! The directory of recordings: a file for each, named after its session and its begin.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::ids::SessionId;

const ENDING: &str = ".cast";

/// One recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingEntry {
    pub session: SessionId,
    /// Milliseconds since 1970.
    pub begun_ms: u64,
    pub path: PathBuf,
    pub bytes: u64,
}

/// The name of the file of a recording that begins now.
pub fn file_name(session: SessionId, begun_at: SystemTime) -> Arc<str> {
    let since = begun_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{session}-{}{ENDING}", since.as_millis()).into()
}

/// What the name of a file says, if it is one of a recording.
pub fn parse_name(name: &str) -> Option<(SessionId, u64)> {
    let (session, begun_ms) = name.strip_suffix(ENDING)?.split_once('-')?;
    Some((session.parse().ok()?, begun_ms.parse().ok()?))
}

/// The recordings, oldest first. There are none where there is no directory.
///
/// # Errors
/// The error of the system.
pub fn recordings(directory: &Path) -> io::Result<Vec<RecordingEntry>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some((session, begun_ms)) = entry.file_name().to_str().and_then(parse_name) else {
            continue;
        };
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        found.push(RecordingEntry { session, begun_ms, path: entry.path(), bytes });
    }
    found.sort_by_key(|recording| recording.begun_ms);
    Ok(found)
}

/// The newest recording of a session.
///
/// # Errors
/// The error of the system.
pub fn newest_of(directory: &Path, session: SessionId) -> io::Result<Option<RecordingEntry>> {
    Ok(recordings(directory)?.into_iter().rfind(|recording| recording.session == session))
}

/// Removes the oldest recordings that nobody writes, until the rest has at most so many bytes.
///
/// # Errors
/// The error of the system.
fn make_room(directory: &Path, bytes_max: u64) -> io::Result<()> {
    /// Two at once would take the file that the other one removes for one that is written, and remove one more.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let recordings = recordings(directory)?;
    let mut bytes: u64 = recordings.iter().map(|recording| recording.bytes).sum();
    for RecordingEntry { path, bytes: length, .. } in recordings {
        if bytes <= bytes_max {
            break;
        }
        // Whoever writes it has it locked.
        let removed = File::open(&path).and_then(|file| match file.try_lock() {
            Ok(()) => fs::remove_file(&path).map(|()| true),
            Err(_) => Ok(false),
        });
        match removed {
            Ok(true) => bytes -= length,
            Ok(false) => {}
            // A person removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => bytes -= length,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes the oldest recordings that have ended, until the rest has at most so many bytes. An error is logged.
pub fn make_room_or_warn(directory: &Path, bytes_max: u64) {
    if let Err(error) = make_room(directory, bytes_max) {
        tracing::warn!(%error, "old recordings cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_session_and_the_begin() {
        let session: SessionId = "0123456789ab".parse().unwrap();
        let at = UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
        let name = file_name(session, at);
        assert_eq!(&*name, "0123456789ab-1700000000123.cast");
        assert_eq!(parse_name(&name), Some((session, 1_700_000_000_123)));
        for foreign in ["x.cast", "0123456789ab.cast", "0123456789ab-x.cast", "0123456789ab-1.txt"]
        {
            assert_eq!(parse_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_oldest_that_nobody_writes_make_room() {
        let ground = tempfile::tempdir().unwrap();
        let directory = ground.path();
        let path = |number: u32| directory.join(format!("0123456789ab-{number}.cast"));
        (1..=4).for_each(|number| fs::write(path(number), [b'x'; 10]).unwrap());
        fs::write(directory.join("notes"), [b'x'; 100]).unwrap();
        let written = File::open(path(2)).unwrap();
        written.lock().unwrap();
        make_room(directory, 20).unwrap();
        let left: Vec<_> = recordings(directory).unwrap().iter().map(|it| it.begun_ms).collect();
        assert_eq!(left, [2, 4]);
        assert!(directory.join("notes").exists());
    }
}
