//! What a server asks while it answers calls, and the answers of clients on their way to it.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::core::mount::MountMode;
use crate::mount::asking::{
    ANSWER_BYTES_MAX, ANSWER_WAIT, AskAnswer, AskRefusal, LaterNews, OPEN_MAX, QUESTION_BYTES_MAX,
    QUESTIONS_MAX, ServerAsk, ServerQuestion, asking_call, check_link, check_link_id, mode,
};
use crate::mount::fence::{CallLease, EpochGate};
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::protocol::{ServerRequest, answer, answer_to};
use crate::mount::server::MountTask;
use crate::mount::server::questions::{QuestionAnswer, QuestionKey};
use crate::mount::server::running::{PendingCall, RunningServer};

/// Stands for the call of a question that belongs to none; their numbers begin at 1.
const NO_CALL: u64 = 0;

/// Where a request of the older era names the task that it belongs to, in `_meta`.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

impl MountTask {
    /// Has the client of a call asked, or answers the server at once. `within` is the request in whose stream it asks.
    pub(super) fn on_asked(
        &self,
        running: &mut RunningServer,
        within: Option<u64>,
        request: ServerRequest,
    ) {
        let ServerRequest { id, method, params } = request;
        let line = match ServerAsk::of(&method) {
            None => Some(answer_to(&id, &method)),
            Some(ask) => {
                let asked = running.ask(&id, within, (ask, params));
                asked.err().map(|refusal| answer(&id, &Err(refusal)))
            }
        };
        if let Some(line) = line {
            // A server that asks and does not read has to do without an answer.
            let _ = running.link.send(line);
        }
    }

    /// Hands an answer to the server.
    pub(super) fn on_client_answer(
        &mut self,
        running: &mut RunningServer,
        answered: QuestionAnswer,
    ) {
        let QuestionAnswer { key, under, answer } = answered;
        let is_too_long = answer.as_ref().is_ok_and(|it| it.get().len() > ANSWER_BYTES_MAX);
        let too_long = || Err(AskRefusal::refused("the client's answer is too long"));
        let answer = if is_too_long { too_long() } else { answer };
        match key {
            QuestionKey::Request(id) => self.answer_request(running, &id, under, &answer),
            QuestionKey::Result { call, name } => self.on_input(running, call, (name, answer)),
        }
    }

    /// Answers a request of the server, unless the lease of its call is over.
    fn answer_request(
        &self,
        running: &RunningServer,
        id: &str,
        under: Option<CallLease>,
        said: &AskAnswer,
    ) {
        let line = answer(id, said);
        // As above. An error has nothing of the client.
        let _ = match under.filter(|_| said.is_ok()) {
            None => Some(running.link.send(line)),
            Some(under) => {
                let gate = EpochGate::new(Arc::clone(&self.shared.fence), under.epoch);
                let send = || running.link.send_through(line, gate);
                self.shared.fence.pass(under.epoch, send)
            }
        };
    }
}

impl RunningServer {
    /// Puts a question to the client of the call that it belongs to.
    fn ask(
        &mut self,
        id: &ExactJson,
        within: Option<u64>,
        question: AskedQuestion,
    ) -> Result<(), AskRefusal> {
        let key = QuestionKey::of(id);
        if self.questions.is_open(&key) {
            return Err(AskRefusal::malformed("a question with this id is open"));
        }
        let call_id = match self.call_of_message(within, &question.1) {
            Ok(call_id) => call_id,
            Err(refusal) => return self.ask_for_news(key, question).unwrap_or(Err(refusal)),
        };
        let pending = self.pending.get_mut(&call_id).ok_or_else(over)?;
        pending.check(self.questions.of_call(call_id), [&question].into_iter())?;
        let later = match question.0 {
            ServerAsk::Elicitation => LaterNews {
                followed: self.links.expect(pending.call.client(), &question.1),
                ..LaterNews::default()
            },
            ServerAsk::Roots => LaterNews { roots: self.roots.told_by(), followed: None },
            ServerAsk::Sampling => LaterNews::default(),
        };
        let answer = pending.put(question, later)?;
        self.questions.add(key, (call_id, pending.call.under), answer);
        Ok(())
    }

