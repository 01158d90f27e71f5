//! What people may do with a session that they are attached to.
//!
//! The callers here are people, of kind human; a tool of agents has no business with it.

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::core::caller::Caller;
use crate::core::frame::Size;
use crate::core::ids::{LeaseId, PrincipalId};
use crate::core::policy::{Permit, PermittedAct};
use crate::session::command::{Ask, PersonCommand, TypedInput, Written};
use crate::session::error::SessionError;
use crate::session::handle::Session;

impl Session {
    /// Types, and answers as [`Session::write`] does. The person gets the keyboard first if it does
    /// not have it, and keeps it until it pauses; a lease in force is suspended meanwhile.
    ///
    /// # Errors
    /// [`LeaseError::Held`](crate::core::lease::error::LeaseError::Held) when another person took the
    /// keyboard over, among others.
    pub async fn type_in(
        &self,
        permit: &Permit,
        caller: Caller,
        typed: TypedInput,
    ) -> Result<Written, SessionError> {
        self.check_caller(permit, PermittedAct::Type, &caller)?;
        self.ask_as_person(caller, |reply| Ask::TypeIn(typed, reply)).await?
    }

    /// Takes the keyboard without typing, until it is handed back; the session takes the size of
    /// the person's view.
    pub async fn take_over(
        &self,
        permit: &Permit,
        caller: Caller,
        view: Option<Size>,
    ) -> Result<(), SessionError> {
        self.check_caller(permit, PermittedAct::Type, &caller)?;
        self.ask_as_person(caller, |reply| Ask::TakeOver(view, reply)).await?
    }

    /// Hands the keyboard back; says whether the person had it. Whoever was suspended goes on.
    pub async fn hand_back(&self, caller: Caller) -> Result<bool, SessionError> {
        self.ask_as_person(caller, Ask::HandBack).await
    }

    /// Gives the session the size of a person's view, if that person has the keyboard; says whether
    /// it has.
    pub async fn resize_for_person(
        &self,
        permit: &Permit,
        caller: Caller,
        view: Size,
    ) -> Result<bool, SessionError> {
        self.check_caller(permit, PermittedAct::Resize, &caller)?;
        self.ask_as_person(caller, |reply| Ask::Resize(view, reply)).await?
    }

    /// Tells the session that a person is no longer attached: it hands back what it has, after all
    /// that it typed before. Needs no await, so that it can be done from a destructor.
    pub fn detached(&self, person: PrincipalId) {
        self.0.urgent.post(|entries| {
            entries.detached.insert(person);
        });
    }

    async fn ask_as_person<T>(
        &self,
        caller: Caller,
        ask: impl FnOnce(oneshot::Sender<T>) -> Ask,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let command = PersonCommand { caller, fresh: LeaseId(Uuid::new_v4()), ask: ask(reply) };
        self.0.people.try_send(command).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => SessionError::Busy,
            mpsc::error::TrySendError::Closed(_) => SessionError::Closed,
        })?;
        answer.await.map_err(|_| self.unanswered())
    }
}
