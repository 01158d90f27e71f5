//! Calls of mounts while they run: what their servers tell and ask, and how a call waits for a client that makes it again
//! with its answers.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientCapabilities, JsonObject, ProgressToken};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::core::code::Code;
use crate::core::policy::Standing;
use crate::core::policy::approvals::Fingerprint;
use crate::gateway::CallOutcome;
use crate::mcp::answer_memory::AnswerSpace;
use crate::mcp::call::InputResponses;
use crate::mcp::call_result::RelayedError;
use crate::mcp::elicitation::Returned;
use crate::mcp::era::Era;
use crate::mcp::server::Server;
use crate::mcp::server::call_lane::CallLane;
use crate::mcp::server::counted::Counted;
use crate::mcp::server::questions::{ClientAsker, ClientWay};
use crate::mount::asking::{AskAnswer, AskRefusal, CallAsker, OPEN_MAX, ServerQuestion};
use crate::mount::error::MountError;
use crate::mount::handle::{CallChannels, CallNews};
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::log::LogLevel;
use crate::mount::registry::MountedTool;
use crate::session::command::Accepted;
use crate::session::request_order::RequestTurn;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::person::ClientPerson;
use crate::surface::tool::{ToolAnswer, ToolEntry};

/// How many notifications of a mounted server wait for the client; further ones are dropped.
const NEWS_AHEAD: usize = 16;

/// How many calls of one client wait until it makes them again. A further one takes the place of the oldest.
const PARKED_MAX: usize = 16;

/// How long a client may bring back what a call came with. The call itself may end before.
const STATE_TTL: Duration = Duration::from_secs(3_600);

type Calling = Pin<Box<dyn Future<Output = Result<MountedAnswer, SurfaceError>> + Send>>;

/// What a server has answered, and the memory for it until it is sent.
#[derive(Debug)]
pub(super) struct MountedAnswer {
    pub(super) answer: ToolAnswer,
    pub(super) space: AnswerSpace,
}

/// A call of a mount as its client makes it.
pub(super) struct MountedRequest {
    pub(super) entry: Arc<ToolEntry>,
    /// The tool of the mount that it is.
    pub(super) tool: MountedTool,
    pub(super) standing: Standing,
    pub(super) arguments: CallArguments,
    pub(super) era: Era,
    /// What the client declared.
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) person: ClientPerson,
    pub(super) returned: Returned,
    /// How long the call may wait for an approval, if its client says so.
    pub(super) approval_wait: Option<Duration>,
    /// Where the client wants to be told how far the call has come.
    pub(super) progress: Option<ProgressToken>,
    /// From which level on it wants the server's log messages.
    pub(super) log: Option<LogLevel>,
    /// What of the client's `_meta` is for the server.
    pub(super) meta: JsonObject,
    pub(super) turn: Option<RequestTurn>,
    /// Whether the server may ask the client meanwhile.
    pub(super) may_ask: bool,
}

/// How a call of a mount is answered.
pub(super) enum MountedEnd {
    Ended(Result<MountedAnswer, SurfaceError>, Counted),
    /// The client is to have links opened before it makes the call again.
    Links(RelayedError),
    /// The client is to make the call again with its answers to these questions.
    Asks {
        questions: ExactObject,
        state: String,
    },
}

/// A call of a mount that runs. If it is dropped, it is given up.
struct MountedCall {
    calling: Calling,
    counted: Counted,
    told: mpsc::Receiver<CallNews>,
    /// What the server asks.
    asked: mpsc::Receiver<ServerQuestion>,
    asker: Arc<ClientAsker>,
    asking: JoinSet<()>,
    /// What the client is to answer with its next call.
    returning: mpsc::Receiver<ServerQuestion>,
    /// What it is to be asked with the next result, by name.
    questions: ExactObject,
    /// Where the answers go to that, or to what it was asked with the last result.
    open: BTreeMap<String, oneshot::Sender<AskAnswer>>,
    /// How many questions had a name.
    named: u64,
}

/// What happens during a call.
enum MountedStep {
    Ended(Result<MountedAnswer, SurfaceError>),
    Told(CallNews),
    /// The client is to be asked all this with a result.
    Asks(ExactObject),
}

impl MountedCall {
    /// Waits for what happens next. Cancelling this loses nothing.
    async fn next(&mut self) -> MountedStep {
        loop {
            if self.has_all() {
                return MountedStep::Asks(std::mem::take(&mut self.questions));
            }
            tokio::select! {
                biased;
                Some(question) = self.asked.recv() => {
                    let asker = Arc::clone(&self.asker);
                    self.asking.spawn(async move { asker.ask(question).await });
                }
                Some(_) = self.asking.join_next() => {}
                Some(news) = self.told.recv() => return MountedStep::Told(news),
                Some(question) = self.returning.recv() => self.add(question),
                answer = &mut self.calling => return MountedStep::Ended(answer),
            }
        }
    }

