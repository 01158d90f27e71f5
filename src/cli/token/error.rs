//! Why a token was not made, shown or used.
//!
//! It knows no command; how a problem is shown is the output's affair. No text of a secret is ever
//! part of it.

use std::path::PathBuf;

use crate::core::code::Code;
use crate::core::token::NotAdded;
use crate::transport::tokens::{SecretError, StoreError};

/// Why a command did nothing about tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenFailure {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the token file {} is not used: {source}", path.display())]
    File { path: PathBuf, source: SecretError },
    #[error("there is no place for tokens; set HOME or XDG_STATE_HOME")]
    NoPlace,
}

impl TokenFailure {
    /// The stable code for it.
    pub fn code(&self) -> Code {
        match self {
            Self::Store(error) => match error {
                StoreError::NotAdded(NotAdded::NameTaken(_)) => Code::TokenExists,
                StoreError::NotAdded(NotAdded::TooMany) => Code::QuotaExceeded,
                StoreError::NoSuchToken(_) => Code::TokenNotFound,
                StoreError::Secret { .. } => Code::TokenFile,
                StoreError::Unreadable { .. }
                | StoreError::Malformed { .. }
                | StoreError::Unwritable { .. } => Code::StorageError,
                StoreError::NoRandom(_) => Code::Internal,
            },
            Self::File { .. } => Code::TokenFile,
            Self::NoPlace => Code::Internal,
        }
    }
}
