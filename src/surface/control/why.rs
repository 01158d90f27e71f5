//! `why`: what an error code means and what to do about it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::code::Code;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::control::Explained;

/// The tool.
#[derive(Debug)]
pub struct Why;

/// The parameters of `why`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// An error_code
    code: String,
}

impl Tool for Why {
    const NAME: &'static str = "why";
    const TITLE: &'static str = "Explain an error";
    const DESCRIPTION: &'static str = "What an error code means and what to do about it.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = Explained;

    async fn call(_call: Call, parameters: Parameters) -> Result<Answer<Explained>, SurfaceError> {
        let code = Code::parse(&parameters.code).ok_or_else(|| {
            let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
            let problem = format!("no such code; there are: {}", codes.join(", "));
            SurfaceError::argument("code", problem)
        })?;
        let (meaning, advice) = (code.meaning(), code.advice());
        let text = format!("{}: {meaning} {advice}", code.as_str());
        let (code, meaning, advice) = (code.as_str().into(), meaning.into(), advice.into());
        Ok(Answer { result: Explained { code, meaning, advice }, text })
    }
}
