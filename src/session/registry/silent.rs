//! Sessions that go on and that this daemon does not have: nobody answered for their terminals yet.
//!
//! It knows what was kept beside those, and asks no shim; whoever does says which are silent.

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::core::ids::{SessionId, TenantId};
use crate::core::policy::roles::RightsSubject;
use crate::session::handle::Session;
use crate::session::pty::held::shims::socket_of;
use crate::session::pty::sidecar_files::Remains;
use crate::session::records::identity::SessionRecord;
use crate::session::registry::{Registry, SessionEntry};

/// A session that is there. Its tenant stands beside it, so that whoever goes through hundreds of them need not read the
/// memory of each.
#[derive(Clone, Debug)]
pub struct Known {
    tenant: TenantId,
    pub as_is: KnownAs,
}

#[derive(Clone, Debug)]
pub enum KnownAs {
    /// This daemon has it.
    Here(Session),
    /// It is to be found once somebody answers for its terminal; its name is its own meanwhile.
    Silent(Arc<SessionRecord>),
}

impl Known {
    fn of(entry: &SessionEntry) -> Option<Self> {
        let (tenant, as_is) = match (&entry.session, &entry.silent) {
            (Some(session), _) => (session.tenant(), KnownAs::Here(session.clone())),
            (None, Some(Some(record))) => (&record.tenant, KnownAs::Silent(Arc::clone(record))),
            (None, Some(None) | None) => return None,
        };
        Some(Self { tenant: tenant.clone(), as_is })
    }

    pub fn id(&self) -> SessionId {
        match &self.as_is {
            KnownAs::Here(session) => session.id(),
            KnownAs::Silent(record) => record.id,
        }
    }

    pub fn is_silent(&self) -> bool {
        self.here().is_none()
    }

    /// The session, unless it is silent.
    pub fn here(&self) -> Option<&Session> {
        match &self.as_is {
            KnownAs::Here(session) => Some(session),
            KnownAs::Silent(_) => None,
        }
    }

    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Whether other tenants learn its name.
    pub fn is_listed(&self) -> bool {
        match &self.as_is {
            KnownAs::Here(session) => session.about().is_listed,
            KnownAs::Silent(record) => record.is_listed,
        }
    }

    pub fn name(&self) -> Arc<str> {
        match &self.as_is {
            KnownAs::Here(session) => session.name(),
            KnownAs::Silent(record) => Arc::clone(&record.name),
        }
    }
}

impl RightsSubject for Known {
    fn id(&self) -> SessionId {
        Self::id(self)
    }

    fn tenant(&self) -> &TenantId {
        Self::tenant(self)
    }

    fn is_named(&self, name: &str) -> bool {
        *self.name() == *name
    }

    fn has_tag(&self, tag: &str) -> bool {
        let tags = match &self.as_is {
            KnownAs::Here(session) => &session.about().tags,
            KnownAs::Silent(record) => &record.tags,
        };
        tags.iter().any(|it| it == tag)
    }
}

impl Registry {
    /// Every session that is there, by name and then by id. It is sorted once for all who ask between two
    /// changes.
    pub fn known(&self) -> Arc<[Known]> {
        let mut ordered = self.ordered();
        let known = ordered.get_or_insert_with(|| {
            let entries = self.0.entries.iter().filter_map(|entry| Known::of(&entry));
            let mut known: Vec<Known> = entries.collect();
            known.sort_by_cached_key(|known| (known.name(), known.id()));
            known.into()
        });
        Arc::clone(known)
    }

    fn ordered(&self) -> MutexGuard<'_, Option<Arc<[Known]>>> {
        self.0.ordered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a session has come, gone or fallen silent, or has another name. The caller holds no entry, since
    /// sorting locks all of them.
    pub(super) fn tell_known(&self) {
        *self.ordered() = None;
        self.note_change();
    }

    /// Removes an entry so that nobody who no longer finds it by its id is still shown it in the list.
    pub(super) fn remove_entry(&self, id: SessionId) -> Option<SessionEntry> {
        let mut ordered = self.ordered();
        *ordered = None;
        self.0.entries.remove(&id).map(|(_, entry)| entry)
    }

    /// The session with this id, if it is there.
    pub fn known_by_id(&self, id: SessionId) -> Option<Known> {
        Known::of(self.0.entries.get(&id)?.value())
    }

    /// The session of this tenant with this name, if it is there.
    pub fn known_by_name(&self, tenant: &TenantId, name: &str) -> Option<Known> {
        self.known_by_id(self.owner_of(tenant, name)?)
    }

    /// A session of such a tenant with this name, if it is there.
    pub fn known_among(&self, is_meant: impl Fn(&TenantId) -> bool, name: &str) -> Option<Known> {
        self.known_by_id(self.owner_among(is_meant, name)?)
    }

    /// The session with this id once somebody answers for its terminal; none when there is none.
    pub async fn once_here(&self, id: SessionId) -> Option<Session> {
        let mut changes = self.changes();
        loop {
            // Looked at first, since a session is here before its silence ends.
            let silent = self.is_silent(id);
            if let Some(session) = self.get(id) {
                return Some(session);
            }
            if !silent || changes.changed().await.is_err() {
                return None;
            }
        }
    }

    pub(in crate::session) fn is_silent(&self, id: SessionId) -> bool {
        self.0.entries.get(&id).is_some_and(|entry| entry.silent.is_some())
    }

    /// Notes for whose terminals nobody answers now; those of which no record can be read are known to
    /// nobody else.
    pub(in crate::session) fn set_silent(&self, ids: &[SessionId]) {
        for (id, _) in self.silent_names().into_iter().filter(|(id, _)| !ids.contains(id)) {
            self.end_silence(id);
        }
        for id in ids.iter().filter(|id| !self.is_silent(**id)) {
            let record = self.record_of(*id).map(Arc::new);
            self.0.entries.entry(*id).or_default().silent = Some(record);
            self.tell_known();
        }
    }

    /// Forgets that a session was silent, which is here by now or is not there at all.
    pub(in crate::session) fn end_silence(&self, id: SessionId) {
        let ended = self.0.entries.get_mut(&id).and_then(|mut entry| entry.silent.take());
        let Some(record) = ended else { return };
        self.0.entries.remove_if(&id, |_, entry| entry.session.is_none());
        if let Some(record) = record {
            let is_its = |session: Session| {
                *session.tenant() == record.tenant && session.name() == record.name
            };
            if !self.get(id).is_some_and(is_its) {
                self.free_name(&record.tenant, &record.name, id);
            }
        }
        self.tell_known();
    }

    /// All of them, each by the name it had, or by its id where nobody knows that.
    pub(super) fn silent_names(&self) -> Vec<(SessionId, Arc<str>)> {
        let name = |id: SessionId, record: &Option<Arc<SessionRecord>>| match record {
            Some(record) => Arc::clone(&record.name),
            None => Arc::from(id.to_string()),
        };
        let silent = |id, entry: &SessionEntry| Some((id, name(id, entry.silent.as_ref()?)));
        self.0.entries.iter().filter_map(|entry| silent(*entry.key(), &entry)).collect()
    }

    /// What was kept beside a terminal, with a name that is taken for it.
    fn record_of(&self, id: SessionId) -> Option<SessionRecord> {
        let kept = Remains::beside(&socket_of(&self.shims()?.directory, id)).identity()?;
        let record = SessionRecord::from_note(&kept, id)
            .inspect_err(
                |error| tracing::warn!(session = %id, %error, "the session's name cannot be read"),
            )
            .ok()?;
        let name = self.keep_name(&record.tenant, &record.name, id);
        Some(SessionRecord { name, ..record })
    }
}
