//! Converts the configuration into the limits of each module.

use crate::config::{Config, HoldingConfig};
use crate::core::lease::limits::LeaseLimits;
use crate::session::pty::held::shims::HoldingLimits;
use crate::session::registry::SessionLimits;
use crate::shim::wire::to_shim::Unread;
use crate::transport::door::DoorLimits;
use crate::transport::limits::Limits;
use crate::transport::line_memory::ReadingRoom;
use crate::transport::unix::quota::Most;

pub(super) fn session_limits(config: &Config) -> SessionLimits {
    SessionLimits {
        lease: LeaseLimits {
            ttl_default: config.lease.ttl,
            max_hold: config.lease.max_hold,
            grace_default: config.lease.grace,
            person_idle: config.lease.person_idle,
            waiters_max: config.lease.waiters,
            // All principals that see a session have the same tenant, so the whole queue is theirs.
            tenant_waiters_max: config.lease.waiters,
            ..LeaseLimits::default()
        },
        screen: config.screen,
        cells_max: u32::try_from(config.cells).unwrap_or(u32::MAX),
        frame_interval: config.frame_interval,
        keep_ended: config.keep_ended,
        holding: holding_limits(&config.holding),
        shell_marks: config.shell_marks,
        sessions_max: config.sessions,
    }
}

fn holding_limits(config: &HoldingConfig) -> HoldingLimits {
    /// Rings consist of whole pages.
    const PAGE: usize = 4_096;
    HoldingLimits {
        orphan_ttl: (!config.orphan_ttl.is_zero()).then_some(config.orphan_ttl),
        ring_bytes: u32::try_from(config.ring_bytes / PAGE * PAGE).unwrap_or(u32::MAX),
        unread: if config.overwrite_unread { Unread::Overwrite } else { Unread::Block },
    }
}

/// The limits of clients; their long lines are parsed in `parsing`.
pub(super) fn limits_of_doors(config: &Config, parsing: ReadingRoom) -> DoorLimits {
    let connection = Limits::of(&config.connection, parsing);
    let users = Most { connections: config.connections, incoming: config.connection.incoming };
    DoorLimits { users, connection }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_each_module_has_the_limits_it_has_by_itself() {
        let config = Config::built_in();
        let sessions = session_limits(&config);
        let alone = LeaseLimits::default();
        let expected = LeaseLimits { tenant_waiters_max: alone.waiters_max, ..alone };
        assert_eq!(sessions.lease, expected);
        let doors =
            limits_of_doors(&config, ReadingRoom::of_bytes(config.connection.parsing_bytes));
        assert_eq!(format!("{:?}", doors.connection), format!("{:?}", Limits::default()));
    }
}
