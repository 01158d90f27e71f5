//! The note that says which session a terminal belongs to.
//! It has no process facts, because the shim knows them better. The size is for the case that the shim is
//! gone.

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::frame::Size;
use crate::core::ids::{SessionId, TenantId};
use crate::core::moment::Moment;
use crate::session::error::{NAME_MAX, TAGS_MAX, check_name};
use crate::session::pty::shell::{Nonce, Nonces};
use crate::session::recording::directory::parse_name;
use crate::session::records::{RecordError, cut, millis, moment, read, write};

/// The most bytes of JSON for each text. Together they fit into a note.
const COMMAND_BYTES: usize = 1_536;
const CWD_BYTES: usize = 3_072;
const TAG_BYTES: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub tenant: TenantId,
    pub name: Arc<str>,
    /// The command as a person would type it, cut if it is very long.
    pub command: String,
    /// The initial working directory, cut if it is very long.
    pub cwd: PathBuf,
    pub tags: Vec<String>,
    /// Whether other tenants learn its name.
    pub is_listed: bool,
    /// What the marks of its shells carry.
    pub nonces: Nonces,
    pub confinement: Confinement,
    pub created_at: Moment,
    /// The last size of the terminal, if it is known.
    pub size: Option<Size>,
    /// The name of the file that records it; `None` if none does.
    pub recording: Option<Arc<str>>,
}

/// What a session's programs are confined by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The user that they run as; `None` for the daemon's.
    pub user: Option<u32>,
    pub sandbox: bool,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct IdentityNote {
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    listed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nested_nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(default)]
    sandbox: bool,
    /// Since boot. No session outlives a boot.
    #[serde(default)]
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<(u16, u16)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recording: Option<String>,
}

impl SessionRecord {
    /// The stand-in for a missing or unreadable note. The session's name is its id.
    pub fn unknown(id: SessionId, tenant: TenantId, now: Moment) -> Self {
        Self {
            id,
            tenant,
            name: Arc::from(id.to_string()),
            command: String::new(),
            cwd: PathBuf::from("/"),
            tags: Vec::new(),
            is_listed: false,
            nonces: Nonces::default(),
            confinement: Confinement::default(),
            created_at: now,
            size: None,
            recording: None,
        }
    }

    /// A copy without the nonces, for files that programs of the user can read.
    #[must_use]
    pub fn without_secret(&self) -> Self {
        Self { nonces: Nonces::default(), ..self.clone() }
    }

    pub fn to_note(&self) -> Vec<u8> {
        write(IdentityNote {
            id: self.id.to_string(),
            tenant: self.tenant.as_str().to_owned(),
            name: cut(&self.name, NAME_MAX),
            command: cut(&self.command, COMMAND_BYTES),
            cwd: cut(&self.cwd.to_string_lossy(), CWD_BYTES),
            tags: self.tags.iter().take(TAGS_MAX).map(|tag| cut(tag, TAG_BYTES)).collect(),
            listed: self.is_listed,
            nonce: text_of(self.nonces.own.as_ref()),
            nested_nonce: text_of(self.nonces.nested.as_ref()),
            user: self.confinement.user,
            sandbox: self.confinement.sandbox,
            created_ms: millis(self.created_at.since_boot()),
            size: self.size.map(|size| (size.rows, size.cols)),
            recording: self.recording.as_deref().map(str::to_owned),
        })
    }

    /// Reads the note of the session `id`.
    ///
    /// # Errors
    /// If the note is unreadable or belongs to another session.
    pub fn from_note(bytes: &[u8], id: SessionId) -> Result<Self, RecordError> {
        let note: IdentityNote = read(bytes)?;
        let IdentityNote {
            id: of,
            tenant,
            name,
            command,
            cwd,
            tags,
            listed: is_listed,
            created_ms,
            size,
            recording,
            user,
            sandbox,
            ..
        } = note;
        if of != id.to_string() {
            return Err(RecordError::value("id", of));
        }
        let tenant = tenant.parse().map_err(|_| RecordError::value("tenant", tenant))?;
        let name = if check_name(&name).is_ok() { name } else { id.to_string() };
        let cwd = if cwd.is_empty() { PathBuf::from("/") } else { PathBuf::from(cwd) };
        let tags = tags.into_iter().take(TAGS_MAX).collect();
        // An unreadable nonce counts as none: no mark is then accepted.
        let nonce = |text: Option<String>| text.and_then(|nonce| nonce.parse().ok());
        let nonces = Nonces { own: nonce(note.nonce), nested: nonce(note.nested_nonce) };
        let (name, created_at) = (Arc::from(name), moment(created_ms));
        let size = size.and_then(|(rows, cols)| Size::checked(rows, cols, Size::CELLS_MAX));
        // Only the names that recordings have, since this becomes a path.
        let recording = recording.filter(|name| parse_name(name).is_some_and(|(of, _)| of == id));
        let recording = recording.map(Arc::from);
        let confinement = Confinement { user, sandbox };
        Ok(Self {
            id,
            tenant,
            name,
            command,
            cwd,
            tags,
            is_listed,
            nonces,
            confinement,
            created_at,
            size,
            recording,
        })
    }
}

fn text_of(nonce: Option<&Nonce>) -> Option<String> {
    nonce.map(|nonce| nonce.as_str().to_owned())
}
