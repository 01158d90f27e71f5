//! Reads the files of a journal, also while a daemon writes them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::store::journal::chain::{Chain, ChainError};
use crate::store::journal::line::{LINE_MAX, RecordHash, RecordLine};
use crate::store::journal::segment::files;

/// Something wrong with a journal.
#[derive(Clone, Debug)]
pub struct Damage {
    pub file: PathBuf,
    /// The line of the file, from 1 on.
    pub line: u64,
    pub error: ChainError,
}

/// What a check of a journal found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub chain: Chain,
    pub files: usize,
    pub damage: Vec<Damage>,
    /// The hash of the record that was asked for.
    pub asked: Option<RecordHash>,
}

/// The most damage that is listed.
const DAMAGE_MAX: usize = 100;

/// Checks all files of a journal. `asked` is the number of a record whose hash is wanted.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub fn check(directory: &Path, asked: Option<u64>) -> io::Result<Checked> {
    let mut checked = Checked::default();
    for (_, path) in files(directory)? {
        checked.files += 1;
        read_file(&path, |number, line| {
            let judged = line.ok_or(ChainError::NotARecord).and_then(|it| checked.chain.push(it));
            if let Err(error) = judged
                && checked.damage.len() < DAMAGE_MAX
            {
                checked.damage.push(Damage { file: path.clone(), line: number, error });
            }
            if let Some((last, hash)) = checked.chain.last()
                && Some(last) == asked
            {
                checked.asked = Some(hash);
            }
            true
        })?;
    }
    Ok(checked)
}

/// Calls `each` with every record from `first` on, with its line, until that returns false. Lines that are no records
/// are left out. Returns the number of the last record that was there.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub fn read_from(
    directory: &Path,
    first: u64,
    mut each: impl FnMut(&RecordLine<'_>, &str) -> bool,
) -> io::Result<u64> {
    let files = files(directory)?;
    let skipped = files.iter().rposition(|(number, _)| *number <= first).unwrap_or_default();
    let (mut last, mut goes_on) = (first.saturating_sub(1), true);
    for (_, path) in &files[skipped..] {
        let read = read_file(path, |_, line| {
            let record = line.and_then(|line| serde_json::from_str::<RecordLine<'_>>(line).ok());
            if let (Some(record), Some(line)) = (record, line)
                && record.seq >= first
            {
                last = record.seq;
                goes_on = each(&record, line);
            }
            goes_on
        });
        match read {
            // Retention has removed it since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => read?,
        }
        if !goes_on {
            break;
        }
    }
    Ok(last)
}

/// The number of the newest record, from the end of the newest file.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub fn newest(directory: &Path) -> io::Result<u64> {
    let Some((first, _)) = files(directory)?.pop() else { return Ok(0) };
    read_from(directory, first, |_, _| true)
}

/// Calls `each` with every whole line, its number from 1 on and its text, if that is UTF-8, until it returns false.
pub(super) fn read_file(
    path: &Path,
    mut each: impl FnMut(u64, Option<&str>) -> bool,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, File::open(path)?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            // The daemon is about to write the rest, or the line is far too long.
            return Ok(());
        }
        number += 1;
        if !each(number, str::from_utf8(&line).ok()) {
            return Ok(());
        }
    }
}
