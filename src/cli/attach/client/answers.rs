//! Sends requests to the daemon and handles the answers.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::attach::client::Desk;
use crate::cli::attach::notice::NoticeReason;
use crate::cli::attach::requests::{Answered, Purpose};
use crate::cli::attach::scrollback::Scrollback;
use crate::cli::attach::status::{Watching, person};
use crate::cli::failure::CliFailure;
use crate::transport::client::ClientError;
use crate::wire::rows::HistoryRows;

impl Desk<'_> {
    pub(super) fn ask_for_history(&mut self) -> Result<(), CliFailure> {
        let Some((start_row, count)) =
            self.carried.scrollback.as_mut().and_then(Scrollback::wanted)
        else {
            return Ok(());
        };
        self.ask_for_rows(Purpose::History, (start_row, count), "cells")
    }

    pub(super) fn ask_to_search(&mut self) -> Result<(), CliFailure> {
        let back = self.carried.scrollback.as_mut();
        if let Some(missed) = back.and_then(Scrollback::take_vain) {
            self.tell(missed, NoticeReason::NotFound);
        }
        match self.carried.scrollback.as_mut().and_then(Scrollback::searched_next) {
            Some(rows) => self.ask_for_rows(Purpose::Search, rows, "plain"),
            None => Ok(()),
        }
    }

    fn ask_for_rows(
        &mut self,
        asked: Purpose,
        (start_row, count): (u64, u64),
        format: &str,
    ) -> Result<(), CliFailure> {
        let arguments = json!({
            "session": self.view.session,
            "start_row": start_row,
            "count": count,
            "format": format,
        });
        let call = json!({"name": "read_history", "arguments": arguments});
        self.ask(asked, "tools/call", &call)
    }

    pub(super) fn ask(
        &mut self,
        asked: Purpose,
        method: &str,
        params: &Value,
    ) -> Result<(), CliFailure> {
        match self.requests.send(self.daemon.client(), asked, method, params) {
            // The same error also ends the attachment.
            Ok(()) | Err(ClientError::Closed) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn on_answer(&mut self, answered: Answered) -> Result<(), CliFailure> {
        let Answered { asked, answer } = answered;
        self.dirty = true;
        // Input after a lone Escape may have stayed unread meanwhile.
        self.flush_due = self.carried.chords.patience().map(|time| Instant::now() + time);
        match answer {
            Ok(answer) => self.on_success(asked, answer)?,
            // As in `ask`.
            Err(ClientError::Closed) => return Ok(()),
            Err(error) => {
                if let Purpose::Typing(number) = asked {
                    self.carried.unanswered.on_refused(number);
                }
                self.on_refusal(asked, &error);
            }
        }
        if asked == Purpose::Room {
            let news = self.room_told.on_answer(self.room());
            return self.tell_room(news);
        }
        Ok(())
    }

    fn on_success(&mut self, asked: Purpose, mut answer: Value) -> Result<(), CliFailure> {
        if let Some(me) = answer["you"].as_str() {
            me.clone_into(&mut self.me);
        }
        match asked {
            Purpose::Typing(number) => {
                self.on_keyboard();
                let queued = answer["queued_bytes"].as_u64().unwrap_or_default();
                let queued = usize::try_from(queued).unwrap_or(usize::MAX);
                if let Some(waits) = self.carried.unanswered.on_answer(number, queued) {
                    return self.ask_to_type(waits);
                }
            }
            Purpose::TakeOver => {
                self.on_keyboard();
                self.carried.taken_over.on_granted();
            }
            Purpose::HandBack if answer["handed_back"] == false => {
                self.tell("you do not have the keyboard", NoticeReason::Keyboard { mine: false });
            }
            Purpose::HandBack | Purpose::Room => {}
            Purpose::About => self.on_about(&answer["structuredContent"]),
            Purpose::FollowApprovals => return self.ask_for_approvals(),
            Purpose::Approvals => self.on_approvals(&answer["structuredContent"]),
            Purpose::Decide => self.on_decided(&answer),
            Purpose::Search => {
                let told = rows(&mut answer)?;
                let back = self.carried.scrollback.as_mut();
                if let Some(missed) = back.and_then(|back| back.take_searched(&told)) {
                    self.tell(missed, NoticeReason::NotFound);
                }
                self.ask_to_search()?;
                return self.ask_for_history();
            }
            Purpose::History => {
                let told = rows(&mut answer)?;
                let goes_on = self.carried.scrollback.as_mut().is_some_and(|back| back.take(&told));
                if goes_on {
                    return self.ask_for_history();
                }
            }
        }
        Ok(())
    }

    fn on_keyboard(&mut self) {
        self.read_only = None;
        self.notice.take_if(|notice| notice.is_refusal());
    }

    fn on_refusal(&mut self, asked: Purpose, error: &ClientError) {
        match (asked, error) {
            (
                Purpose::Typing(_) | Purpose::TakeOver,
                ClientError::Refused { data: Some(data), .. },
            ) => {
                return self.on_nothing_typed(&error.to_string(), data);
            }
            (Purpose::History | Purpose::Search, _) => self.carried.scrollback = None,
            // An older daemon knows no approvals.
            (Purpose::FollowApprovals | Purpose::Approvals, _) => return,
            (Purpose::About, _) if self.name.is_empty() => self.name.clone_from(&self.view.session),
            (
                Purpose::About
                | Purpose::Typing(_)
                | Purpose::TakeOver
                | Purpose::HandBack
                | Purpose::Room
                | Purpose::Decide,
                _,
            ) => {}
        }
        self.tell(error.to_string(), NoticeReason::News);
    }

    /// Shows why nothing was typed, as long as the reason holds, and what to do about it.
    fn on_nothing_typed(&mut self, message: &str, why: &Value) {
        match (why["error_code"].as_str(), why["details"]["held_by"].as_str()) {
            (Some("lease_held"), Some(by)) => {
                let prefix = self.carried.options.prefix;
                let text =
                    format!("not typed: {} has taken over, {prefix} t takes over", person(by));
                self.tell(text, NoticeReason::HeldBy(by.to_owned()));
            }
            (Some("read_only"), _) if !self.carried.options.view_only => {
                let protected = why["details"]["cause"] == "protected";
                self.read_only = match protected {
                    true => Some(Watching::Protected),
                    false => self.read_only.or(Some(Watching::ReadOnly)),
                };
                self.tell(format!("not typed: {message}"), NoticeReason::ReadOnly);
            }
            (_, _) => self.tell(format!("not typed: {message}"), NoticeReason::Refused),
        }
    }

    fn on_about(&mut self, list: &Value) {
        let session = &list["sessions"][0];
        session["name"].as_str().unwrap_or(&self.view.session).clone_into(&mut self.name);
        // Where others can be written to, the switch of this session is the one to use.
        self.read_only = match (&session["write_allowed"], &list["write_allowed"]) {
            (Value::Bool(false), Value::Bool(true)) => Some(Watching::Protected),
            (Value::Bool(false), _) => Some(Watching::ReadOnly),
            (_, _) => None,
        };
    }
}

fn rows(answer: &mut Value) -> Result<HistoryRows, ClientError> {
    serde_json::from_value(answer["structuredContent"].take()).map_err(|_| ClientError::Malformed)
}
