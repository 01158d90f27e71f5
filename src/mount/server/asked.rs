//! What a running server was asked to tell, and how it stands with each.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

/// What a running server was asked to tell. Each has one request at a time, so that a server which answers in another order
/// ends up with what was asked last.
#[derive(Debug, Default)]
pub(super) struct AskedWatches {
    pub(super) asked: BTreeMap<WatchedThing, AskedWatch>,
    /// Its lists were told before.
    pub(super) has_told_lists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchedThing {
    /// Its lists, which only servers of the newer era are asked about.
    Lists,
    /// The resource with this address.
    Resource(Arc<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedWatch {
    /// Its changes are told, in the newer era through this request. Lists without one are not.
    Told { through: Option<u64> },
    /// This request waits for an answer, or for what acknowledges it.
    Waiting { id: u64, step: WatchStep, until: Instant },
    /// The server told no more, and is asked again then.
    Pausing { until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchStep {
    Subscribe,
    Unsubscribe,
}

impl AskedWatch {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Told { .. } => None,
            Self::Waiting { until, .. } | Self::Pausing { until } => Some(*until),
        }
    }

    fn has_request(&self, number: u64) -> bool {
        match self {
            Self::Told { through } => *through == Some(number),
            Self::Waiting { id, .. } => *id == number,
            Self::Pausing { .. } => false,
        }
    }
}

impl AskedWatches {
    /// When the first of them is to be looked at again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asked.values().filter_map(AskedWatch::deadline).min()
    }

    /// Whether the server was asked about this resource.
    pub(super) fn has(&self, uri: &str) -> bool {
        self.asked.contains_key(&WatchedThing::Resource(Arc::from(uri)))
    }

    /// Those of which this is true.
    pub(super) fn find(
        &self,
        wanted: impl Fn(&AskedWatch) -> bool,
    ) -> Vec<(WatchedThing, AskedWatch)> {
        let found = self.asked.iter().filter(|(_, asked)| wanted(asked));
        found.map(|(thing, asked)| (thing.clone(), *asked)).collect()
    }

    /// Takes the one that has this request.
    pub(super) fn take(&mut self, number: u64) -> Option<(WatchedThing, AskedWatch)> {
        let found = self.find(|asked| asked.has_request(number)).pop()?;
        self.asked.remove(&found.0);
        Some(found)
    }
}
