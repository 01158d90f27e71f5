//! `why`: explains an error code, without a daemon.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_codes;
use crate::cli::failure::CliFailure;
use crate::cli::hint::advice as advised;
use crate::cli::output::CommandReport;
use crate::core::code::Code;
use crate::core::nearest::nearest_of;
use crate::core::policy::decision::DecisionId;
use crate::wire::status::Explained;

/// Explain an error code and what to do about it
#[derive(Debug, Args)]
pub struct WhyCommand {
    /// The code, such as lease_held
    #[arg(add = ArgValueCompleter::new(offer_codes))]
    code: String,
}

impl WhyCommand {
    pub fn run(self) -> Result<CommandReport, CliFailure> {
        let Some(code) = Code::parse(&self.code) else {
            if self.code.parse::<DecisionId>().is_ok() {
                let why = format!(
                    "`{0}` is no code; to explain a decision, run: termgate policy explain {0}",
                    self.code
                );
                return Err(CliFailure::Usage(why));
            }
            let codes = || Code::ALL.iter().map(|code| code.as_str());
            let advice = match nearest_of(&self.code, codes(), 1).first() {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("there are: {}", codes().collect::<Vec<_>>().join(", ")),
            };
            return Err(CliFailure::Usage(format!("unknown code `{}`; {advice}", self.code)));
        };
        let (meaning, advice) = (code.meaning(), advised(code));
        let explained = Explained {
            code: code.as_str().to_owned(),
            meaning: meaning.to_owned(),
            advice: advice.to_owned(),
        };
        let text = format!("{}: {meaning} {advice}", code.as_str());
        Ok(CommandReport::new(json!(explained), text))
    }
}
