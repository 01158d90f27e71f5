//! The lease id that a command uses: from a file, standard input or the environment.
//!
//! It never comes from the command line, which every user of the machine can read.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::failure::CliFailure;

/// The variable with the lease id for commands.
pub const LEASE: &str = "TERMGATE_LEASE";

/// The longest lease file, in bytes.
const FILE_BYTES_MAX: u64 = 256;

/// How a command is given the lease that it uses.
#[derive(Debug, Args)]
pub struct OwnLease {
    /// Use the lease whose id is in this file, `-` for standard input [default: the id in TERMGATE_LEASE]
    #[arg(long, value_name = "FILE", requires = "session")]
    lease_file: Option<PathBuf>,
}

impl OwnLease {
    pub fn id(&self) -> Result<Option<String>, CliFailure> {
        match &self.lease_file {
            Some(file) => read(file).map(Some),
            None => Ok(env::var(LEASE).ok().filter(|id| !id.is_empty())),
        }
    }
}

/// Reads a lease id from a file, or from standard input for `-`.
pub fn read(file: &Path) -> Result<String, CliFailure> {
    let text = match file == Path::new("-") {
        true => text_of(io::stdin().lock()),
        false => File::open(file).and_then(text_of),
    };
    let text = text.map_err(|error| {
        CliFailure::Usage(format!("--lease-file: cannot read {}: {error}", file.display()))
    })?;
    match text.trim_ascii() {
        "" => Err(CliFailure::Usage(format!("--lease-file: {} holds no lease id", file.display()))),
        id => Ok(id.to_owned()),
    }
}

fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_the_file_holds_between_blanks() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lease");
        std::fs::write(&file, "6f1b\n").unwrap();
        assert_eq!(read(&file).unwrap(), "6f1b");
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(read(&file).unwrap_err().exit().number(), 2);
        let missing = read(&home.path().join("none")).unwrap_err();
        assert_eq!(missing.exit().number(), 2);
        assert!(missing.to_string().contains("none: No such file"), "{missing}");
    }
}
