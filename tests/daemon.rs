//! The whole daemon, over its sockets: what clients of both protocol eras can rely on.
//!
//! Nothing of the daemon is replaced and nothing inside it is looked at; every test has one of its
//! own.

#[path = "daemon/harness.rs"]
mod harness;
#[path = "daemon/leases.rs"]
mod leases;
#[path = "daemon/limits.rs"]
mod limits;
#[path = "daemon/order.rs"]
mod order;
#[path = "daemon/write_switch.rs"]
mod write_switch;