    /// Waits for something else while the call goes on: an answer that nobody takes would have no memory.
    async fn going_on(&mut self, other: impl Future<Output = ()>) {
        let mut other = pin!(other);
        tokio::select! {
            biased;
            () = &mut other => return,
            answer = &mut self.calling => self.calling = Box::pin(ready(answer)),
        }
        other.await;
    }

    /// Whether the client is to be asked, and all that the server has asked together is judged.
    fn has_all(&mut self) -> bool {
        self.open.retain(|name, reply| {
            if reply.is_closed() {
                // The server has taken it back.
                self.questions.remove(name);
            }
            !reply.is_closed()
        });
        let is_judged = self.asked.is_empty() && self.asking.len() == self.open.len();
        !self.questions.is_empty() && is_judged
    }

    /// Adds a question to those of the next result.
    fn add(&mut self, question: ServerQuestion) {
        let ServerQuestion { ask, params, reply, later: _ } = question;
        self.named += 1;
        let name = format!("question-{}", self.named);
        let mut asked = ExactObject::default();
        asked.insert("method", ExactJson::of(&ask.method()));
        asked.insert("params", ExactJson::Object(params));
        self.questions.insert(&name, ExactJson::Object(asked));
        self.open.insert(name, reply);
    }

    /// Takes the answers that the client brings.
    fn take(&mut self, mut answers: InputResponses) {
        for (name, reply) in std::mem::take(&mut self.open) {
            let answer = answers.remove(&name).filter(|it| it.get().starts_with('{'));
            let missing = || AskRefusal::refused("the client brought no answer");
            // The server may not wait any more.
            let _ = reply.send(answer.ok_or_else(missing));
        }
    }

    /// Has the call go on by itself, until its client has left.
    fn run_aside(&mut self, left: CancellationToken) {
        let nothing = Box::pin(std::future::pending());
        let calling = std::mem::replace(&mut self.calling, nothing);
        let running = AbortOnDropHandle::new(tokio::spawn(async move {
            let gone = || SurfaceError::Internal("the client has left".to_owned());
            left.run_until_cancelled(calling).await.unwrap_or_else(|| Err(gone()))
        }));
        let failed = |_| SurfaceError::Internal("the call failed inside the daemon".to_owned());
        self.calling =
            Box::pin(async move { running.await.unwrap_or_else(|error| Err(failed(error))) });
    }
}

/// The calls of one client that wait until it makes them again, by number.
#[derive(Default)]
pub(super) struct ParkedCalls(Mutex<ParkedTable>);

#[derive(Default)]
struct ParkedTable {
    last: u64,
    calls: BTreeMap<u64, MountedCall>,
}

impl fmt::Debug for ParkedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls").finish_non_exhaustive()
    }
}

impl ParkedCalls {
    fn add(&self, call: MountedCall) -> u64 {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        let oldest = if table.calls.len() < PARKED_MAX { None } else { table.calls.pop_first() };
        table.calls.insert(number, call);
        drop(table);
        // What it lets go is none of the table's.
        drop(oldest);
        number
    }

    fn take(&self, number: u64) -> Option<MountedCall> {
        self.lock().calls.remove(&number)
    }

    fn lock(&self) -> MutexGuard<'_, ParkedTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Makes a call of a mount, or goes on with one that waits for the answers that the client brings.
    pub(super) async fn call_mount(&self, request: MountedRequest) -> MountedEnd {
        let (progress, is_told) = (request.progress.clone(), request.log.is_some());
        let of = self.fingerprint(&request);
        let name = Arc::clone(&request.entry.name);
        let mut call = match self.call_of(request, of.as_ref()) {
            Ok(call) => call,
            Err(error) => return MountedEnd::Ended(Err(error), Counted::of(&self.shared, name)),
        };
        let mount = call.asker.tool.mount.clone();
        let is_told = is_told || progress.is_some();
        let lane = is_told.then(|| CallLane::of(&self.connection));
        let tell = async |news| {
            if let Some(lane) = &lane {
                lane.relay(&mount, progress.as_ref(), news).await;
            }
        };
        loop {
            match call.next().await {
                MountedStep::Told(news) => call.going_on(tell(news)).await,
                MountedStep::Asks(questions) => {
                    call.run_aside(self.connection.ended.clone());
                    let number = self.parked.add(call);
                    let judge = &self.shared.gateway.daemon().judge;
                    let state = of.map(|of| judge.seal_question(number, &of, STATE_TTL));
                    let state = state.unwrap_or_default();
                    return MountedEnd::Asks { questions, state };
                }
                MountedStep::Ended(answer) => {
                    while let Ok(news) = call.told.try_recv() {
                        tell(news).await;
                    }
                    let MountedCall { mut counted, asker, .. } = call;
                    let wanted = answer.as_ref().err().and_then(SurfaceError::wanted_links);
                    if let Some((message, data)) = wanted
                        && let Some(error) = asker.links(message, data).await
                    {
                        counted.outcome = CallOutcome::Failed(Code::UpstreamError);
                        return MountedEnd::Links(error);
                    }
                    return MountedEnd::Ended(answer, counted);
                }
            }
        }
    }

