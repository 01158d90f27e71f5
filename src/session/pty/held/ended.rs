//! A session whose program has ended needs no shim: files beside its socket say what the shim would tell the next
//! daemon. The rows of history are written once, unless they are cleared; screen, notes and identity may still change.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::iter;
use std::sync::{Mutex, PoisonError};

use crate::core::frame::Exit;
use crate::core::ids::SessionId;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact;
use crate::session::pty::held::joining::Joined;
use crate::session::pty::held::link::{ShimPresence, exit_of};
use crate::session::pty::held::recovered::{self, Notes, Recovered, ScreenSnapshot};
use crate::session::pty::held::shims::Shims;
use crate::session::pty::held::store::{self, FoundSegments, Store};
use crate::session::pty::processes::Process;
use crate::session::pty::sidecar_files::{EndedFile, Remains};
use crate::session::pty::{Note, ProcessId, TerminalCheckpoint};
use crate::shim::bounded::Bounded;
use crate::shim::wire::from_shim::{Attached, FromShim};
use crate::shim::wire::to_shim::ToShim;
use crate::shim::wire::{FRAME_MAX, NOTES, NoteFrame, VERSION, frame};

/// The notes in one file. The identity is in another, without what programs of the user must not read.
const STORED: [Note; 4] = [Note::Lease, Note::Terminal, Note::Commands, Note::Gaps];

/// The bytes of a length.
const LENGTH: u64 = size_of::<u32>() as u64;

/// The files of a session that has no shim any more. What cannot be replaced stays as it was.
#[derive(Debug)]
pub struct EndedFiles {
    remains: Remains,
    shims: Shims,
    notes: Mutex<Notes>,
}

impl EndedFiles {
    /// The files that [`read`] was given, which has found these notes.
    pub fn found(remains: Remains, shims: Shims, notes: Notes) -> Self {
        Self { remains, shims, notes: Mutex::new(notes) }
    }

    /// Replaces a note. The identity is not among them, see [`Self::keep_identity`].
    ///
    /// # Errors
    /// If it was not stored.
    pub fn remember(&self, note: Note, bytes: &[u8]) -> io::Result<()> {
        if !STORED.contains(&note) {
            return Ok(());
        }
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.set(NoteFrame { slot: recovered::slot_of(note), bytes });
        self.replace(EndedFile::Notes, &encode(&notes))
    }

    /// Replaces the identity, which must contain no secret.
    ///
    /// # Errors
    /// If it was not stored.
    pub fn keep_identity(&self, identity: &[u8]) -> io::Result<()> {
        self.replace(EndedFile::Identity, identity)
    }

    /// Replaces the screen, and removes the rows of a history that was cleared. No rows can have come since the end.
    ///
    /// # Errors
    /// If it was not stored.
    pub fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        if !checkpoint.snapshot.is_empty() {
            self.replace(EndedFile::Screen, &checkpoint.snapshot)?;
        }
        if checkpoint.first_row < checkpoint.end_row {
            return Ok(());
        }
        let file = self.remains.open(EndedFile::Session)?.ok_or(ErrorKind::NotFound)?;
        let (attached, ..) = header_of(&file)?;
        if attached.segments.as_slice().is_empty() {
            return Ok(());
        }
        let header = encode_header(Attached { segments: Bounded::default(), ..*attached });
        self.replace(EndedFile::Session, &header)
    }

    fn replace(&self, file: EndedFile, bytes: &[u8]) -> io::Result<()> {
        self.remains.replace(file, &|out| out.write_all(bytes), &|| self.shims.are_ours())
    }

    /// Removes all files of the session, unless another daemon has it.
    pub fn clear(&self) {
        if self.shims.are_ours() {
            self.remains.clear();
        }
    }
}

