//! The requests beside those of the protocol: observe a session, and for operators stop or upgrade the daemon.

use std::sync::Arc;

use rmcp::model::{CustomRequest, CustomResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::core::ids::Watermark;
use crate::core::policy::{Standing, decide_operate};
use crate::gateway::recording::BegunCall;
use crate::mcp::observe::{Observation, ObservationEnd};
use crate::mcp::request_class::STOP_METHOD;
use crate::mcp::server::Server;
use crate::mcp::server::attaching::{parameters, result, unknown_method};
use crate::mcp::settings::{self, FOR_GOOD_METHOD, RELOAD_METHOD, SettingsAsked, SettingsError};
use crate::mcp::upgrade::{UPGRADE_METHOD, ask};
use crate::surface::call::find_session;
use crate::surface::judge::may_decide;
use crate::wire::attach::ObserveRequest;
use crate::wire::status::{Stopping, UnendedSession, Upgrading};

impl Server {
    /// Handles operators' requests about the daemon, and passes all others to [`Server::for_people`].
    pub(super) async fn for_operators(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        if !matches!(method, STOP_METHOD | UPGRADE_METHOD | RELOAD_METHOD | FOR_GOOD_METHOD) {
            return self.for_people(request, context).await;
        }
        let standing = self.standing(&context.meta);
        if decide_operate(&standing).is_err() {
            return Err(unknown_method(method));
        }
        // Other requests need not wait until the sessions have ended or the program was tested.
        drop(Self::turn(&context));
        let gateway = &self.shared.gateway;
        if method == STOP_METHOD {
            gateway.begin_request(&standing, "stop").conclude(None);
            self.shared.stop.cancel();
            let unended = self.shared.gateway.daemon().sessions.ended().await;
            let unended = unended.iter().map(|one| UnendedSession {
                session: one.session.to_string(),
                name: one.name.to_string(),
                what: one.what.clone(),
            });
            return Ok(result(&Stopping { stopping: true, unended: unended.collect() }));
        }
        if method == RELOAD_METHOD {
            let begun = gateway.begin_request(&standing, "reload");
            return concluded(
                begun,
                settings::ask(&self.shared.operators.settings, SettingsAsked::Reload).await,
            );
        }
        if method == FOR_GOOD_METHOD {
            return self.for_good(&standing, request.params).await;
        }
        let begun = gateway.begin_request(&standing, "upgrade");
        let upgrade = match ask(&self.shared.operators.upgrades).await {
            Ok(upgrade) => upgrade,
            Err(error) => {
                begun.fail(&error.to_string());
                return Err(error.into());
            }
        };
        begun.conclude(None);
        let pid = std::process::id();
        Ok(result(&Upgrading { from: upgrade.from.to_owned(), to: upgrade.to, pid }))
    }
}

impl Server {
    /// Lets a call that waits pass for good, or shows by which rule.
    async fn for_good(
        &self,
        standing: &Standing,
        params: Option<Value>,
    ) -> Result<CustomResult, ErrorData> {
        let ForGoodRequest { approval_id, write } = parameters(params)?;
        let gateway = &self.shared.gateway;
        let daemon = gateway.daemon();
        let waiting = daemon.judge.waiting(&daemon.sessions).into_iter();
        let mut may = waiting.filter(|call| may_decide(&daemon.sessions, standing, &call.request));
        let call = may.find(|call| call.id.to_string() == approval_id).map(Box::new);
        let call = call.ok_or(SettingsError::NoCall)?;
        let (id, session) = (call.id, call.request.session);
        let settings = &self.shared.operators.settings;
        let asked = |answer| SettingsAsked::ForGood { call, write, answer };
        if !write {
            return Ok(result(&settings::ask(settings, asked).await?));
        }
        let begun = gateway.begin_decision(standing, "approve_for_good", (id, session));
        concluded(begun, settings::ask(settings, asked).await)
    }
}

/// Records what became of a request about the configuration, and answers it.
fn concluded<T: Serialize>(
    begun: BegunCall,
    answer: Result<T, SettingsError>,
) -> Result<CustomResult, ErrorData> {
    match answer {
        Ok(done) => {
            begun.conclude(None);
            Ok(result(&done))
        }
        Err(error) => {
            begun.fail(&error.to_string());
            Err(error.into())
        }
    }
}

#[derive(Debug, Deserialize)]
struct ForGoodRequest {
    approval_id: String,
    #[serde(default)]
    write: bool,
}

impl Server {
    pub(super) async fn observe(
        &self,
        params: Option<Value>,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let parameters: ObserveRequest = parameters(params)?;
        let pause = parameters.pause()?;
        let standing = self.standing(&context.meta);
        self.shared.gateway.admit(&standing)?;
        let daemon = self.shared.gateway.daemon();
        let given = parameters.session.as_deref();
        let session = find_session(&daemon.sessions, &standing, given)?;
        let _place = self.shared.subscriptions.enter(&standing)?;
        // Other requests need not wait for an observation.
        drop(Self::turn(&context));
        let observation = Observation {
            session,
            connection: Arc::clone(&self.connection),
            share: daemon.turns.share_of(&standing.caller.tenant),
            request: context.id.clone(),
            lane: self.lane(&context.extensions),
            tagged: Self::is_modern(&context),
            view: parameters.view(),
            since: parameters.since.map(Watermark),
            pause,
            until_exit: false,
        };
        let session = observation.session.id().to_string();
        let clock = daemon.sessions.clock();
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            () = self.connection.ended.cancelled() => Ok(CustomResult::new(json!({}))),
            ended = observation.run(&self.shared.fan_outs, clock) => {
                Ok(match ended {
                    ObservationEnd::Removed | ObservationEnd::Exited => CustomResult::new(json!({"session": session})),
                    ObservationEnd::Dropped => CustomResult::new(json!({})),
                })
            }
        }
    }
}
