//! Reads the files of a journal, also while a daemon writes them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::store::journal::chain::{Chain, ChainError};
use crate::store::journal::line::{LINE_MAX, RecordHash};
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

/// Checks a journal: all files of a directory, or one file. `asked` is the number of a record whose hash is wanted.
///
/// # Errors
/// Returns the system's error if a file cannot be read.
pub fn check(path: &Path, asked: Option<u64>) -> io::Result<Checked> {
    let paths = match path.is_dir() {
        true => files(path)?.into_iter().map(|(_, path)| path).collect(),
        false => vec![path.to_owned()],
    };
    let mut checked = Checked::default();
    for path in paths {
        let read = read_file(&path, |number, line| {
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
        });
        match read {
            // Retention has removed it since.
            Err(error) if error.kind() == io::ErrorKind::NotFound && checked.files == 0 => {}
            read => {
                read?;
                checked.files += 1;
            }
        }
    }
    Ok(checked)
}

/// Follows a journal: what is appended after the last look, file by file.
#[derive(Debug)]
pub struct JournalTail {
    directory: PathBuf,
    /// The first number of the file, and what was read of it so far.
    file: Option<(u64, File)>,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl JournalTail {
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), file: None, begun: Vec::new() }
    }

    /// Calls `each` with every whole line that was not there before; at first with all of the oldest file on.
    ///
    /// # Errors
    /// Returns the system's error if a file cannot be read, or that of `each`.
    pub fn read<E: From<io::Error>>(
        &mut self,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if let Some((_, file)) = &mut self.file {
                read_lines(file, &mut self.begun, &mut each)?;
            }
            let current = self.file.as_ref().map(|(first, _)| *first);
            let newer = |(first, _): &(u64, PathBuf)| current.is_none_or(|it| *first > it);
            let Some((first, path)) = files(&self.directory)?.into_iter().find(newer) else {
                return Ok(());
            };
            // What was appended before that file began.
            if let Some((_, file)) = &mut self.file {
                read_lines(file, &mut self.begun, &mut each)?;
            }
            self.begun.clear();
            match File::open(path) {
                Ok(file) => self.file = Some((first, file)),
                // Retention was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn read_lines<E: From<io::Error>>(
    file: &mut File,
    begun: &mut Vec<u8>,
    mut each: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut block = vec![0; 64 * 1024];
    loop {
        let count = match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        begun.extend_from_slice(&block[..count]);
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            if let Ok(line) = str::from_utf8(&line[..end]) {
                each(line)?;
            }
        }
        if begun.len() > LINE_MAX {
            // No record is as long.
            begun.clear();
        }
    }
}

/// Calls `each` with every whole line, its number from 1 on and its text, if that is UTF-8.
pub(super) fn read_file(path: &Path, mut each: impl FnMut(u64, Option<&str>)) -> io::Result<()> {
    read_file_from(path, 0, |number, line| {
        each(number, line);
        ControlFlow::Continue(())
    })
}

/// The same from an offset on, where a line begins, until `each` breaks off.
pub(super) fn read_file_from(
    path: &Path,
    from: u64,
    mut each: impl FnMut(u64, Option<&str>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        let is_too_long = line.len() == LINE_MAX;
        if line.pop() != Some(b'\n') && !is_too_long {
            // The daemon is about to write the rest.
            return Ok(());
        }
        number += 1;
        let line = str::from_utf8(&line).ok().filter(|_| !is_too_long);
        if each(number, line).is_break() {
            return Ok(());
        }
    }
}
