//! A terminal that another process holds, so that it outlives the daemon: the daemon's end of it.
//!
//! It knows how to speak with a holder and nothing of what a screen or a lease is.

pub mod recovered;
