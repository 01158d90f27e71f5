//! Sessions: a terminal, its screen and its lease, each owned by one task.
//!
//! Outside there are only handles: they read the frames that the task publishes and send it
//! commands. Nothing here knows MCP, doors or other sessions' tenants' names.

pub mod actor;
pub mod clock;
pub mod command;
pub mod control;
pub mod drain;
pub mod error;
pub mod facts;
pub mod handle;
pub(in crate::session) mod off_worker;
pub mod pty;
pub mod recorder;
pub mod recording;
pub mod records;
pub mod recover;
pub mod registry;
pub mod request_order;
pub mod restore;
pub mod row_followers;
pub mod scrolled_rows;
pub mod stats;
#[cfg(test)]
pub(crate) mod tests;
