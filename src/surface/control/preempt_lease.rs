//! `preempt_lease`: ends whatever lease a session has, at once; for operators.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::control::Preempted;

/// The tool.
#[derive(Debug)]
pub struct PreemptLease;

/// The parameters of `preempt_lease`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    session: String,
}

impl Tool for PreemptLease {
    const NAME: &'static str = "preempt_lease";
    const TITLE: &'static str = "End a lease";
    const DESCRIPTION: &'static str = "Ends the lease of a session at once, whoever holds it.";
    const ACCESS: Access = Access::Operate;
    const DESTRUCTIVE: bool = true;

    type Parameters = Parameters;
    type Result = Preempted;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<Preempted>, SurfaceError> {
        let permit = call.take_permit()?;
        let session = call.session(Some(&parameters.session))?;
        let ended = session.preempt(&permit, call.standing.caller.name()).await?;
        let text = if ended { "the lease was ended" } else { "nobody held the lease" };
        let session = session.id().to_string();
        Ok(Answer { result: Preempted { session, ended }, text: text.to_owned() })
    }
}
