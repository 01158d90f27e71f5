//! One file of a journal, as the daemon writes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An open file. Nobody else changes it, and what is wrong with it shows before the next append.
#[derive(Debug)]
pub(super) struct JournalFile {
    file: File,
    pub(super) length: u64,
}

impl JournalFile {
    /// Creates the file of the records from `first` on, with its first line. Leaves no file behind if that fails.
    pub(super) fn create(directory: &Path, first: u64, line: &[u8]) -> io::Result<Self> {
        let path = path_of(directory, first);
        let file = options().create_new(true).open(&path)?;
        let mut segment = Self { file, length: 0 };
        segment.append(line).inspect_err(|_| {
            // One that stays is empty, and is removed once the disk takes it.
            let _ = fs::remove_file(&path);
        })?;
        Ok(segment)
    }

    /// Opens a file, and cuts off an incomplete line at its end, whose act did not begin.
    pub(super) fn reopen(path: &Path) -> io::Result<Self> {
        let file = options().read(true).open(path)?;
        let found = file.metadata()?.len();
        let length = complete_lines(&file, found)?;
        if length < found {
            file.set_len(length)?;
        }
        Ok(Self { file, length })
    }

    /// Appends whole lines, or nothing.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match (&self.file).write_all(lines) {
            Ok(()) => {
                self.length += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part of a line must not stay. If it does, the file is not as long as it should be.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }

    /// Whether the file is still there and as long as it was left.
    pub(super) fn is_intact(&self) -> bool {
        self.file.metadata().is_ok_and(|it| it.nlink() > 0 && it.len() == self.length)
    }

    /// Another descriptor of the file, for syncing it to the disk meanwhile.
    pub(super) fn for_sync(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

/// The length of the file without what follows its last line end.
fn complete_lines(file: &File, length: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;

    const BLOCK: u64 = 64 * 1024;
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = vec![0; (end - start) as usize];
        file.read_exact_at(&mut block, start)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The path of the file of the records from `first` on.
pub(super) fn path_of(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}.jsonl"))
}

/// The files of a journal with the numbers of their first records, oldest first.
///
/// # Errors
/// Returns the system's error if the directory cannot be read. One that does not exist has no files.
pub(super) fn files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".jsonl")?.parse().ok());
        files.extend(number.map(|number| (number, path)));
    }
    files.sort_unstable();
    Ok(files)
}