/// Reads an ended session, and how its program ended; `None` if there is no file for it.
///
/// # Errors
/// `InvalidData` or `UnexpectedEof` for what no daemon wrote, `Unsupported` for what one of another version did; otherwise
/// the kernel's error.
pub fn read(remains: &Remains, session: SessionId) -> io::Result<Option<(Recovered, Exit)>> {
    let Some(file) = remains.open(EndedFile::Session)? else { return Ok(None) };
    let (attached, exit, mut at) = header_of(&file)?;
    let mut history = FoundSegments::default();
    for bytes in attached.segments.as_slice() {
        history.add(session, *bytes, store::read(&file, at, *bytes))?;
        at = at.saturating_add(*bytes);
    }
    let screen = remains.open(EndedFile::Screen)?;
    let bytes = screen.map(|file| store::read_snapshot(session, &file)).transpose()?;
    let newest = attached.snapshots.as_slice().last().copied().zip(bytes);
    let snapshots = newest.map(|(offset, bytes)| ScreenSnapshot { offset, bytes });
    let mut notes = decode(&whole(remains, EndedFile::Notes)?);
    let bytes = whole(remains, EndedFile::Identity)?;
    notes.set(NoteFrame { slot: recovered::slot_of(Note::Identity), bytes: &bytes });
    let FoundSegments { segments, damaged: history_damaged, .. } = history;
    let snapshots = snapshots.into_iter().collect();
    Ok(Some((Recovered { attached, notes, snapshots, segments, history_damaged }, exit)))
}

/// All bytes of a file of notes; none if there is no such file.
fn whole(remains: &Remains, file: EndedFile) -> io::Result<Vec<u8>> {
    /// Longer than any.
    const BYTES_MAX: u64 = (NOTES * (Note::BYTES_MAX + 4)) as u64;
    let Some(file) = remains.open(file)? else { return Ok(Vec::new()) };
    store::read(&file, 0, file.metadata()?.len().min(BYTES_MAX))
}

/// What the shim has said, how the program ended, and where the segments follow.
fn header_of(file: &File) -> io::Result<(Box<Attached>, Exit, u64)> {
    let invalid = || io::Error::from(ErrorKind::InvalidData);
    let length = store::read(file, 0, LENGTH)?.try_into().map_err(|_| invalid())?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > FRAME_MAX as u64 {
        return Err(invalid());
    }
    let answer = contact::answer(&store::read(file, LENGTH, length)?);
    let attached = answer.ok().and_then(Result::ok).ok_or_else(invalid)?;
    if attached.version != VERSION {
        return Err(ErrorKind::Unsupported.into());
    }
    let exit = end_in(&attached).ok_or_else(invalid)?;
    Ok((attached, exit, LENGTH + length))
}

fn encode_header(attached: Attached) -> Vec<u8> {
    let mut room = frame();
    let newest = attached.snapshots.as_slice().last().copied();
    let attached = Attached { notes: 0, snapshots: newest.into_iter().collect(), ..attached };
    let length = FromShim::Attached(Box::new(attached)).encode(&mut room);
    let length_bytes = u32::try_from(length).expect("a frame is shorter").to_le_bytes();
    [length_bytes.as_slice(), &room[..length]].concat()
}

/// How a program has ended, if all its output is in what was stored.
fn end_in(attached: &Attached) -> Option<Exit> {
    attached.ended.map(exit_of).filter(|_| attached.committed == attached.head)
}

impl HeldPty {
    /// Writes what the shim has into files, and ends it. Returns whether that is done, now or before: not while a
    /// program runs in the session that its first one has left behind, and not where files are on a disk or have no
    /// room.
    pub(super) fn replace_shim(&self) -> io::Result<bool> {
        if self.retired.get().is_some() {
            return Ok(true);
        }
        let known = *self.link().standing().borrow();
        let is_over = known.exit.is_some() && known.presence == ShimPresence::There;
        let is_known = || self.remains.identity().is_some();
        if !is_over || !self.shims.are_ours() || !self.remains.is_in_memory() || !is_known() {
            return Ok(false);
        }
        if self.has_descendants()? {
            return Ok(false);
        }
        // As the next daemon would. What this one has said before counts.
        let joined = contact::attach(&self.socket).map_err(io::Error::other);
        let replaced = joined.and_then(Joined::of).and_then(|joined| self.replace_joined(joined));
        if replaced.is_err() {
            // The shim may have left the connection before, and is asked again.
            self.link().lose(ShimPresence::Silent);
        }
        replaced
    }

