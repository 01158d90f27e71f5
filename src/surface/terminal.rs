//! The tools of terminals: reading, waiting, leases and typing.

pub mod create_session;
pub mod following;
pub mod lease;
pub mod leased;
pub mod list_sessions;
pub mod manage_session;
pub mod read_commands;
pub mod read_history;
pub mod read_screen;
pub mod resize;
pub mod run;
pub mod search;
mod searching;
pub mod send;
pub mod wait_for;
pub mod waited;
pub mod waiting;
pub mod writing;

use crate::surface::tool::ToolEntry;

/// Every tool of this family, in the order of the contract.
pub fn entries() -> Vec<ToolEntry> {
    vec![
        ToolEntry::of::<list_sessions::ListSessions>(),
        ToolEntry::of::<read_screen::ReadScreen>(),
        ToolEntry::of::<read_history::ReadHistory>(),
        ToolEntry::of::<read_commands::ReadCommands>(),
        ToolEntry::of::<search::Search>(),
        ToolEntry::of::<wait_for::WaitFor>(),
        ToolEntry::of::<create_session::CreateSession>(),
        ToolEntry::of::<manage_session::ManageSession>(),
        ToolEntry::of::<lease::AcquireLease>(),
        ToolEntry::of::<lease::RenewLease>(),
        ToolEntry::of::<lease::ReleaseLease>(),
        ToolEntry::of::<run::RunTool>(),
        ToolEntry::of::<send::SendText>(),
        ToolEntry::of::<send::SendKeys>(),
        ToolEntry::of::<send::SendMouse>(),
        ToolEntry::of::<resize::Resize>(),
    ]
}