    /// Puts a question for roots that have changed to the only client of a server, also while that works on no call.
    /// Returns nothing if it is another one.
    fn ask_for_news(
        &mut self,
        key: QuestionKey,
        (ask, params): AskedQuestion,
    ) -> Option<Result<(), AskRefusal>> {
        let is_own = self.shared.settings.mode == MountMode::PerClient;
        if !is_own || ask != ServerAsk::Roots || check_length(&params).is_err() {
            return None;
        }
        let asker = self.roots.take_asker()?;
        let (reply, answer) = oneshot::channel();
        let later = LaterNews { roots: self.roots.told_by(), followed: None };
        let put = asker.questions.try_send(ServerQuestion { ask, params, reply, later });
        if put.is_ok() {
            self.questions.add(key, (NO_CALL, None), answer);
        }
        Some(put.map_err(|_| AskRefusal::refused("the client has left")))
    }

    /// The call that a message belongs to.
    pub(super) fn call_of_message(
        &self,
        within: Option<u64>,
        params: &ExactObject,
    ) -> Result<u64, AskRefusal> {
        let within = match related_task(params) {
            Some(task) => Some(self.call_of_task(task).ok_or_else(over)?),
            None => within.map(|request| self.call_of(request).unwrap_or(request)),
        };
        let calls = self.pending.iter().map(|(id, it)| (*id, it.call.client()));
        asking_call(calls, self.draining.clients(), within)
    }

    /// Answers what was asked during a call that is over, and takes it back from its client.
    pub(super) fn end_questions(&mut self, call: u64) {
        for key in self.questions.end_call(call) {
            if let QuestionKey::Request(id) = key {
                let over = Err(AskRefusal::refused("the call is over"));
                // A server that does not read has to do without.
                let _ = self.link.send(answer(id, &over));
            }
        }
    }

    /// Takes a question back.
    pub(super) fn on_cancelled(&mut self, params: Option<&ExactJson>) {
        if let Some(id) = params.and_then(|params| params.get("requestId")) {
            self.questions.cancel(&QuestionKey::of(id));
        }
    }
}

fn over() -> AskRefusal {
    AskRefusal::refused("this request is over")
}

/// The task that a server of the older era says its message belongs to.
fn related_task(params: &ExactObject) -> Option<&str> {
    params.get("_meta")?.get(RELATED_TASK)?.get("taskId")?.as_text()
}

fn check_length(params: &ExactObject) -> Result<(), AskRefusal> {
    let fits = params.to_string().len() <= QUESTION_BYTES_MAX;
    if fits { Ok(()) } else { Err(AskRefusal::malformed("the question is too long")) }
}

fn too_many() -> AskRefusal {
    AskRefusal::refused("this call asks too much")
}

/// A question of a server.
pub(super) type AskedQuestion = (ServerAsk, ExactObject);

impl PendingCall {
    /// Checks questions that are asked together, beside those that are open, before the client hears of any.
    pub(super) fn check<'a>(
        &self,
        open: usize,
        questions: impl ExactSizeIterator<Item = &'a AskedQuestion>,
    ) -> Result<(), AskRefusal> {
        if open + questions.len() > OPEN_MAX || self.asked + questions.len() > QUESTIONS_MAX {
            return Err(too_many());
        }
        for (ask, params) in questions {
            check_length(params)?;
            if *ask == ServerAsk::Elicitation {
                check_link_id(params)?;
                if mode(params) == "url" {
                    check_link(params)?;
                }
            }
        }
        Ok(())
    }

    /// Puts a question to the client that was checked. Returns where its answer comes.
    pub(super) fn put(
        &mut self,
        (ask, params): AskedQuestion,
        later: LaterNews,
    ) -> Result<oneshot::Receiver<AskAnswer>, AskRefusal> {
        let nobody = || AskRefusal::refused("nobody can be asked during this request");
        let asker = self.call.channels.asker.as_ref().ok_or_else(nobody)?;
        let (reply, answer) = oneshot::channel();
        let put = asker.questions.try_send(ServerQuestion { ask, params, reply, later });
        put.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => too_many(),
            mpsc::error::TrySendError::Closed(_) => AskRefusal::refused("the call is over"),
        })?;
        self.asked += 1;
        self.until = self.until.max(Instant::now() + ANSWER_WAIT);
        Ok(answer)
    }
}
