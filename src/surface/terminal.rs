//! The tools of terminals: reading, waiting, leases and typing.

pub mod acquire_lease;
pub mod condition;
pub mod create_session;
pub mod following;
pub mod list_sessions;
pub mod manage_session;
pub mod read_commands;
pub mod read_history;
pub mod read_screen;
pub mod readiness;
pub mod release_lease;
pub mod renew_lease;
pub mod resize;
pub mod run;
pub mod send_keys;
pub mod send_mouse;
pub mod send_text;
pub mod wait_for;
pub mod waited;
pub mod waiting;
pub mod writing;

use crate::surface::tool::Entry;

/// Every tool of this family, in the order of the contract.
pub fn entries() -> Vec<Entry> {
    vec![
        Entry::of::<list_sessions::ListSessions>(),
        Entry::of::<read_screen::ReadScreen>(),
        Entry::of::<read_history::ReadHistory>(),
        Entry::of::<read_commands::ReadCommands>(),
        Entry::of::<wait_for::WaitFor>(),
        Entry::of::<create_session::CreateSession>(),
        Entry::of::<manage_session::ManageSession>(),
        Entry::of::<acquire_lease::AcquireLease>(),
        Entry::of::<renew_lease::RenewLease>(),
        Entry::of::<release_lease::ReleaseLease>(),
        Entry::of::<run::Run>(),
        Entry::of::<send_text::SendText>(),
        Entry::of::<send_keys::SendKeys>(),
        Entry::of::<send_mouse::SendMouse>(),
        Entry::of::<resize::Resize>(),
    ]
}
