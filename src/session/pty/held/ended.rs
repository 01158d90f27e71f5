//! A session whose program has ended needs no shim: files beside its socket say what the shim would tell the next
//! daemon. One is written once; the other has the notes, which may still change. The identity is in a file of its own
//! anyway, without what programs of the user must not read.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::iter;
use std::sync::{Mutex, PoisonError};

use crate::core::frame::Exit;
use crate::core::ids::SessionId;
use crate::session::pty::Note;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact;
use crate::session::pty::held::joining::Joined;
use crate::session::pty::held::link::{ShimPresence, exit_of};
use crate::session::pty::held::recovered::{self, Notes, Recovered, ScreenSnapshot};
use crate::session::pty::held::shims::Shims;
use crate::session::pty::held::store::{self, FoundSegments, Store};
use crate::session::pty::processes::{Process, table};
use crate::session::pty::sidecar_files::Remains;
use crate::shim::wire::from_shim::{Attached, FromShim};
use crate::shim::wire::to_shim::ToShim;
use crate::shim::wire::{FRAME_MAX, NOTES, NoteFrame, VERSION, frame};

/// The notes of a session that files stand for.
const STORED: [Note; 4] = [Note::Lease, Note::Terminal, Note::Commands, Note::Gaps];

/// The files of a session that has no shim any more.
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
        self.remains.keep_notes(&encode(&notes), &|| self.shims.are_ours())
    }

    /// Replaces the identity, which must contain no secret.
    ///
    /// # Errors
    /// If it was not stored.
    pub fn keep_identity(&self, identity: &[u8]) -> io::Result<()> {
        self.remains.keep_identity(identity, &|| self.shims.are_ours())
    }

    /// Removes all files of the session, unless another daemon has it.
    pub fn clear(&self) {
        if self.shims.are_ours() {
            self.remains.clear();
        }
    }
}

/// Reads an ended session; `None` if there is no file for it.
///
/// # Errors
/// `InvalidData` for what no daemon of this version wrote; otherwise the kernel's error.
pub fn read(remains: &Remains, session: SessionId) -> Option<io::Result<(Recovered, Exit)>> {
    let file = remains.ended()?;
    Some(read_from(&file, session).map(|(recovered, exit)| {
        let mut notes = decode(&remains.notes().unwrap_or_default());
        let bytes = remains.identity().unwrap_or_default();
        notes.set(NoteFrame { slot: recovered::slot_of(Note::Identity), bytes: &bytes });
        (Recovered { notes, ..recovered }, exit)
    }))
}

fn read_from(file: &File, session: SessionId) -> io::Result<(Recovered, Exit)> {
    let invalid = || io::Error::from(ErrorKind::InvalidData);
    let length = store::read(file, 0, LENGTH)?.try_into().map_err(|_| invalid())?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > FRAME_MAX as u64 {
        return Err(invalid());
    }
    let answer = contact::answer(&store::read(file, LENGTH, length)?);
    let attached = answer.ok().and_then(Result::ok).filter(|it| it.version == VERSION);
    let attached = attached.ok_or_else(invalid)?;
    let exit = end_in(&attached).ok_or_else(invalid)?;
    let mut at = LENGTH + length;
    let mut history = FoundSegments::default();
    for bytes in attached.segments.as_slice() {
        history.add(session, *bytes, store::read(file, at, *bytes))?;
        at = at.saturating_add(*bytes);
    }
    let mut snapshots = Vec::new();
    for offset in attached.snapshots.as_slice().iter().rev().take(1) {
        let bytes = store::read_snapshot(session, file, at)?;
        snapshots.push(ScreenSnapshot { offset: *offset, bytes });
    }
    let (segments, history_damaged) = (history.segments, history.damaged);
    let notes = Notes::default();
    Ok((Recovered { attached, notes, snapshots, segments, history_damaged }, exit))
}

/// The bytes of a length.
const LENGTH: u64 = size_of::<u32>() as u64;

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
        if !is_over || !self.shims.are_ours() || !self.remains.has_room_for(0) {
            return Ok(false);
        }
        let runs = |one: &Process| one.parent == self.shim.pid && !one.ended;
        if table()?.iter().any(runs) {
            return Ok(false);
        }
        // As the next daemon would. What this one has said before counts.
        let mut joined = Joined::of(contact::attach(&self.socket).map_err(io::Error::other)?)?;
        let files = iter::from_fn(|| joined.descriptors.take()).map(File::from).collect::<Vec<_>>();
        let stored = self.store_ended(&joined, &files);
        if !matches!(stored, Ok(true)) {
            self.resume(joined)?;
            return stored;
        }
        let Joined { link, notes, .. } = joined;
        let ended = link.say(&ToShim::End, &[]);
        self.link().lose(ShimPresence::Gone);
        if ended.is_err() {
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
        let snapshot =
            snapshots.last().map(|file| Ok::<_, io::Error>((file, file.metadata()?.len())));
        let snapshot = snapshot.transpose()?;
        let parts = segments.iter().zip(lengths.iter().copied()).chain(snapshot);
        let all = parts.clone().map(|(_, bytes)| bytes).fold(0, u64::saturating_add);
        if end_in(attached).is_none() || !self.remains.has_room_for(all) {
            return Ok(false);
        }
        let newest = attached.snapshots.as_slice().last();
        let kept = Attached {
            notes: 0,
            snapshots: newest.copied().into_iter().collect(),
            ..*attached.clone()
        };
        let mut room = frame();
        let length = FromShim::Attached(Box::new(kept)).encode(&mut room);
        let ours = || self.shims.are_ours();
        self.remains.keep_notes(&encode(notes), &ours)?;
        let content = |out: &mut File| {
            out.write_all(&u32::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
            out.write_all(&room[..length])?;
            parts.clone().try_for_each(|(file, bytes)| out.write_all(&store::read(file, 0, bytes)?))
        };
        self.remains.keep_ended(&content, &ours)?;
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
