//! What a server asks with a result: the client of the call is asked, and the request is made again with the answers, or
//! its task gets them.

use serde_json::value::RawValue;

use crate::mount::asking::{AskAnswer, AskRefusal, LaterNews, ServerAsk};
use crate::mount::error::MountError;
use crate::mount::inputs::{InputRequest, InputRequests, InputRequired, ROUNDS_MAX};
use crate::mount::json::reading::read_whole;
use crate::mount::server::MountTask;
use crate::mount::server::asking::AskedQuestion;
use crate::mount::server::questions::QuestionKey;
use crate::mount::server::running::{CallRequest, PendingCall, RunningServer};

impl MountTask {
    /// The server asks before it answers a request.
    pub(super) fn on_input_required(
        &mut self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
        result: &RawValue,
    ) -> Result<(), MountError> {
        let malformed = |problem: String| self.malformed("question", &problem);
        let required: InputRequired =
            read_whole(result.get()).map_err(|error| malformed(error.to_string()))?;
        let (requests, round) = required
            .round()
            .ok_or_else(|| malformed("it has neither inputRequests nor requestState".to_owned()))?;
        pending.rounds += 1;
        if pending.rounds > ROUNDS_MAX {
            return Err(self.no_input(format!("it has asked {ROUNDS_MAX} times")));
        }
        pending.round = Some(round);
        self.ask_inputs(running, pending, requests)?;
        self.bring_inputs(running, pending)
    }

    /// Puts the questions of a result to the client.
    pub(super) fn ask_inputs(
        &self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
        requests: InputRequests,
    ) -> Result<(), MountError> {
        let call = pending.call.id;
        let asked = |(name, InputRequest { method, params })| match ServerAsk::of(&method) {
            Some(ask) => Ok((name, (ask, params.unwrap_or_default()))),
            None => Err(self.malformed("question", &format!("unknown method {method}"))),
        };
        let questions: Vec<(String, AskedQuestion)> =
            requests.into_iter().map(asked).collect::<Result<_, _>>()?;
        let open = running.questions.of_call(call);
        let checked = pending.check(open, questions.iter().map(|(_, question)| question));
        checked.map_err(|refusal| self.no_answer(&refusal))?;
        for (name, question) in questions {
            // The newer era tells nothing later.
            let answer = pending.put(question, LaterNews::default());
            let answer = answer.map_err(|refusal| self.no_answer(&refusal))?;
            let key = QuestionKey::Result { call, name };
            running.questions.add(key, (call, pending.call.under), answer);
            pending.round.get_or_insert_default().on_asked();
        }
        Ok(())
    }

    /// The client has answered a question of a result.
    pub(super) fn on_input(
        &mut self,
        running: &mut RunningServer,
        call: u64,
        (name, answer): (String, AskAnswer),
    ) {
        let Some(mut pending) = running.pending.remove(&call) else { return };
        let taken = self.take_input(running, &mut pending, (name, answer));
        self.go_on(running, pending, taken.map(|()| None));
    }

    fn take_input(
        &mut self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
        (name, answer): (String, AskAnswer),
    ) -> Result<(), MountError> {
        // There is no form in which a server could be told why it gets no answer.
        let answer = answer.map_err(|refusal| self.no_answer(&refusal))?;
        if let Some(round) = &mut pending.round {
            round.on_answer(name, answer);
        }
        self.bring_inputs(running, pending)
    }

    /// Makes the request again, once all its questions are answered; or brings a task the answers.
    fn bring_inputs(
        &mut self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
    ) -> Result<(), MountError> {
        match pending.round.take_if(|round| round.is_answered()) {
            None => Ok(()),
            // What was accepted is not what would be called.
            Some(_) if self.has_other_tools() => {
                Err(self.no_input("its tools have changed meanwhile".to_owned()))
            }
            Some(round) => {
                let number = self.shared.number();
                let Some(task) = &pending.task else {
                    round.fill(&mut pending.call.params);
                    return self.make_request(running, pending, (number, CallRequest::Call));
                };
                let mut params = task.params();
                round.fill(&mut params);
                self.ask_task(running, pending, (CallRequest::TaskUpdate, params))
            }
        }
    }

    fn no_answer(&self, refusal: &AskRefusal) -> MountError {
        self.no_input(refusal.message.clone())
    }

    pub(super) fn no_input(&self, problem: String) -> MountError {
        MountError::NoInput { mount: self.shared.name.clone(), problem }
    }
}
