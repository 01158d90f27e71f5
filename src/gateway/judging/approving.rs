//! How a call waits until somebody approves it: an operator, somebody with the role, or the person in front of its
//! client where the rules say so.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::watch;

use crate::core::moment::Moment;
use crate::core::one_line::line_to_decide_by;
use crate::core::policy::approvals::{Approval, ApprovalAnswer, ApprovalRequest, ApprovalState};
use crate::core::policy::bound::PermitBound;
use crate::core::policy::decision::{Decision, DecisionId};
use crate::gateway::judging::{JudgedCall, refusal};
use crate::gateway::recording::RecordedCall;
use crate::session::error::SessionError;
use crate::surface::call::{Call, Daemon};
use crate::surface::error::{SurfaceError, WhyRefused};
use crate::surface::judge::Judge;
use crate::surface::person::{ClientPerson, PersonAnswer, PersonQuestion, ReturnedAnswer};

/// The longest description of a call that somebody is asked about, in bytes: it is shown whole.
const WHAT_MAX: usize = 8 * 1024;

/// A question to the person in front of a client.
type Asking<'a> = Pin<Box<dyn Future<Output = PersonAnswer> + Send + 'a>>;

/// What an approval used up; none for programs that pass for a time.
type Used = Option<Box<Approval>>;

/// A call about which the rules ask.
pub(super) struct AskedCall<'a> {
    pub(super) judged: JudgedCall<'a>,
    pub(super) daemon: &'a Daemon,
    pub(super) decision: &'a Decision,
    pub(super) request: ApprovalRequest,
    /// How long its caller waits.
    pub(super) until: Moment,
}

/// How waiting for an approval ended.
enum Waited {
    Decided,
    TooLong,
    /// It waits no more and is judged again: other rules hold, an equal call used the approval, or was made at another state
    /// of the terminal, or the call gave way to newer ones before it was noted that somebody waits in it.
    Void,
}

