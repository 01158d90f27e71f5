//! The process that owns one terminal and outlives the daemon, and what it speaks with daemons.
//!
//! It knows no screen, no lease and no tenant: it moves bytes, keeps what it is handed, and counts.
//! It is a process of its own so that a daemon may end in any way at any moment without the program
//! in the terminal noticing.

pub mod bounded;
pub mod wire;
