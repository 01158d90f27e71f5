//! Why a token was not created, shown or used. No error contains a secret.

use std::path::PathBuf;

use crate::core::code::Code;
use crate::core::token::NotAdded;
use crate::transport::tokens::{SecretError, StoreError};

/// Why a command about tokens failed.
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
    /// The stable error code.
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
