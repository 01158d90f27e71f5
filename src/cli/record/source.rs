//! Finds and opens the recording that a person names: a file, or the newest one of a session.

use std::env;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::journal::id_of;
use crate::config::paths::state_directory;
use crate::session::recording::directory::recordings;
use crate::session::recording::reader::{CastError, CastReader};

/// The file of a recording.
///
/// # Errors
/// If there is neither such a file nor a recording of such a session.
pub(in crate::cli) async fn find(context: &Context, given: String) -> Result<PathBuf, CliFailure> {
    let path = PathBuf::from(&given);
    if given.contains('/') || path.is_file() {
        return Ok(path);
    }
    let (paths, _) = context.place()?;
    let directory = paths.recordings(state_directory(|name| env::var_os(name)).as_deref());
    let id = id_of(context, given.clone()).await?;
    let found = recordings(&directory).map_err(|error| failed(&directory, &error.into()))?;
    let of_session = found.into_iter().rfind(|it| it.session.to_string().starts_with(&id));
    let newest = of_session.ok_or_else(|| CliFailure::NotFound {
        why: format!("session `{given}` has no recording"),
        hint: format!("`termgate record start {given}` starts one"),
    })?;
    Ok(newest.path)
}

/// A recording that is about to be read.
pub(in crate::cli) type OpenRecording = CastReader<BufReader<File>>;

/// Opens a recording. A pipe is read too, as from a shell's `<(...)`.
///
/// # Errors
/// If it is no recording, or cannot be read.
pub(in crate::cli) fn open(path: &Path) -> Result<OpenRecording, CliFailure> {
    let opened = File::open(path).map_err(CastError::from);
    let opened = opened.and_then(|file| CastReader::open(BufReader::new(file)));
    opened.map_err(|error| failed(path, &error))
}

/// What is wrong with a recording.
pub(in crate::cli) fn failed(path: &Path, error: &CastError) -> CliFailure {
    let told = format!("{}: {error}", path.display());
    match error {
        CastError::Read(error) if error.kind() == io::ErrorKind::NotFound => {
            let hint = "`termgate record ls` lists the recordings".to_owned();
            CliFailure::NotFound { why: told, hint }
        }
        CastError::Read(_) => anyhow::anyhow!(told).into(),
        CastError::Foreign | CastError::Version(_) | CastError::Broken { .. } => {
            CliFailure::Usage(told)
        }
    }
}
