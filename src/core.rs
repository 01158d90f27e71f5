//! The core: values in, values out. It holds every decision about screens, leases, keys and rights.
//!
//! It knows nothing of sockets, files, clocks, tasks or JSON, so that each rule can be tested as a
//! plain function with time as a value.

pub mod address;
pub mod burst;
pub mod caller;
pub mod code;
pub mod command_line;
pub mod counted;
pub mod event;
pub mod fnv;
pub mod frame;
pub mod human_duration;
pub mod ids;
pub mod input;
pub mod invisible;
pub mod journal;
pub mod keys;
pub mod lease;
pub mod moment;
pub mod mount;
pub mod nearest;
pub mod one_line;
pub mod policy;
pub mod quota;
pub mod rate;
pub mod screen;
pub mod session_users;
pub mod shell;
pub mod token;
pub mod wait;
