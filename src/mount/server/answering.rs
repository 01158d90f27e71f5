//! The answers of a server to the requests of calls, and what becomes of the calls.

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::mount::asking::{check_link, check_link_id};
use crate::mount::eras::{ResultKind, ServerEra};
use crate::mount::error::{DATA_MAX, LINK_NEEDED, MountError, links};
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::link::lines::LostAnswer;
use crate::mount::protocol::ServerRefusal;
use crate::mount::server::MountTask;
use crate::mount::server::running::{CallRequest, PendingCall, RunningServer};

/// What comes of a step of a call: its result, or nothing yet.
pub(super) type CallStep = Result<Option<Box<RawValue>>, MountError>;

impl MountTask {
    /// Takes the answer to a request of a call.
    pub(super) fn on_answer(
        &mut self,
        running: &mut RunningServer,
        request: u64,
        result: Result<Box<RawValue>, ServerRefusal>,
    ) {
        // An unknown number is that of a call that was given up.
        let Some((mut pending, kind)) = running.take_answered(request) else { return };
        running.used = Instant::now();
        let step = match result {
            Ok(result) => self.on_result(running, &mut pending, (kind, result)),
            Err(refusal) => {
                if kind != CallRequest::TaskUpdate {
                    // There is no task, or none any more.
                    pending.task = None;
                }
                Err(self.refused(refusal))
            }
        };
        self.go_on(running, pending, step);
    }

    fn on_result(
        &mut self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
        (kind, result): (CallRequest, Box<RawValue>),
    ) -> CallStep {
        match kind {
            CallRequest::Call if running.era == ServerEra::Older => Ok(Some(result)),
            CallRequest::Call => match ResultKind::of(&result) {
                ResultKind::Final => Ok(Some(result)),
                ResultKind::InputRequired => {
                    self.on_input_required(running, pending, &result)?;
                    Ok(None)
                }
                ResultKind::Task => {
                    self.on_task_begun(running, pending, &result)?;
                    Ok(None)
                }
            },
            CallRequest::TaskCall => self.on_task_call(running, pending, result),
            CallRequest::TaskGet => self.on_task_state(running, pending, &result),
            CallRequest::TaskUpdate => Ok(None),
            CallRequest::TaskResult => {
                pending.task = None;
                Ok(Some(result))
            }
        }
    }

    /// Has a call wait on, or ends it.
    pub(super) fn go_on(&self, running: &mut RunningServer, pending: PendingCall, step: CallStep) {
        match step.transpose() {
            None => _ = running.pending.insert(pending.call.id, pending),
            Some(answer) => running.end_call(pending, answer),
        }
    }

    /// A request of a call will not be answered.
    pub(super) fn on_call_lost(
        &self,
        running: &mut RunningServer,
        request: u64,
        problem: &LostAnswer,
    ) {
        let Some((mut pending, kind)) = running.take_answered(request) else { return };
        self.shared.log.add(format!("[termgate] no answer: {problem}").as_bytes());
        if kind == CallRequest::TaskGet
            && let Some(task) = &mut pending.task
        {
            task.on_silence(Instant::now());
            return self.go_on(running, pending, Ok(None));
        }
        let mount = self.shared.name.clone();
        let error = match problem {
            LostAnswer::Silent(_) => MountError::Restarted { mount },
            LostAnswer::TooLong => MountError::TooLong { mount },
        };
        running.end_call(pending, Err(error));
    }

    /// Asks about tasks, and cancels the calls that were not answered in time. Returns whether there were any.
    pub(super) fn on_call_time(&self, running: &mut RunningServer, now: Instant) -> bool {
        self.poll_tasks(running, now);
        let overdue = running.pending.extract_if(.., |_, pending| pending.until <= now);
        let overdue: Vec<PendingCall> = overdue.map(|(_, pending)| pending).collect();
        let is_any = !overdue.is_empty();
        for pending in overdue {
            let mount = self.shared.name.clone();
            let error = match &pending.task {
                _ if running.questions.of_call(pending.call.id) > 0 => {
                    self.no_input("the client did not answer in time".to_owned())
                }
                Some(task) if task.ends <= now => {
                    MountError::TaskTooLong { mount, after: task.allowed() }
                }
                Some(_) | None => {
                    MountError::TimedOut { mount, after: self.shared.settings.call_timeout }
                }
            };
            running.end_call(pending, Err(error));
        }
        is_any
    }

    pub(super) fn refused(&self, refusal: ServerRefusal) -> MountError {
        let ServerRefusal { code, message, data } = refusal;
        let mount = self.shared.name.clone();
        match data.filter(|data| data.to_string().len() <= DATA_MAX) {
            Some(ExactJson::Object(data)) if code == Some(LINK_NEEDED) && are_links(&data) => {
                MountError::LinkNeeded { mount, message, data }
            }
            // Links that open no page reach nobody.
            data => {
                let data = data.filter(|_| code != Some(LINK_NEEDED));
                MountError::Refused { mount, code, message, data }
            }
        }
    }

    /// The error of a server that says what is not of the protocol.
    pub(super) fn malformed(&self, what: &str, problem: &str) -> MountError {
        let problem = format!("its {what} is malformed: {problem}");
        MountError::Malformed { mount: self.shared.name.clone(), problem }
    }
}

/// Whether the data of an error are links that a client may be shown.
fn are_links(data: &ExactObject) -> bool {
    let is_right = |link| check_link(link).and_then(|()| check_link_id(link)).is_ok();
    links(data).next().is_some() && links(data).all(is_right)
}
