//! The users and groups of the system, by which a tenants file names principals.

use nix::unistd::{Group, User, getuid};

/// What the system knows of users and groups.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// The user of the daemon, which is a tenant of its own.
    pub own: u32,
    pub uid: fn(&str) -> Option<u32>,
    pub gid: fn(&str) -> Option<u32>,
}

impl Accounts {
    /// Those of this system, for a daemon of the user of this process.
    pub fn of_system() -> Self {
        let uid = |name: &str| Some(User::from_name(name).ok()??.uid.as_raw());
        let gid = |name: &str| Some(Group::from_name(name).ok()??.gid.as_raw());
        Self { own: getuid().as_raw(), uid, gid }
    }
}
