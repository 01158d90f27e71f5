//! Local sockets: where they may be bound, who may bind them, and which process is at the other end.
//!
//! This module trusts only the kernel and the owners and modes of files. It decides nothing about rights.

pub mod access;
pub mod changes;
pub mod dial;
pub mod directory;
pub mod event_command;
pub mod fair_queue;
pub mod file_identity;
pub mod handed;
pub mod impostor;
pub mod limits;
pub mod listener;
pub mod lock;
pub mod peer;
pub mod private;
pub mod quota;
pub mod reception;
pub mod reserve;
#[cfg(test)]
mod tests;