impl AskedCall<'_> {
    /// Waits until somebody approves the call, and returns what that used up. `None` if it is to be judged again: other
    /// rules hold, or an equal call used the approval.
    pub(super) async fn approved(
        &self,
        call: &mut Call,
        mut changes: watch::Receiver<u64>,
    ) -> Result<Option<Used>, SurfaceError> {
        // Nobody is asked whether somebody may be asked.
        if self.judged.is_rehearsal() || self.judged.entry.is_question() {
            return Err(refusal(self.decision, WhyRefused::WouldAsk));
        }
        // Nobody is asked about what the tool refuses.
        self.judged.entry.check(self.judged.arguments)?;
        self.judged.check_lease(call).await?;
        // Nobody approves what nobody sees.
        if self.request.what.len() > WHAT_MAX {
            return Err(refusal(self.decision, WhyRefused::TooLong));
        }
        let may_ask = self.request.client_may_approve;
        let person = if may_ask { call.person.clone() } else { ClientPerson::Absent };
        let mut asking = None;
        let mut asks_later = false;
        match &person {
            ClientPerson::Absent => {}
            ClientPerson::Present(person) => asking = Some(person.ask(self.question())),
            ClientPerson::Later(None) => asks_later = true,
            ClientPerson::Later(Some(returned)) => {
                self.take(call, returned)?;
                // An answer that came too late is asked for again.
                asks_later = returned.answer != PersonAnswer::Nothing;
            }
        }
        loop {
            let asked = self.ask(call);
            let (id, expires_at) = match asked {
                ApprovalAnswer::Passes { id, used, .. } => {
                    call.decided(id);
                    return self.pass(call, used).map(Some);
                }
                ApprovalAnswer::Denied { by, until, .. } => {
                    let retry_after = self.daemon.now().until(until);
                    return Err(refusal(self.decision, WhyRefused::DeniedBy { by, retry_after }));
                }
                ApprovalAnswer::Stale { .. } => return Err(SessionError::Stale.into()),
                ApprovalAnswer::TooMany { retry_after } => {
                    return Err(SurfaceError::TooManyAsked { retry_after });
                }
                ApprovalAnswer::Outdated => return Ok(None),
                ApprovalAnswer::Waits { id, expires_at, .. } => (id, expires_at),
            };
            if asks_later {
                return Err(refusal(self.decision, self.asks_person(id, expires_at)));
            }
            // Whatever this connection asks next need not wait for a person.
            call.accept();
            let waiting = WaitingCall::begin(&self.daemon.judge, id);
            let waited = self.wait(call, (id, expires_at), &mut changes, &mut asking).await;
            waiting.end();
            match waited? {
                Waited::Decided => {}
                Waited::TooLong => {
                    // It can be approved all the same, for when it is made again.
                    let expires_in = self.daemon.now().until(expires_at);
                    return Err(refusal(self.decision, WhyRefused::Waits { id, expires_in }));
                }
                Waited::Void => return Ok(None),
            }
        }
    }

    fn ask(&self, call: &Call) -> ApprovalAnswer {
        let Daemon { judge, sessions, .. } = self.daemon;
        let kept = self.decision.what.get().cloned();
        judge.ask(sessions, &call.standing.caller, self.request.clone(), kept)
    }

    /// Waits until a call that waits is decided, as long as its caller or the question to its person waits.
    async fn wait(
        &self,
        call: &Call,
        (id, expires_at): (DecisionId, Moment),
        changes: &mut watch::Receiver<u64>,
        asking: &mut Option<Asking<'_>>,
    ) -> Result<Waited, SurfaceError> {
        let (clock, leaving) = (self.daemon.sessions.clock(), self.daemon.departure.waiting());
        loop {
            let until = if asking.is_some() { self.until.max(expires_at) } else { self.until };
            if clock.now() >= until {
                return Ok(Waited::TooLong);
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = clock.sleep_until(until) => {}
                () = leaving.told() => return Err(SurfaceError::DaemonLeaves),
                answer = answered(asking) => self.decide(call, id, answer),
            }
            match self.daemon.judge.state(clock.now(), id) {
                Some(ApprovalState::Waiting) => {}
                Some(ApprovalState::Approved(_) | ApprovalState::Denied(_)) => {
                    return Ok(Waited::Decided);
                }
                // Whoever was asked did not answer, and is not asked again.
                None if clock.now() >= expires_at => return Ok(Waited::TooLong),
                None => return Ok(Waited::Void),
            }
        }
    }

    /// Takes the answer that a client brings back.
    fn take(&self, call: &mut Call, returned: &ReturnedAnswer) -> Result<(), SurfaceError> {
        let opened = self.daemon.judge.opened(&returned.state, &self.request.fingerprint);
        let id = opened.ok_or_else(|| {
            let problem =
                "is not of this call and caller, or has expired; make the call without it";
            SurfaceError::argument("requestState", problem)
        })?;
        self.decide(call, id, returned.answer);
        // A second use of the same answer needs the same call to wait, which it does not any more.
        call.person = ClientPerson::Later(None);
        Ok(())
    }

    /// Decides the call as its person says, and records that.
    fn decide(&self, call: &Call, id: DecisionId, answer: PersonAnswer) {
        let granted = match answer {
            PersonAnswer::Granted => true,
            PersonAnswer::Denied => false,
            PersonAnswer::Nothing => return,
        };
        let Daemon { judge, sessions, .. } = self.daemon;
        if let Err(error) = judge.answer(sessions, &call.standing.caller, id, granted) {
            // Somebody else was faster, or it took too long.
            tracing::debug!(%id, %error, "an answer came too late");
            return;
        }
        let act = if granted { "client_approves" } else { "client_denies" };
        let recorded = RecordedCall::request(sessions.recorder(), &call.standing, act).by(id);
        let recorded = match self.judged.session {
            Some(session) => recorded.about(session.clone()),
            None => recorded,
        };
        recorded.begin_anyway().conclude(None);
    }

    fn asks_person(&self, id: DecisionId, expires_at: Moment) -> WhyRefused {
        let expires_in = self.daemon.now().until(expires_at);
        let state = self.daemon.judge.seal(id, &self.request.fingerprint, expires_in);
        WhyRefused::AsksPerson(PersonQuestion { text: self.question(), state })
    }

    /// What the person in front of the client is asked. Invisible characters are shown.
    fn question(&self) -> String {
        let ApprovalRequest { what, witness, rule, reason, .. } = &self.request;
        let session = self.judged.session.map(|it| format!("\nSession: {}", it.name()));
        let directory =
            witness.directory.as_ref().map(|it| format!("\nDirectory: {}", line_to_decide_by(it)));
        let rule = rule.as_ref().map(|rule| match reason {
            Some(reason) => format!("\nRule: {rule}: {reason}"),
            None => format!("\nRule: {rule}"),
        });
        let parts = [session, directory, rule].map(Option::unwrap_or_default).concat();
        format!("Let this pass once?\n{what}{parts}")
    }

    /// Lets the call pass while its terminal is as it was when it was approved.
    fn pass(&self, call: &mut Call, used: Used) -> Result<Used, SurfaceError> {
        if used.is_some() {
            let witness = &self.request.witness;
            if self.judged.witness(call) != *witness {
                return Err(SessionError::Stale.into());
            }
            self.judged.bind(call, PermitBound::Terminal(witness.clone()));
        }
        Ok(used)
    }
}

/// Waits for the answer to a question, which is asked no more then; for ever if there is none.
async fn answered(asking: &mut Option<Asking<'_>>) -> PersonAnswer {
    match asking {
        None => std::future::pending().await,
        Some(question) => {
            let answer = question.await;
            *asking = None;
            answer
        }
    }
}

/// A call that waits, until this is dropped.
struct WaitingCall<'a> {
    judge: &'a Judge,
    id: DecisionId,
    /// Otherwise its caller has given it up.
    is_over: bool,
}

impl<'a> WaitingCall<'a> {
    fn begin(judge: &'a Judge, id: DecisionId) -> Self {
        judge.on_wait(id, true);
        Self { judge, id, is_over: false }
    }

    /// It was decided, or has waited long enough.
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.judge.on_wait(self.id, false);
        if !self.is_over {
            self.judge.withdraw(self.id);
        }
    }
}