    /// What tells a call apart whose client may bring something back.
    fn fingerprint(&self, request: &MountedRequest) -> Option<Fingerprint> {
        let MountedRequest { entry, standing, arguments, era, capabilities, returned, .. } =
            request;
        let ClientCapabilities { elicitation, sampling, roots, .. } = &**capabilities;
        let can_be_asked = elicitation.is_some() || sampling.is_some() || roots.is_some();
        let brings = *era == Era::Modern && (can_be_asked || returned.state.is_some());
        brings.then(|| self.shared.gateway.fingerprint(entry, &standing.caller, arguments))
    }

    /// The call that a request begins, or whose answers it brings.
    fn call_of(
        &self,
        request: MountedRequest,
        of: Option<&Fingerprint>,
    ) -> Result<MountedCall, SurfaceError> {
        let gateway = &self.shared.gateway;
        let (Some(of), Some(state)) = (of, &request.returned.state) else {
            return Ok(self.begun(request));
        };
        let Some(number) = gateway.daemon().judge.opened_question(state, of) else {
            let (caller, made) = (&request.standing.caller, (&request.arguments, state.as_str()));
            if !gateway.returns_approval(&request.entry, caller, made) {
                return Err(not_returned());
            }
            return Ok(self.begun(request));
        };
        gateway.admit(&request.standing)?;
        let mut call = self.parked.take(number).ok_or_else(not_returned)?;
        call.take(request.returned.answers.unwrap_or_default());
        Ok(call)
    }

    /// Begins a call.
    fn begun(&self, request: MountedRequest) -> MountedCall {
        let MountedRequest { entry, standing, arguments, era, person, turn, .. } = request;
        let (questions, asked) = mpsc::channel(OPEN_MAX);
        let (news, told) = mpsc::channel(NEWS_AHEAD);
        let (to_return, returning) = mpsc::channel(OPEN_MAX);
        let roots = request.capabilities.roots.as_ref();
        let tells_roots = roots.is_some_and(|it| it.list_changed == Some(true));
        let asker = CallAsker { client: self.connection.id, questions, tells_roots };
        let channels = CallChannels {
            meta: request.meta,
            progress: request.progress.map(|_| news.clone()),
            log: request.log.map(|level| (level, news)),
            asker: request.may_ask.then_some(asker),
        };
        let asker = Arc::new(ClientAsker {
            shared: Arc::clone(&self.shared),
            standing: standing.clone(),
            tool: request.tool.clone(),
            capabilities: request.capabilities,
            way: match era {
                Era::Legacy => ClientWay::Connected(
                    Arc::clone(&self.connection),
                    Arc::clone(&self.after_questions),
                ),
                Era::Modern => ClientWay::Returning(to_return),
            },
        });
        let counted = Counted::of(&self.shared, Arc::clone(&entry.name));
        let (shared, connection) = (Arc::clone(&self.shared), Arc::clone(&self.connection));
        let mount = request.tool.mount.name().clone();
        let mut call = self.new_call(standing, person, channels);
        call.approval_wait = request.approval_wait;
        let calling = Box::pin(async move {
            if let Some(turn) = turn {
                turn.wait().await;
                call.accepted = Accepted::guard(turn);
            }
            let answer = shared.gateway.call(&entry, call, arguments).await?;
            let bytes = match &answer {
                ToolAnswer::Relayed(result) => result.get().len(),
                ToolAnswer::Own(_) | ToolAnswer::Watching(_) => 0,
            };
            let space = shared.answers.hold((connection.id, &connection.gone), bytes);
            let space = space.ok_or(MountError::Unread { mount })?;
            Ok(MountedAnswer { answer, space })
        });
        MountedCall {
            calling,
            counted,
            told,
            asked,
            asker,
            asking: JoinSet::new(),
            returning,
            questions: ExactObject::default(),
            open: BTreeMap::new(),
            named: 0,
        }
    }
}

/// A call brings back what is not of it, or what it has brought back before.
fn not_returned() -> SurfaceError {
    let problem =
        "is not of this call and connection, was used, or has expired; make the call without it";
    SurfaceError::argument("requestState", problem)
}
