//! The output of `install --skills`: a line per skill for people, an item per skill for programs.

use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::install::hookup::Manner;
use crate::cli::install::place::Surroundings;
use crate::cli::install::skills::{Placed, Shelf, SkillFile};
use crate::cli::install::{report, said, word};
use crate::cli::output::Report;
use crate::core::code::Code;

/// Every skill's text, each below its file name.
pub fn printed_skills(shelves: &[Shelf], around: &Surroundings) -> Report {
    let (mut texts, mut items) = (Vec::new(), Vec::new());
    for shelf in shelves {
        for SkillFile { skill, file, text } in shelf.files() {
            texts.push(format!("{}:\n{text}", around.shown(&file)));
            let client = shelf.client.map(|client| client.name);
            items.push(json!({"client": client, "skill": skill, "file": file, "text": text}));
        }
    }
    report("skills", items, texts.join("\n"), Exit::Done)
}

/// The result for each skill.
pub fn told_skills(placed: &[Placed], manner: Manner, around: &Surroundings) -> Report {
    let items = placed.iter().map(|placed| placed.item(manner)).collect();
    let lines: Vec<_> = placed.iter().map(|placed| placed.line(manner, around)).collect();
    let failed = placed.iter().any(|placed| placed.result.is_err());
    report("skills", items, lines.join("\n"), if failed { Exit::Failed } else { Exit::Done })
}

impl Placed {
    /// The result for programs.
    fn item(&self, manner: Manner) -> Value {
        let client = self.client.map(|client| client.name);
        match &self.result {
            Ok(deed) => json!({
                "client": client,
                "skill": self.skill,
                "result": word(*deed),
                "dry_run": manner == Manner::Tell,
                "file": self.file,
            }),
            Err(problem) => json!({
                "client": client,
                "skill": self.skill,
                "result": "failed",
                "file": self.file,
                "error": problem.to_string(),
                "error_code": Code::ClientConfig.as_str(),
                "hint": Code::ClientConfig.advice(),
            }),
        }
    }

    /// The result for people.
    fn line(&self, manner: Manner, around: &Surroundings) -> String {
        let client = self.client.map(|client| format!("{}: ", client.name)).unwrap_or_default();
        let file = around.shown(&self.file);
        match &self.result {
            Ok(deed) => format!("{client}{} {file}", said(*deed, manner)),
            Err(problem) => {
                let (code, advice) = (Code::ClientConfig.as_str(), Code::ClientConfig.advice());
                format!("{client}{file} is left as it is: {problem} ({code})\n{advice}")
            }
        }
    }
}
