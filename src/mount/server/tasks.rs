//! Calls that the server runs as tasks: it is asked how they are doing, until they are over.

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::mount::eras::{ResultKind, ServerEra};
use crate::mount::error::MountError;
use crate::mount::handle::{CallNews, ServerCall};
use crate::mount::json::reading::read_whole;
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::protocol::{ServerParams, ServerRefusal, TOOL_CALL};
use crate::mount::server::MountTask;
use crate::mount::server::answering::CallStep;
use crate::mount::server::running::{CallRequest, PendingCall, RunningServer};
use crate::mount::tasks::{BegunTask, CallTask, TaskState, TaskStatus};

impl MountTask {
    /// Whether the server wants this to be called as a task. Servers of the newer era decide that themselves.
    pub(super) fn is_task(&self, call: &ServerCall) -> bool {
        let greeting = self.shared.view.borrow().greeting.clone();
        if call.method != TOOL_CALL || !greeting.is_some_and(|it| it.runs_tasks) {
            return false;
        }
        self.listed_tool(call).is_some_and(|tool| {
            tool.get("execution").and_then(|it| it.get("taskSupport")?.as_text())
                == Some("required")
        })
    }

    /// A server of the older era was asked to begin a task. One that gives the result instead has none.
    pub(super) fn on_task_call(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        result: Box<RawValue>,
    ) -> CallStep {
        let begun: BegunTask =
            read_whole(result.get()).map_err(|error| self.malformed("task", &error.to_string()))?;
        match begun.task {
            None => Ok(Some(result)),
            Some(task) => self.begin_task(running, pending, task).map(|()| None),
        }
    }

    /// A server of the newer era has begun a task.
    pub(super) fn on_task_begun(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        result: &RawValue,
    ) -> Result<(), MountError> {
        if pending.call.method != TOOL_CALL {
            return Err(self.malformed("result", "only calls of tools may be tasks"));
        }
        self.begin_task(running, pending, self.task_state(result)?)
    }

    fn begin_task(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        state: TaskState,
    ) -> Result<(), MountError> {
        if running.call_of_task(&state.task_id).is_some() {
            return Err(self.malformed("task", "its id is that of another one"));
        }
        let task = CallTask::new(&state, self.shared.settings.call_timeout, Instant::now());
        pending.task = Some(task);
        self.prolong(pending);
        pending.tell_status(state.status_message);
        Ok(())
    }

    fn task_state(&self, result: &RawValue) -> Result<TaskState, MountError> {
        read_whole(result.get()).map_err(|error| self.malformed("task", &error.to_string()))
    }

    /// The server says how a task is doing.
    pub(super) fn on_task_state(
        &mut self,
        running: &mut RunningServer,
        pending: &mut PendingCall,
        result: &RawValue,
    ) -> CallStep {
        let mut state = self.task_state(result)?;
        let Some(task) = &mut pending.task else { return Ok(None) };
        task.on_state(&state, self.shared.settings.call_timeout, Instant::now());
        pending.tell_status(state.status_message.take());
        match (state.status, running.era) {
            (TaskStatus::Working, _) => {
                self.prolong(pending);
                Ok(None)
            }
            (TaskStatus::InputRequired, ServerEra::Newer) => {
                let requests = state.input_requests.unwrap_or_default();
                let requests = pending.task.as_mut().map(|task| task.unasked(requests));
                self.ask_inputs(running, pending, requests.unwrap_or_default())?;
                Ok(None)
            }
            // It asks by requests, also in the stream of the result.
            (TaskStatus::InputRequired, ServerEra::Older) => {
                self.ask_result(running, pending)?;
                Ok(None)
            }
            (TaskStatus::Completed | TaskStatus::Failed, ServerEra::Older) => {
                task_is_over(pending);
                self.ask_result(running, pending)?;
                Ok(None)
            }
            (TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled, _) => {
                pending.task = None;
                self.task_end(state).map(Some)
            }
        }
    }

