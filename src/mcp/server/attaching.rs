//! The requests of attached people: attach, input, size, take over and hand back.
//!
//! The session decides who may write. This module finds the person and asks for a permit.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode, JsonObject, RequestId};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::frame::delta::{Lane, View};
use crate::core::ids::PrincipalId;
use crate::core::policy::denial::Denial;
use crate::core::policy::{Permit, PermittedAct, Standing, decide_operate};
use crate::mcp::attach::{
    ATTACH_METHOD, AttachedPerson, HAND_BACK_METHOD, INPUT_BYTES_MAX, INPUT_METHOD, SIZE_METHOD,
    TAKE_OVER_METHOD,
};
use crate::mcp::error::said;
use crate::mcp::observe::{Observation, ObservationEnd};
use crate::mcp::server::Server;
use crate::session::command::{Accepted, TypedInput};
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::registry::silent::Known;
use crate::surface::argument::read;
use crate::surface::call::{find_session, note_touched, seen_known};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::writing::{fingerprint, idempotency_key};
use crate::wire::attach::{
    AttachEnd, AttachRequest, Detached, HandedBack, InputRequest, KeyboardRequest, SizeRequest,
    SizeResult, TakenOver, TypedResult,
};
use crate::wire::lease::LeaseWire;

impl Server {
    /// Handles the requests of attached people; other methods are unknown.
    pub(super) async fn for_people(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let standing = self.standing(&context.meta);
        if decide_operate(&standing).is_err() {
            return Err(unknown_method(&request.method));
        }
        let CustomRequest { method, params, .. } = request;
        match method.as_str() {
            ATTACH_METHOD => self.attach(parameters(params)?, context, standing).await,
            INPUT_METHOD => self.type_in(parameters(params)?, context, standing).await,
            SIZE_METHOD => self.make_room(parameters(params)?, context, standing).await,
            TAKE_OVER_METHOD => self.take_over(parameters(params)?, context, standing).await,
            HAND_BACK_METHOD => self.hand_back(parameters(params)?, context).await,
            unknown => Err(unknown_method(unknown)),
        }
    }

    async fn attach(
        &self,
        open: AttachRequest,
        context: RequestContext<RoleServer>,
        standing: Standing,
    ) -> Result<CustomResult, ErrorData> {
        let turn = Self::turn_come(&context).await;
        let daemon = self.shared.gateway.daemon();
        let session = match &open.session {
            Some(_) => find_session(&daemon.sessions, &standing, open.session.as_deref()),
            None => self.latest(&standing),
        }?;
        let _place = self.shared.subscriptions.enter(&standing)?;
        // People keep the name from their login, whatever their client is called.
        let mut caller = self.standing.caller.clone();
        if self.people.is_at(session.id()) {
            // A second attach is another person, so that it neither types nor leaves for the first.
            let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
            caller.principal = PrincipalId::Connection(number);
        }
        let names = &self.shared.names;
        let attached = Arc::new(AttachedPerson::new(
            (daemon.sessions.clone(), session.clone()),
            &caller,
            names,
            &open,
        ));
        daemon.principals.call_also(attached.person.name());
        attached.note_attached();
        note_touched(&self.touched, &session);
        let mut detaches = session.live().detaches();
        let _seat = self.people.sit(context.id.clone(), attached);
        // Later input must not wait until the person leaves.
        drop(turn);
        let observation = Observation {
            session: session.clone(),
            connection: Arc::clone(&self.connection),
            share: daemon.turns.share_of(&standing.caller.tenant),
            request: context.id.clone(),
            lane: self.lane(&context.extensions),
            tagged: Self::is_modern(&context),
            view: View { lane: Lane::Foreground, top: 0, rows: None, input_modes: true },
            since: None,
            pause: Duration::ZERO,
            until_exit: true,
        };
        let clock = daemon.sessions.clock();
        let ended = |ended| {
            let (session, name) = (session.id().to_string(), session.name().to_string());
            result(&AttachEnd { session, name, ended })
        };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            () = self.connection.ended.cancelled() => Ok(ended(Detached::Closed)),
            _ = detaches.changed() => Ok(ended(Detached::Detached)),
            how = observation.run(&self.shared.fan_outs, clock) => Ok(match how {
                ObservationEnd::Exited => ended(Detached::Exited),
                ObservationEnd::Removed | ObservationEnd::Dropped => ended(Detached::Closed),
            }),
        }
    }

    /// The newest session whose program runs.
    fn latest(&self, standing: &Standing) -> Result<Session, SurfaceError> {
        let daemon = self.shared.gateway.daemon();
        let seen = daemon
            .sessions
            .all()
            .into_iter()
            .filter(|session| standing.sees(session) && session.frame().exit.value.is_none());
        let latest = seen.max_by_key(|session| session.about().created_at);
        latest.ok_or_else(|| {
            match seen_known(&daemon.sessions, standing).iter().any(Known::is_silent) {
                true => SessionError::Silent.into(),
                false => SurfaceError::NoSession,
            }
        })
    }
}

