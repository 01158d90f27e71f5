//! Clients that read resources and want to be told when they change, in either era.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, Wire};

/// What says that a resource has changed.
pub(crate) const UPDATED: &str = "notifications/resources/updated";

impl Wire {
    /// Reads a resource of this type, and gives back its text and what is told of an output besides.
    pub(crate) async fn read_resource(&mut self, uri: &str, mime_type: &str) -> (String, Value) {
        let result = self.request("resources/read", json!({"uri": uri})).await.unwrap();
        let [content] = result["contents"].as_array().unwrap().as_slice() else {
            panic!("{uri}: {result}");
        };
        assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!(mime_type)));
        let text = content["text"].as_str().unwrap().to_owned();
        (text, content["_meta"]["dev.termgate/output"].clone())
    }

    /// Reads a resource that is JSON.
    pub(crate) async fn facts(&mut self, uri: &str) -> Value {
        serde_json::from_str(&self.read_resource(uri, "application/json").await.0).unwrap()
    }

    /// Asks to be told when a resource changes.
    pub(crate) async fn subscribe(&mut self, uri: &str) {
        match self.sender.era() {
            Era::Legacy => {
                self.request("resources/subscribe", json!({"uri": uri})).await.unwrap();
            }
            Era::Modern => {
                let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
                self.send("subscriptions/listen", filter).await;
                self.receiver.notification("notifications/subscriptions/acknowledged").await;
            }
        }
    }
}
