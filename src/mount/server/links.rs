//! The links that a server has sent people to, until it tells that they were followed.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::mount::asking::{LINK_ID, LinkFollowed, mode};

/// How many links a server is expected to tell of. A further one takes the place of the oldest.
const LINKS_MAX: usize = 64;

/// The links of a server that clients wait to hear of, the oldest first.
#[derive(Debug, Default)]
pub(super) struct SentLinks(VecDeque<(String, oneshot::Sender<()>)>);

impl SentLinks {
    /// Expects to be told that the link of a question was followed, if it has one.
    ///
    /// Of two questions with the same link, the last one is told.
    pub(super) fn expect(&mut self, question: &Map<String, Value>) -> Option<LinkFollowed> {
        let id = question.get(LINK_ID).and_then(Value::as_str)?;
        if mode(question) != "url" {
            return None;
        }
        self.0.retain(|(other, followed)| other != id && !followed.is_closed());
        if self.0.len() == LINKS_MAX {
            self.0.pop_front();
        }
        let (tell, followed) = oneshot::channel();
        self.0.push_back((id.to_owned(), tell));
        Some(followed)
    }

    /// The server tells that a link was followed.
    pub(super) fn on_followed(&mut self, params: Option<&Value>) {
        let id = params.and_then(|params| params.get(LINK_ID)?.as_str());
        let at = self.0.iter().position(|(sent, _)| Some(sent.as_str()) == id);
        if let Some((_, followed)) = at.and_then(|at| self.0.remove(at)) {
            // The client may have left.
            let _ = followed.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(id: &str) -> Map<String, Value> {
        let Value::Object(question) = json!({"mode": "url", "elicitationId": id}) else { panic!() };
        question
    }

    #[test]
    fn a_server_that_tells_of_no_link_holds_no_more_than_some() {
        let mut links = SentLinks::default();
        let mut sent: Vec<LinkFollowed> =
            (0..LINKS_MAX + 1).filter_map(|at| links.expect(&question(&at.to_string()))).collect();
        links.on_followed(Some(&json!({"elicitationId": "0"})));
        links.on_followed(Some(&json!({"elicitationId": "1"})));
        assert!(sent[0].try_recv().is_err());
        assert!(sent[1].try_recv().is_ok());
        drop(sent);
        let _waits = links.expect(&question("0"));
        assert_eq!(links.0.len(), 1, "clients that have left hold nothing");
    }

    #[test]
    fn of_two_questions_with_the_same_link_the_last_one_is_told() {
        let mut links = SentLinks::default();
        let (mut first, mut last) =
            (links.expect(&question("a")).unwrap(), links.expect(&question("a")).unwrap());
        links.on_followed(Some(&json!({"elicitationId": "a"})));
        assert!(first.try_recv().is_err() && last.try_recv().is_ok());
    }
}