    /// Whether a process of the session runs: the shim is the parent of each whose own has ended.
    fn has_descendants(&self) -> io::Result<bool> {
        let shim = self.shim.pid;
        let children = fs::read_to_string(format!("/proc/{shim}/task/{shim}/children"))?;
        let mut pids = children.split_ascii_whitespace().map(str::parse).map_while(Result::ok);
        Ok(pids.any(|pid| Process::find(ProcessId(pid)).is_none_or(|child| !child.ended)))
    }

    fn replace_joined(&self, mut joined: Joined) -> io::Result<bool> {
        let files = iter::from_fn(|| joined.descriptors.take()).map(File::from).collect::<Vec<_>>();
        if joined.attached.shim.pid != self.shim.pid.0 {
            return Err(ErrorKind::NotFound.into());
        }
        if !self.store_ended(&joined, &files)? {
            self.resume(joined)?;
            return Ok(false);
        }
        let Joined { link, notes, .. } = joined;
        let ended = link.say(&ToShim::End, &[]);
        self.link().lose(ShimPresence::Gone);
        if ended.is_err() && self.shims.are_ours() {
            self.end_silent_shim();
        }
        // Its memory is not needed any more.
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Store::default();
        let remains = Remains::beside(&self.socket);
        let files = EndedFiles::found(remains, self.shims.clone(), notes);
        let _ = self.retired.set(Box::new(files));
        Ok(true)
    }

    fn store_ended(&self, joined: &Joined, files: &[File]) -> io::Result<bool> {
        let Joined { attached, notes, .. } = joined;
        let lengths = attached.segments.as_slice();
        let parts = files.split_at_checked(lengths.len());
        let (segments, snapshots) = parts.ok_or(ErrorKind::InvalidData)?;
        let screen = snapshots.last().map(|file| store::read_snapshot(self.session, file));
        let screen = screen.transpose()?.unwrap_or_default();
        let rows = lengths.iter().copied().fold(0, u64::saturating_add);
        let all = rows.saturating_add(screen.len() as u64);
        if end_in(attached).is_none() || !self.remains.has_room_for(all) {
            return Ok(false);
        }
        let ours = || self.shims.are_ours();
        let replace = |file, content: &dyn Fn(&mut File) -> io::Result<()>| {
            self.remains.replace(file, content, &ours)
        };
        let header = encode_header((**attached).clone());
        replace(EndedFile::Notes, &|out| out.write_all(&encode(notes)))?;
        replace(EndedFile::Screen, &|out| out.write_all(&screen))?;
        // The last one, since the others say nothing without it.
        replace(EndedFile::Session, &|out| {
            out.write_all(&header)?;
            let mut parts = segments.iter().zip(lengths);
            parts.try_for_each(|(file, bytes)| out.write_all(&store::read(file, 0, *bytes)?))
        })?;
        Ok(ours())
    }
}

/// Slot, length and bytes of each note.
fn encode(notes: &Notes) -> Vec<u8> {
    let mut all = Vec::new();
    for note in STORED {
        let bytes = notes.get(note);
        let length = u16::try_from(bytes.len()).expect("a note is shorter than that");
        all.extend(recovered::slot_of(note).to_le_bytes());
        all.extend(length.to_le_bytes());
        all.extend(bytes);
    }
    all
}

/// The notes that are readable.
fn decode(mut from: &[u8]) -> Notes {
    let mut notes = Notes::default();
    for _ in 0..NOTES {
        let Some((slot, rest)) = from.split_first_chunk() else { break };
        let Some((length, rest)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes(*length));
        let Some((bytes, rest)) = rest.split_at_checked(length) else { break };
        notes.set(NoteFrame { slot: u16::from_le_bytes(*slot), bytes });
        from = rest;
    }
    notes
}
