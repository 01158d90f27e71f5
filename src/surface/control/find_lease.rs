//! `find_lease`: the id of the lease that the command line holds in a session; for operators.
//!
//! It is told to its holder alone: all connections at the operators' door of one user are one holder.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::control::FoundLease;

/// The tool.
#[derive(Debug)]
pub struct FindLease;

/// The parameters of `find_lease`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    session: String,
}

impl Tool for FindLease {
    const NAME: &'static str = "find_lease";
    const TITLE: &'static str = "Find your lease";
    const DESCRIPTION: &'static str = "Tells the id of the lease that the command line holds.";
    const ACCESS: Access = Access::Operate;
    const IDEMPOTENT: bool = true;

    type Parameters = Parameters;
    type Result = FoundLease;

    async fn call(
        mut call: Call,
        parameters: Parameters,
    ) -> Result<Answer<FoundLease>, SurfaceError> {
        let permit = call.take_permit()?;
        let session = call.session(Some(&parameters.session))?;
        let lease = session.command_lines_lease(&permit).await?;
        let lease_id = lease.map(|lease| lease.to_string());
        let text = match &lease_id {
            Some(lease) => format!("the command line holds lease {lease}"),
            None => "the command line holds no lease of this session".to_owned(),
        };
        Ok(Answer { result: FoundLease { session: session.id().to_string(), lease_id }, text })
    }
}