impl Server {
    async fn type_in(
        &self,
        input: InputRequest<RequestId>,
        context: RequestContext<RoleServer>,
        standing: Standing,
    ) -> Result<CustomResult, ErrorData> {
        let invalid = |problem: String| SurfaceError::argument("data", problem);
        let bytes = STANDARD.decode(&input.data).map_err(|error| invalid(error.to_string()))?;
        if bytes.len() > INPUT_BYTES_MAX {
            let problem = format!("{} bytes are more than {INPUT_BYTES_MAX}", bytes.len());
            return Err(invalid(problem).into());
        }
        let (attached, accepted) = self.person(&input.attach, &context).await?;
        let key = idempotency_key(input.idempotency_key.as_deref(), fingerprint(&bytes))?;
        let typed = TypedInput { bytes, key, view: input.resize.then(|| attached.room()) };
        let typing = async |permit: Permit| {
            let typing = attached.session.type_in(&permit, attached.person.clone(), typed);
            in_turn(typing, accepted).await
        };
        let written = self.permitted("typing", &attached, &standing, typing).await?;
        let outcome = written.outcome;
        Ok(result(&TypedResult {
            written: outcome.written,
            queued_bytes: outcome.queued,
            discarded: outcome.discarded,
            you: attached.person.name().to_string(),
        }))
    }

    async fn make_room(
        &self,
        room: SizeRequest<RequestId>,
        context: RequestContext<RoleServer>,
        standing: Standing,
    ) -> Result<CustomResult, ErrorData> {
        let (attached, accepted) = self.person(&room.attach, &context).await?;
        attached.set_room(room.rows, room.cols);
        // The terminal of a view-only person does not resize the session.
        if let Ok(permit) = self.permit_for(&attached, &standing, PermittedAct::Resize) {
            let (person, room) = (attached.person.clone(), attached.room());
            in_turn(attached.session.resize_for_person(&permit, person, room), accepted).await?;
        }
        Ok(result(&SizeResult { you: attached.person.name().to_string() }))
    }

    async fn take_over(
        &self,
        which: KeyboardRequest<RequestId>,
        context: RequestContext<RoleServer>,
        standing: Standing,
    ) -> Result<CustomResult, ErrorData> {
        let (attached, accepted) = self.person(&which.attach, &context).await?;
        let (person, room) = (attached.person.clone(), attached.room());
        let taking = async |permit: Permit| {
            in_turn(attached.session.take_over(&permit, person, Some(room)), accepted).await
        };
        self.permitted("take_over", &attached, &standing, taking).await?;
        let lease = LeaseWire::from(&*attached.session.frame().lease.value);
        Ok(result(&TakenOver { lease, you: attached.person.name().to_string() }))
    }

    async fn hand_back(
        &self,
        which: KeyboardRequest<RequestId>,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let (attached, accepted) = self.person(&which.attach, &context).await?;
        let had = in_turn(attached.session.hand_back(attached.person.clone()), accepted).await?;
        Ok(result(&HandedBack { handed_back: had }))
    }

    /// The person that a request of this connection attached, once the current request has its turn.
    async fn person(
        &self,
        attach: &RequestId,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Arc<AttachedPerson>, Accepted), ErrorData> {
        let turn = Self::turn_come(context).await;
        let accepted = turn.map_or_else(Accepted::nothing, Accepted::guard);
        let unknown =
            || SurfaceError::argument("attach", "no attach of this connection has this id");
        Ok((self.people.find(attach).ok_or_else(unknown)?, accepted))
    }

    /// Does what takes the right to type, and has a refusal recorded.
    async fn permitted<T>(
        &self,
        act: &'static str,
        attached: &AttachedPerson,
        standing: &Standing,
        doing: impl AsyncFnOnce(Permit) -> Result<T, SurfaceError>,
    ) -> Result<T, ErrorData> {
        let done = match self.permit_for(attached, standing, PermittedAct::Type) {
            Ok(permit) => doing(permit).await,
            Err(denied) => Err(denied),
        };
        if let Err(error) = &done {
            let person = Standing { caller: attached.person.clone(), ..standing.clone() };
            self.shared.gateway.note_person_refused(&person, &attached.session, act, error);
        }
        Ok(done?)
    }

    fn permit_for(
        &self,
        attached: &AttachedPerson,
        standing: &Standing,
        act: PermittedAct,
    ) -> Result<Permit, SurfaceError> {
        let daemon = self.shared.gateway.daemon();
        let permit = if attached.view_only {
            Err(Denial::Watching)
        } else {
            // Each seat of a connection is a principal of its own.
            let person = Standing { caller: attached.person.clone(), ..standing.clone() };
            daemon.switchboard.decide(&person, act, Some(&attached.session), daemon.now())
        };
        Ok(permit?)
    }
}

/// Asks a session, and passes the turn as soon as the request is in the session's queue.
async fn in_turn<T>(
    asking: impl Future<Output = Result<T, SessionError>>,
    accepted: Accepted,
) -> Result<T, SurfaceError> {
    let mut asking = std::pin::pin!(asking);
    let first = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
    drop(accepted);
    let answer = match first {
        Poll::Ready(answer) => answer,
        Poll::Pending => asking.await,
    };
    Ok(answer?)
}

/// A result of one of our types, which always serialize.
pub(super) fn result(of: &impl Serialize) -> CustomResult {
    CustomResult::new(json!(of))
}

/// Parses the parameters of a request.
pub(super) fn parameters<T: DeserializeOwned>(params: Option<Value>) -> Result<T, ErrorData> {
    let params = match params {
        Some(Value::Object(params)) => params,
        None => JsonObject::new(),
        Some(other) => {
            return Err(ErrorData::invalid_params(format!("{other:.60} is not an object"), None));
        }
    };
    Ok(read(params)?)
}

pub(super) fn unknown_method(method: &str) -> ErrorData {
    let message = said(format!("no method is named `{method}`"));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
