//! termgate: one terminal, one writer, many watchers.
//!
//! A daemon owns terminal sessions (PTY, screen, history) and offers them over MCP. Exactly one
//! principal at a time holds the lease of a session and may type; everybody else watches and is
//! pushed deltas of the grid.
//!
//! The modules in reading order, each naming only those above it:

pub mod core;
pub mod shim;

pub mod wire;

pub mod config;
pub mod mount;
pub mod session;
pub mod store;

pub mod surface;

pub mod gateway;

pub mod mcp;

pub mod transport;

pub mod cli;
