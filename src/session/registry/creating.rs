//! How sessions come to be and are called otherwise.
//!
//! The first lease of a session is granted as any other: by its task, to a call that still waits. The
//! session is listed by then, so that whatever ends a right or a connection finds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use crate::core::lease::request::Grant;
use crate::core::policy::{Permit, PermittedAct};
use crate::session::command::Reply;
use crate::session::control::Parting;
use crate::session::create::{Creation, Started, fresh_id, name_of, resolve, start};
use crate::session::create_error::CreateError;
use crate::session::error::SessionError;
use crate::session::handle::{Identity, Session};
use crate::session::registry::{Registry, RenameError};

impl Registry {
    /// Creates a session and waits until its doors are open. `listed` is called once everybody finds
    /// it and nothing was done there yet, to tell it what the switches leave open.
    ///
    /// What was begun is finished, whether or not anybody still waits for it; the first lease is nobody's
    /// then, as where the switches are closed.
    ///
    /// # Errors
    /// Why there is none; nothing of it is left then.
    pub async fn create(
        &self,
        permit: &Permit,
        creation: Creation,
        listed: impl FnOnce(&Session) + Send + 'static,
    ) -> Result<(Session, Option<Grant>), CreateError> {
        permit.check(PermittedAct::Create, None, self.clock().now())?;
        let registry = self.clone();
        let (reply, answer) = oneshot::channel();
        let creating =
            tokio::spawn(async move { registry.create_now(creation, reply, listed).await });
        let created = creating.await.unwrap_or_else(|failed| match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CreateError::Ending),
        });
        let session = created?;
        let grant = answer.await.ok().and_then(Result::ok);
        if let Some(grant) = &grant {
            self.remember_lease(grant.lease, session.id());
        }
        Ok((session, grant))
    }

    async fn create_now(
        &self,
        mut creation: Creation,
        reply: Reply<Grant>,
        listed: impl FnOnce(&Session),
    ) -> Result<Session, CreateError> {
        let tenant = creation.tenant.clone();
        if self.0.ending.load(Ordering::SeqCst) {
            return Err(CreateError::Ending);
        }
        let id = fresh_id(|id| self.0.sessions.contains_key(&id));
        let spec = resolve(self, id, &creation)?;
        let name = match &creation.name {
            Some(name) => self.take_name_of_ended(&tenant, name, id).await?,
            None => self.take_free_name(&tenant, &name_of(&creation.launch, &spec), id),
        };
        let identity = Identity { id, tenant: tenant.clone() };
        let started = match self.check_room(&tenant) {
            Ok(()) => start(self, identity, Arc::clone(&name), &creation, spec).await,
            Err(error) => Err(error),
        };
        let Started { session, task } = started.inspect_err(|_| {
            self.0.names.remove(&(tenant, name));
        })?;
        if let Some((caller, request)) = creation.first.take() {
            session.ask_first(caller, request, reply);
        }
        self.0.counters.sessions_created.add(1);
        self.list(&session);
        listed(&session);
        self.look_after(session.clone(), tokio::spawn(task));
        // Whoever ends the daemon either sees this session or is seen here.
        if self.0.ending.load(Ordering::SeqCst) {
            session.part(Parting::End);
            return Err(CreateError::Ending);
        }
        self.announce(&session).await;
        Ok(session)
    }

    /// Gives a session another name, be it that of one that has ended.
    ///
    /// # Errors
    /// Why it cannot have the name, or that it is gone.
    pub async fn rename(
        &self,
        permit: &Permit,
        session: &Session,
        name: &str,
    ) -> Result<(), RenameError> {
        session.check(permit, PermittedAct::Manage).map_err(SessionError::from)?;
        if *session.name() == *name {
            return Ok(());
        }
        let name = self.take_name_of_ended(session.tenant(), name, session.id()).await?;
        Ok(self.rename_to(session, name).await?)
    }
}

#[cfg(test)]
mod tests;
