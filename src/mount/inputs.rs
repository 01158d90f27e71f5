//! What a server asks with a result, where older ones make requests, and the answers that it is brought.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mount::json::ExactObject;
use crate::mount::protocol::ServerParams;

/// How often a server may ask with a result before it answers a request.
pub const ROUNDS_MAX: usize = 10;

/// A result with which a server asks. The request is to be made again with the answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequired {
    input_requests: Option<InputRequests>,
    request_state: Option<String>,
}

/// Questions, by the server's names for them.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// A question, as a request that is none of its own.
#[derive(Debug, Deserialize)]
pub struct InputRequest {
    pub method: String,
    #[serde(default)]
    pub params: Option<ExactObject>,
}

impl InputRequired {
    /// The questions, and the round in which they are answered; `None` if the result has neither questions nor state.
    pub fn round(self) -> Option<(InputRequests, InputRound)> {
        let Self { input_requests, request_state } = self;
        if input_requests.is_none() && request_state.is_none() {
            return None;
        }
        let round = InputRound { state: request_state, ..InputRound::default() };
        Some((input_requests.unwrap_or_default(), round))
    }
}

/// The questions that are asked at the same time, and their answers.
#[derive(Debug, Default)]
pub struct InputRound {
    /// What the server wants to be brought back, unchanged.
    state: Option<String>,
    asked: usize,
    answers: BTreeMap<String, Box<RawValue>>,
}

impl InputRound {
    /// A question was put to the client.
    pub fn on_asked(&mut self) {
        self.asked += 1;
    }

    /// The client has answered the question of this name.
    pub fn on_answer(&mut self, name: String, answer: Box<RawValue>) {
        self.answers.insert(name, answer);
    }

    /// Whether all questions are answered.
    pub fn is_answered(&self) -> bool {
        self.answers.len() == self.asked
    }

    /// Puts the answers into the parameters of a request, in place of those of an earlier round.
    pub fn fill(self, params: &mut ServerParams) {
        let Self { state, answers, .. } = self;
        params.remove("inputResponses");
        params.remove("requestState");
        if !answers.is_empty() {
            params.set("inputResponses", &answers);
        }
        if let Some(state) = state {
            params.set("requestState", &state);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn round(result: Value) -> Option<(InputRequests, InputRound)> {
        serde_json::from_str::<InputRequired>(&result.to_string()).unwrap().round()
    }

    #[test]
    fn a_round_is_answered_once_all_questions_are() {
        let asked =
            json!({"a": {"method": "roots/list"}, "b": {"method": "x", "params": {"y": 1}}});
        let (requests, mut round) = round(json!({"inputRequests": asked})).unwrap();
        for _ in &requests {
            round.on_asked();
        }
        for name in ["a", "b"] {
            assert!(!round.is_answered());
            let answer = format!(r#"{{"of": {name:?}, "n": 1e2}}"#);
            round.on_answer(name.to_owned(), RawValue::from_string(answer).unwrap());
        }
        assert!(round.is_answered());
        let mut params = ServerParams::default();
        params.set("requestState", &"old");
        round.fill(&mut params);
        let text = r#"{"inputResponses":{"a":{"of": "a", "n": 1e2},"b":{"of": "b", "n": 1e2}}}"#;
        assert_eq!(serde_json::to_string(&params).unwrap(), text);
    }

    #[test]
    fn a_state_without_questions_is_brought_back_alone() {
        let (requests, again) = round(json!({"requestState": "s", "inputRequests": null})).unwrap();
        assert!(requests.is_empty() && again.is_answered());
        let mut params = ServerParams::default();
        params.set("inputResponses", &json!({"a": {}}));
        again.fill(&mut params);
        assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"requestState":"s"}"#);
        assert!(round(json!({})).is_none());
    }
}
