//! The newest recording of a session as a resource, in parts that fit one answer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use tokio::task::spawn_blocking;

use crate::core::policy::Standing;
use crate::session::handle::Session;
use crate::session::recording::directory::newest_of;
use crate::surface::answer::budget::escaped_bytes;
use crate::surface::call::Daemon;
use crate::surface::control::record_session::wire_of;
use crate::surface::error::SurfaceError;
use crate::wire::recording::RecordingPart;
use crate::wire::untrusted::Untrusted;

/// How much of a file one answer has, in bytes of JSON inside JSON.
const ROOM: usize = 20_000;

/// How much is read for it: the text is escaped once more.
const READ_MAX: u64 = 20_000;

/// The part of the newest recording from `offset` on, else its end; `None` if the session was never recorded.
pub(super) async fn read(
    daemon: &Daemon,
    standing: &Standing,
    session: &Session,
    offset: Option<u64>,
) -> Result<Option<RecordingPart>, SurfaceError> {
    let (directory, id) = (daemon.sessions.recordings().to_owned(), session.id());
    let found = spawn_blocking(move || -> io::Result<_> {
        let Some(entry) = newest_of(&directory, id)? else { return Ok(None) };
        let part = part_of(&entry.path, offset)?;
        Ok(Some((entry, part)))
    });
    let found = found.await.map_err(|error| SurfaceError::Internal(error.to_string()))?;
    let found = found.map_err(SurfaceError::UnreadableRecording)?;
    Ok(found.map(|(entry, (offset, text))| RecordingPart {
        untrusted: Untrusted,
        recording: wire_of(daemon, standing, &entry),
        offset,
        next_offset: offset + text.len() as u64,
        text,
    }))
}

/// The lines from an offset on that fit one answer, and where they begin. A line that does not fit is cut: its
/// rest is the next part.
fn part_of(path: &Path, offset: Option<u64>) -> io::Result<(u64, String)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = offset.unwrap_or_else(|| length.saturating_sub(READ_MAX / 2)).min(length);
    let mut bytes = vec![0; (length - from).min(READ_MAX) as usize];
    file.read_exact_at(&mut bytes, from)?;
    let begins = match offset {
        None if from > 0 => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        Some(_) | None => 0,
    };
    Ok((from + begins as u64, fitting_text(&bytes[begins..])))
}

/// As many whole lines as fit, or the beginning of the first.
fn fitting_text(bytes: &[u8]) -> String {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let (mut taken, mut room) = (0, ROOM);
    for line in text.split_inclusive('\n') {
        let Some(rest) = room.checked_sub(escaped_bytes(line)) else { break };
        let is_whole = line.ends_with('\n');
        if !is_whole && taken > 0 {
            break;
        }
        (taken, room) = (taken + line.len(), rest);
    }
    if taken == 0 {
        let mut room = ROOM;
        let fits = |character: &char| {
            let cost = escaped_bytes(character.encode_utf8(&mut [0; 4]));
            let left = room.checked_sub(cost);
            room = left.unwrap_or_default();
            left.is_some()
        };
        taken = text.chars().take_while(fits).map(char::len_utf8).sum();
    }
    text[..taken].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_a_gap_and_the_newest_begins_with_a_line() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("one.cast");
        let lines: String =
            (0..4_000).map(|line| format!("[0.001, \"o\", \"line {line} 漢\"]\n")).collect();
        let long = format!("[0, \"o\", \"{}\"]\n", "\\u001b".repeat(10_000));
        let text = lines + &long;
        std::fs::write(&path, &text).unwrap();
        let (mut offset, mut joined) = (0, String::new());
        while offset < text.len() as u64 {
            let (from, part) = part_of(&path, Some(offset)).unwrap();
            assert!(from == offset && !part.is_empty() && escaped_bytes(&part) <= ROOM);
            joined.push_str(&part);
            offset += part.len() as u64;
        }
        assert!(joined == text);
        std::fs::write(&path, &text[..lines_end(&text)]).unwrap();
        let (from, newest) = part_of(&path, None).unwrap();
        assert!(from > 0 && newest.starts_with('[') && newest.ends_with("line 3999 漢\"]\n"));
    }

    fn lines_end(text: &str) -> usize {
        text.find("[0, ").unwrap()
    }
}
