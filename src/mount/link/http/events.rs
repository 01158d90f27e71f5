//! Server-sent events: the messages in a stream of bytes, however it is cut.

use std::time::Duration;

use crate::mount::link::lines::MESSAGE_MAX;

/// The longest id of an event, in bytes.
const ID_MAX: usize = 1_024;

/// The bounds of the pause that a server may ask for.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A line or an event is longer than a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventTooLong;

/// Reads a stream of events.
///
/// `feed` takes bytes; getters say how to resume the stream after its end.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    /// The last byte was a carriage return, to which a line feed may belong.
    after_return: bool,
    data: Vec<u8>,
    kind: Vec<u8>,
    id: Option<String>,
    /// The id of the event that is not complete yet, if it has one.
    next_id: Option<Option<String>>,
    pause: Option<Duration>,
}

impl EventReader {
    /// The id of the last event, from which the stream can be resumed.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// How long to wait before the stream is resumed, if the server said so.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// How many bytes it holds of a message that is not complete.
    pub(super) fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Forgets what was not complete at the end of a stream; the next one begins with a whole line.
    pub(super) fn end(&mut self) {
        let (id, pause) = (self.id.take(), self.pause);
        *self = Self { id, pause, ..Self::default() };
    }

    /// Reads on, and returns the messages that are complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, EventTooLong> {
        let mut messages = Vec::new();
        if !bytes.is_empty() && std::mem::take(&mut self.after_return) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.add(&bytes[..end])?;
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let line = std::mem::take(&mut self.line);
            messages.extend(self.on_line(&line)?);
        }
        self.add(bytes)?;
        Ok(messages)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > MESSAGE_MAX {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn on_line(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>, EventTooLong> {
        if line.is_empty() {
            return Ok(self.on_end());
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field.strip_prefix("\u{feff}".as_bytes()).unwrap_or(field) {
            b"data" => {
                if self.data.len() + value.len() > MESSAGE_MAX {
                    return Err(EventTooLong);
                }
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = value.get(..ID_MAX).unwrap_or(value).to_owned(),
            b"id" => {
                let fits = value.len() <= ID_MAX && !value.contains(&0);
                let id = fits.then(|| str::from_utf8(value).ok()).flatten();
                self.next_id = Some(id.filter(|id| !id.is_empty()).map(str::to_owned));
            }
            b"retry" => {
                let millis = str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                let pause = millis.map(Duration::from_millis);
                self.pause = pause.map(|it| it.clamp(PAUSE_MIN, PAUSE_MAX)).or(self.pause);
            }
            // A comment, or a field of a later revision.
            _ => {}
        }
        Ok(None)
    }

    /// The message of an event; none if it has no data, or is of another kind.
    fn on_end(&mut self) -> Option<Vec<u8>> {
        self.id = self.next_id.take().unwrap_or_else(|| self.id.take());
        let (mut data, kind) = (std::mem::take(&mut self.data), std::mem::take(&mut self.kind));
        // The line feed behind the last line is not part of it.
        data.pop();
        let is_message = matches!(&*kind, b"" | b"message");
        (is_message && !data.is_empty()).then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\nid: 7\rretry: 250\ndata: {\"a\":\r\ndata:1}\r\n\r\n\
        event: ping\ndata: x\n\nid\nevent: message\ndata: ü\n\ndata\n\ndata: cut";

    #[test]
    fn a_stream_means_the_same_however_it_is_cut() {
        for size in 1..STREAM.len() {
            let mut reader = EventReader::default();
            let mut messages = Vec::new();
            for part in STREAM.as_bytes().chunks(size) {
                messages.extend(reader.feed(part).unwrap());
            }
            let messages: Vec<_> = messages.iter().map(|it| str::from_utf8(it).unwrap()).collect();
            assert_eq!(messages, ["{\"a\":\n1}", "ü"], "{size}");
            assert_eq!(
                (reader.last_id(), reader.pause()),
                (None, Some(Duration::from_millis(250)))
            );
        }
    }

    #[test]
    fn the_last_id_is_kept_and_bounded() {
        let mut reader = EventReader::default();
        reader.feed(b"id: 1\n\n").unwrap();
        assert_eq!(reader.last_id(), Some("1"));
        reader.feed(format!("id: {}\n\n", "x".repeat(ID_MAX + 1)).as_bytes()).unwrap();
        assert_eq!(reader.last_id(), None);
        reader.feed(b"retry: 99999999\n").unwrap();
        assert_eq!(reader.pause(), Some(PAUSE_MAX));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let part = vec![b'x'; MESSAGE_MAX / 2];
        let mut reader = EventReader::default();
        assert_eq!(reader.feed(&part).and(reader.feed(&part)), Ok(Vec::new()));
        assert_eq!(reader.feed(b"x"), Err(EventTooLong));
        let mut reader = EventReader::default();
        let line = [b"data: ", &part[..], b"\n"].concat();
        assert_eq!(reader.feed(&line), Ok(Vec::new()));
        assert_eq!(reader.feed(&line), Err(EventTooLong));
    }

    #[test]
    fn a_stream_is_resumed_behind_its_last_whole_event() {
        let mut reader = EventReader::default();
        let first = reader.feed(b"id: 1\ndata: one\n\nid: 2\ndata: t").unwrap();
        assert_eq!((first, reader.last_id()), (vec![b"one".to_vec()], Some("1")));
        reader.end();
        let second = reader.feed(b"id: 2\ndata: two\n\n").unwrap();
        assert_eq!((second, reader.last_id()), (vec![b"two".to_vec()], Some("2")));
    }
}
