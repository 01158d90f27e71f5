//! The record of which session a terminal belongs to.
//!
//! It knows nothing of the process, which whoever keeps the terminal knows better. The size is for when
//! that one is gone.

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::frame::Size;
use crate::core::ids::{SessionId, TenantId};
use crate::core::moment::Moment;
use crate::session::create::{NAME_MAX, TAGS_MAX, check_name};
use crate::session::pty::shell::Nonce;
use crate::session::records::{RecordError, cut, millis, moment, read, write};

/// How many bytes of JSON each text may take; all together they fit a note.
const COMMAND_BYTES: usize = 1_536;
const CWD_BYTES: usize = 3_072;
const TAG_BYTES: usize = 128;

/// Which session a terminal belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub tenant: TenantId,
    pub name: Arc<str>,
    /// The command as people would write it, cut where it is very long.
    pub command: String,
    /// The directory it was started in, cut where it is very long.
    pub cwd: PathBuf,
    pub tags: Vec<String>,
    /// What its shell's marks carry; none where nothing was done for the shell to send any.
    pub nonce: Option<Nonce>,
    pub created_at: Moment,
    /// The size that its terminal last had, where that is known.
    pub size: Option<Size>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    id: String,
    tenant: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    /// Since the machine was booted, which no session outlives.
    #[serde(default)]
    created_ms: u64,
    /// Rows and columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<(u16, u16)>,
}

impl SessionRecord {
    /// What stands for a record that is missing or cannot be read: the session is called by its id.
    pub fn unknown(id: SessionId, tenant: TenantId, now: Moment) -> Self {
        Self {
            id,
            tenant,
            name: Arc::from(id.to_string()),
            command: String::new(),
            cwd: PathBuf::from("/"),
            tags: Vec::new(),
            nonce: None,
            created_at: now,
            size: None,
        }
    }

    /// What of it may lie where programs of the user can read it.
    #[must_use]
    pub fn without_secret(&self) -> Self {
        Self { nonce: None, ..self.clone() }
    }

    /// The bytes of a note.
    pub fn to_note(&self) -> Vec<u8> {
        write(Wire {
            id: self.id.to_string(),
            tenant: self.tenant.as_str().to_owned(),
            name: cut(&self.name, NAME_MAX),
            command: cut(&self.command, COMMAND_BYTES),
            cwd: cut(&self.cwd.to_string_lossy(), CWD_BYTES),
            tags: self.tags.iter().take(TAGS_MAX).map(|tag| cut(tag, TAG_BYTES)).collect(),
            nonce: self.nonce.as_ref().map(|nonce| nonce.as_str().to_owned()),
            created_ms: millis(self.created_at.since_boot()),
            size: self.size.map(|size| (size.rows, size.cols)),
        })
    }

    /// Reads the note of the session `id`.
    ///
    /// # Errors
    /// Why it cannot be read, or that it is of another session.
    pub fn from_note(bytes: &[u8], id: SessionId) -> Result<Self, RecordError> {
        let Wire { id: of, tenant, name, command, cwd, tags, nonce, created_ms, size } =
            read(bytes)?;
        if of != id.to_string() {
            return Err(RecordError::value("id", of));
        }
        let tenant = tenant.parse().map_err(|_| RecordError::value("tenant", tenant))?;
        let name = if check_name(&name).is_ok() { name } else { id.to_string() };
        let cwd = if cwd.is_empty() { PathBuf::from("/") } else { PathBuf::from(cwd) };
        let tags = tags.into_iter().take(TAGS_MAX).collect();
        // Without it no mark counts, which is what one that cannot be read comes to as well.
        let nonce = nonce.and_then(|nonce| nonce.parse().ok());
        let (name, created_at) = (Arc::from(name), moment(created_ms));
        let size = size.and_then(|(rows, cols)| Size::checked(rows, cols, Size::CELLS_MAX));
        Ok(Self { id, tenant, name, command, cwd, tags, nonce, created_at, size })
    }
}
