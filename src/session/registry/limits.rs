//! How much sessions may have, as the configuration says now.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::ids::TenantId;
use crate::core::lease::limits::LeaseLimits;
use crate::core::policy::tenants::Tenants;
use crate::core::quota::Quota;
use crate::core::screen::ScreenLimits;
use crate::session::actor::Rules;
use crate::session::pty::held::shims::HoldingLimits;
use crate::session::recording::RecordingLimits;
use crate::session::registry::Registry;

/// How much of what sessions may have; other limits hold for those created after they were set.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    pub lease: LeaseLimits,
    pub screen: ScreenLimits,
    /// How many cells a terminal may have, also when it is resized.
    pub cells_max: u32,
    pub frame_interval: Duration,
    pub keep_ended: Duration,
    pub holding: HoldingLimits,
    /// Whether interactive shells mark their prompts and commands.
    pub shell_marks: bool,
    /// Whether all new sessions are sandboxed.
    pub sandbox: bool,
    /// How many sessions each tenant may have.
    pub sessions_max: Quota,
    pub tenants: Arc<Tenants>,
    pub recording: RecordingLimits,
}

impl Registry {
    pub fn limits(&self) -> Arc<SessionLimits> {
        Arc::clone(&self.0.limits.borrow())
    }

    pub fn set_limits(&self, limits: SessionLimits) {
        self.0.limits.send_replace(Arc::new(limits));
    }

    /// Changes whenever limits are set.
    pub fn limit_changes(&self) -> watch::Receiver<Arc<SessionLimits>> {
        self.0.limits.subscribe()
    }

    /// How many callers of a tenant may wait for one lease, if that was said of it.
    pub fn waiters_max(&self, tenant: &TenantId) -> Option<usize> {
        self.limits().tenants.find(&tenant.of_all())?.limits.waiters
    }

    /// What holds for the sessions of a tenant.
    pub(in crate::session) fn rules(&self, tenant: &TenantId) -> Rules {
        let limits = self.limits();
        let SessionLimits { mut screen, frame_interval, keep_ended, .. } = *limits;
        if let Some(its) = limits.tenants.find(&tenant.of_all()).map(|it| &it.limits) {
            let history = &mut screen.history;
            history.rows_max = its.history_rows.unwrap_or(history.rows_max);
            history.bytes_max = its.history_bytes.unwrap_or(history.bytes_max);
        }
        Rules { screen, frame_interval, keep_ended }
    }
}
