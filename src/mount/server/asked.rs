//! The resources that a running server was asked about, and how it stands with each.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

/// The resources of which a running server was asked to tell the changes. Each has one request at a time, so that a
/// server which answers in another order ends up with what was asked last.
#[derive(Debug, Default)]
pub(super) struct AskedWatches(pub(super) BTreeMap<Arc<str>, AskedWatch>);

#[derive(Clone, Copy, Debug)]
pub(super) enum AskedWatch {
    Told,
    Waiting { id: u64, step: WatchStep, until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchStep {
    Subscribe,
    Unsubscribe,
}

impl WatchStep {
    /// The protocol's method.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
        }
    }
}

impl AskedWatches {
    /// When the first request that waits for an answer has waited for long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let waits = |asked: &AskedWatch| match asked {
            AskedWatch::Told => None,
            AskedWatch::Waiting { until, .. } => Some(*until),
        };
        self.0.values().filter_map(waits).min()
    }

    /// Takes the requests that have waited for long enough.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<(u64, Arc<str>, WatchStep)> {
        let overdue = |(uri, asked): (&Arc<str>, &AskedWatch)| match asked {
            AskedWatch::Waiting { id, step, until } if *until <= now => {
                Some((*id, Arc::clone(uri), *step))
            }
            AskedWatch::Waiting { .. } | AskedWatch::Told => None,
        };
        let overdue: Vec<_> = self.0.iter().filter_map(overdue).collect();
        for (_, uri, _) in &overdue {
            self.0.remove(uri);
        }
        overdue
    }

    /// Takes the request of this number.
    pub(super) fn take(&mut self, number: u64) -> Option<(Arc<str>, WatchStep)> {
        let waits = |(uri, asked): (&Arc<str>, &AskedWatch)| match asked {
            AskedWatch::Waiting { id, step, .. } if *id == number => Some((Arc::clone(uri), *step)),
            AskedWatch::Waiting { .. } | AskedWatch::Told => None,
        };
        let found = self.0.iter().find_map(waits)?;
        self.0.remove(&found.0);
        Some(found)
    }
}