    /// The result of a task that is over, in one message with its state.
    fn task_end(&self, state: TaskState) -> Result<Box<RawValue>, MountError> {
        let missing = |what| self.malformed("task", &format!("it has no {what}"));
        match state.status {
            TaskStatus::Completed => state
                .result
                .filter(|result| ResultKind::of(result) == ResultKind::Final)
                .ok_or_else(|| missing("result")),
            TaskStatus::Cancelled => {
                let message = "it has cancelled the task".to_owned();
                Err(self.refused(ServerRefusal::malformed(message)))
            }
            TaskStatus::Failed | TaskStatus::Working | TaskStatus::InputRequired => {
                Err(state.error.map_or_else(|| missing("error"), |error| self.refused(error)))
            }
        }
    }

    /// Asks for the result of a task, once. It comes when the task is over.
    fn ask_result(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
    ) -> Result<(), MountError> {
        let kind = CallRequest::TaskResult;
        if pending.requests.values().any(|it| *it == kind) {
            return Ok(());
        }
        let params = pending.task.as_ref().map(CallTask::params).unwrap_or_default();
        self.ask_task(running, pending, (kind, params))
    }

    /// Makes a request about a task, for which the server has as long as for a call.
    pub(super) fn ask_task(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        (kind, mut params): (CallRequest, ServerParams),
    ) -> Result<(), MountError> {
        let method = match kind {
            CallRequest::Call | CallRequest::TaskCall => return Ok(()),
            CallRequest::TaskGet => "tasks/get",
            CallRequest::TaskUpdate => "tasks/update",
            CallRequest::TaskResult => "tasks/result",
        };
        let number = self.shared.number();
        let line = running.era.request(number, method, &mut params);
        self.send(running, pending, (number, kind, line))?;
        if kind != CallRequest::TaskGet {
            self.prolong(pending);
        }
        Ok(())
    }

    /// The call has its time from the next question about its task on, as long as that may take.
    fn prolong(&self, pending: &mut PendingCall) {
        let Some(task) = &pending.task else { return };
        let next = task.poll_at.unwrap_or_else(Instant::now);
        let until = next + self.shared.settings.call_timeout;
        pending.until = pending.until.max(until).min(task.ends);
    }

    /// Asks about the tasks that it is time to ask about.
    pub(super) fn poll_tasks(&self, running: &mut RunningServer, now: Instant) {
        let is_due = |pending: &PendingCall| {
            pending.task.as_ref().and_then(|task| task.poll_at).is_some_and(|at| at <= now)
        };
        let due = running.pending.extract_if(.., |_, pending| is_due(pending));
        let due: Vec<PendingCall> = due.map(|(_, pending)| pending).collect();
        for mut pending in due {
            let Some(task) = &mut pending.task else { continue };
            task.poll_at = None;
            let params = task.params();
            let asked = match self.ask_task(running, &mut pending, (CallRequest::TaskGet, params)) {
                Err(MountError::NotReading { .. }) => {
                    pending.task.iter_mut().for_each(|task| task.on_silence(now));
                    Ok(None)
                }
                asked => asked.map(|()| None),
            };
            self.go_on(running, pending, asked);
        }
    }
}

/// The server has no more to say about the task than its result.
fn task_is_over(pending: &mut PendingCall) {
    if let Some(task) = &mut pending.task {
        task.poll_at = None;
    }
}

impl RunningServer {
    /// The call that the server runs as this task.
    pub(super) fn call_of_task(&self, id: &str) -> Option<u64> {
        let is_it = |pending: &PendingCall| pending.task.as_ref().is_some_and(|task| task.is(id));
        self.pending.iter().find(|(_, pending)| is_it(pending)).map(|(call, _)| *call)
    }
}

impl PendingCall {
    /// Tells the caller what the server says of a task, unless it tells progress by itself.
    fn tell_status(&mut self, message: Option<String>) {
        let news = self.task.as_mut().and_then(|task| task.news(message));
        let (Some((number, message)), false) = (news, self.has_progress) else { return };
        if let Some(progress) = &self.call.channels.progress {
            let mut members = ExactObject::default();
            members.insert("progress", ExactJson::of(&number));
            members.insert("message", ExactJson::Text(message));
            // A caller that is behind does without.
            let _ = progress.try_send(CallNews::Progress(members));
        }
    }
}
