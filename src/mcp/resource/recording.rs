//! The newest recording of a session as a resource, in parts that fit one answer.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use tokio::task::spawn_blocking;

use crate::core::invisible::seen;
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

/// The most bytes that one escaped character takes there: two escapes, whose backslashes are escaped twice.
const ESCAPE_MAX: usize = 18;

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
    Ok(found.map(|(entry, FilePart { offset, next_offset, text })| RecordingPart {
        untrusted: Untrusted,
        recording: wire_of(daemon, standing, &entry),
        offset,
        next_offset,
        text,
    }))
}

/// A part of a file, as it is told.
#[derive(Debug, PartialEq, Eq)]
struct FilePart {
    /// In the file.
    offset: u64,
    next_offset: u64,
    /// With what nobody would see in escapes of JSON, as which players read the same.
    text: String,
}

/// The lines from an offset on that fit one answer. A line that does not fit is cut: its rest is the next part.
fn part_of(path: &Path, offset: Option<u64>) -> io::Result<FilePart> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = offset.unwrap_or_else(|| length.saturating_sub(READ_MAX / 2)).min(length);
    let mut bytes = vec![0; (length - from).min(READ_MAX) as usize];
    file.read_exact_at(&mut bytes, from)?;
    let is_inside = |byte: &&u8| matches!(**byte, 0x80..0xc0);
    let begins = match offset {
        None if from > 0 => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        None => 0,
        // Not in the middle of a character.
        Some(_) => bytes.iter().take(3).take_while(is_inside).count(),
    };
    let bytes = &bytes[begins..];
    let offset = from + begins as u64;
    let told =
        |taken: usize, text: String| FilePart { offset, next_offset: offset + taken as u64, text };
    Ok(match str::from_utf8(bytes) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_some() => {
            told(error.error_len().unwrap_or(1), char::REPLACEMENT_CHARACTER.to_string())
        }
        valid => {
            let valid = valid.map_or_else(|error| error.valid_up_to(), str::len);
            let text = fitting_text(str::from_utf8(&bytes[..valid]).unwrap_or_default());
            told(text.len(), with_invisible_escaped(text).into_owned())
        }
    })
}

/// As many whole lines as fit, or the beginning of the first.
fn fitting_text(text: &str) -> &str {
    let (mut taken, mut room) = (0, ROOM);
    for line in text.split_inclusive('\n') {
        let cost = escaped_bytes(&with_invisible_escaped(line));
        let Some(rest) = room.checked_sub(cost) else { break };
        let is_whole = line.ends_with('\n');
        if !is_whole && taken > 0 {
            break;
        }
        (taken, room) = (taken + line.len(), rest);
    }
    if taken == 0 {
        let mut room = ROOM;
        let fits = |(character, is_invisible): &(char, bool)| {
            let own = escaped_bytes(character.encode_utf8(&mut [0; 4]));
            let left = room.checked_sub(if *is_invisible { ESCAPE_MAX } else { own });
            room = left.unwrap_or_default();
            left.is_some()
        };
        taken = seen(text).take_while(fits).map(|(character, _)| character.len_utf8()).sum();
    }
    &text[..taken]
}

/// What nobody would see, such as reading orders and tags, as escapes of JSON: a line has it in strings only.
fn with_invisible_escaped(text: &str) -> Cow<'_, str> {
    if !seen(text).any(|(_, is_invisible)| is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for (character, is_invisible) in seen(text) {
        if is_invisible {
            let units = &mut [0; 2];
            for unit in character.encode_utf16(units) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
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
            let part = part_of(&path, Some(offset)).unwrap();
            assert!(part.offset == offset && part.next_offset > offset);
            assert!(escaped_bytes(&part.text) <= ROOM);
            joined.push_str(&part.text);
            offset = part.next_offset;
        }
        assert!(joined == text);
        std::fs::write(&path, &text[..lines_end(&text)]).unwrap();
        let FilePart { offset, text, .. } = part_of(&path, None).unwrap();
        assert!(offset > 0 && text.starts_with('[') && text.ends_with("line 3999 漢\"]\n"));
    }

    #[test]
    fn what_nobody_sees_is_escaped_and_damaged_bytes_are_passed_over() {
        let ground = tempfile::tempdir().unwrap();
        let path = ground.path().join("one.cast");
        let line = "[1, \"o\", \"a\u{202e}b\u{e0041}é\u{200d}c\"]\n";
        std::fs::write(&path, [line.as_bytes(), b"\xff\xfe", line.as_bytes()].concat()).unwrap();
        let first = part_of(&path, Some(0)).unwrap();
        let shown = "[1, \"o\", \"a\\u202eb\\udb40\\udc41é\u{200d}c\"]\n";
        assert_eq!((first.text.as_str(), first.next_offset), (shown, line.len() as u64));
        let same: (u32, String, String) = serde_json::from_str(&first.text).unwrap();
        assert_eq!(same.2, "a\u{202e}b\u{e0041}é\u{200d}c");
        let (mut offset, mut all) = (1, String::new());
        loop {
            let part = part_of(&path, Some(offset)).unwrap();
            if part.next_offset == offset {
                break;
            }
            all.push_str(&part.text);
            offset = part.next_offset;
        }
        assert_eq!(all, format!("{}\u{fffd}\u{fffd}{shown}", &shown[1..]));
        // In the middle of a character.
        let inside = line.find('é').unwrap() as u64 + 1;
        assert_eq!(part_of(&path, Some(inside)).unwrap().offset, inside + 1);
    }

    fn lines_end(text: &str) -> usize {
        text.find("[0, ").unwrap()
    }
}
