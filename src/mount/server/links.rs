//! The links that a server has sent people to, until it tells that they were followed.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::core::ids::ConnectionId;
use crate::mount::asking::{LINK_ID, LinkFollowed, mode};
use crate::mount::json::{ExactJson, ExactObject};

/// How many links a server is expected to tell of. A further one takes the place of the oldest.
const LINKS_MAX: usize = 64;

/// The links of a server that clients wait to hear of, the oldest first.
#[derive(Debug, Default)]
pub(super) struct SentLinks(VecDeque<SentLink>);

/// A link that a client was asked to send its person to.
#[derive(Debug)]
struct SentLink {
    id: String,
    client: Option<ConnectionId>,
    followed: oneshot::Sender<()>,
}

impl SentLinks {
    /// Expects to be told that the link of a question was followed, if it has one.
    ///
    /// A client that is asked twice with the same link is told once.
    pub(super) fn expect(
        &mut self,
        client: Option<ConnectionId>,
        question: &ExactObject,
    ) -> Option<LinkFollowed> {
        let id = question.text(LINK_ID)?;
        if mode(question) != "url" {
            return None;
        }
        let is_again = |it: &SentLink| it.id == id && it.client == client;
        self.0.retain(|it| !is_again(it) && !it.followed.is_closed());
        if self.0.len() == LINKS_MAX {
            self.0.pop_front();
        }
        let (tell, followed) = oneshot::channel();
        self.0.push_back(SentLink { id: id.to_owned(), client, followed: tell });
        Some(followed)
    }

    /// The server tells that a link was followed.
    pub(super) fn on_followed(&mut self, params: Option<&ExactJson>) {
        let id = params.and_then(|params| params.get(LINK_ID)?.as_text());
        let all = std::mem::take(&mut self.0).into_iter();
        let (told, others): (VecDeque<_>, _) = all.partition(|it| Some(it.id.as_str()) == id);
        self.0 = others;
        for link in told {
            // The client may have left.
            let _ = link.followed.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(id: &str) -> ExactObject {
        let question = ExactJson::of(&json!({"mode": "url", "elicitationId": id}));
        question.try_into().unwrap()
    }

    #[test]
    fn a_server_that_tells_of_no_link_holds_no_more_than_some() {
        let mut links = SentLinks::default();
        let mut sent: Vec<LinkFollowed> = (0..LINKS_MAX + 1)
            .filter_map(|at| links.expect(None, &question(&at.to_string())))
            .collect();
        links.on_followed(Some(&ExactJson::of(&json!({"elicitationId": "0"}))));
        links.on_followed(Some(&ExactJson::of(&json!({"elicitationId": "1"}))));
        assert!(sent[0].try_recv().is_err());
        assert!(sent[1].try_recv().is_ok());
        drop(sent);
        let _waits = links.expect(None, &question("0"));
        assert_eq!(links.0.len(), 1, "clients that have left hold nothing");
    }

    #[test]
    fn each_client_is_told_once_of_a_link_that_several_were_sent_to() {
        let mut links = SentLinks::default();
        let mut sent: Vec<LinkFollowed> = [1, 1, 2]
            .map(|client| links.expect(Some(ConnectionId(client)), &question("a")).unwrap())
            .into();
        links.on_followed(Some(&ExactJson::of(&json!({"elicitationId": "a"}))));
        let told: Vec<bool> = sent.iter_mut().map(|it| it.try_recv().is_ok()).collect();
        assert_eq!(told, [false, true, true]);
    }
}
