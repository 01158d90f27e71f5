//! What all connections of a daemon share.

use std::sync::Arc;

use crate::gateway::Gateway;
use crate::mcp::attach::names::Names;
use crate::mcp::delta_cache::DeltaCache;
use crate::mcp::lease_notices::LeaseNotices;
use crate::mcp::observe::Tally;
use crate::mcp::subscription_quota::SubscriptionQuota;
use crate::mcp::upgrade::UpgradeAsked;

#[derive(Debug)]
pub struct Shared {
    pub gateway: Gateway,
    pub deltas: DeltaCache,
    pub subscriptions: SubscriptionQuota,
    pub lease_notices: LeaseNotices,
    pub observed: Tally,
    /// The names of attached people.
    pub names: Names,
    /// Cancelled when an operator stops the daemon.
    pub stop: tokio_util::sync::CancellationToken,
    /// Cancelled when another daemon has this one's sessions.
    pub superseded: tokio_util::sync::CancellationToken,
    /// The queue for upgrade requests, one at a time.
    pub upgrades: tokio::sync::mpsc::Sender<UpgradeAsked>,
    /// The number of the next connection, or of the next person on one.
    pub numbers: Arc<std::sync::atomic::AtomicU64>,
}
