//! The user that a session's program runs as, from the system's user database.
//! Only a daemon of root can start programs of other users.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{Uid, User, getgrouplist};

use crate::session::pty::environment::Environment;
use crate::shim::user::ProgramUser;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    /// All groups, the first one included.
    pub groups: Vec<u32>,
    pub name: String,
    pub home: PathBuf,
    pub shell: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("there is no user {0:?}")]
    Unknown(String),
    #[error("cannot look up user {user:?}: {source}")]
    Unreadable { user: String, source: io::Error },
    #[error(
        "only a daemon of root can start programs as user {user}, and this one belongs to uid {us}"
    )]
    NotRoot { user: String, us: u32 },
    #[error("cannot look at files as user {user}: {source}")]
    NotSeen { user: String, source: io::Error },
}

/// The user that the daemon, and any program that it starts as no other, runs as.
pub fn own_uid() -> u32 {
    Uid::effective().as_raw()
}

impl Account {
    /// Finds a user by number.
    pub fn of_uid(uid: u32) -> Result<Self, AccountError> {
        let user = || uid.to_string();
        let unreadable =
            |errno: Errno| AccountError::Unreadable { user: user(), source: errno.into() };
        let found = User::from_uid(Uid::from_raw(uid)).map_err(unreadable)?;
        let found = found.ok_or_else(|| AccountError::Unknown(user()))?;
        let name = CString::new(found.name.as_str()).map_err(|_| unreadable(Errno::EINVAL))?;
        let groups = getgrouplist(&name, found.gid).map_err(unreadable)?;
        Ok(Self {
            uid: found.uid.as_raw(),
            gid: found.gid.as_raw(),
            groups: groups.into_iter().map(|group| group.as_raw()).collect(),
            name: found.name,
            home: found.dir,
            shell: found.shell,
        })
    }

    /// Whether programs of this daemon run as this user anyway.
    pub fn is_own(&self) -> bool {
        self.uid == own_uid()
    }

    /// # Errors
    /// [`AccountError::NotRoot`] if this daemon cannot start programs as this user.
    pub fn check(&self) -> Result<(), AccountError> {
        self.check_for(Uid::effective())
    }

    fn check_for(&self, us: Uid) -> Result<(), AccountError> {
        if self.uid == us.as_raw() || us.is_root() {
            return Ok(());
        }
        Err(AccountError::NotRoot { user: self.name.clone(), us: us.as_raw() })
    }

    /// The user for the shim; `None` if the shim has it already.
    pub fn program_user(&self) -> Option<ProgramUser> {
        (!self.is_own()).then(|| ProgramUser::new(self.uid, self.gid, self.groups.iter().copied()))
    }

    /// The environment that a login of this user begins with. Of the daemon's, only what is no one's own.
    pub fn environment(&self, daemon: &Environment) -> Environment {
        /// Variables that concern the whole machine.
        const SHARED: [&str; 3] = ["PATH", "TZ", "LANG"];
        let is_shared = |name: &OsString| {
            SHARED.iter().any(|shared| name == shared) || name.as_bytes().starts_with(b"LC_")
        };
        let mut environment: Environment = match self.is_own() {
            true => daemon.clone(),
            false => daemon.clone().into_iter().filter(|(name, _)| is_shared(name)).collect(),
        };
        let own: [(&str, OsString); 4] = [
            ("HOME", self.home.clone().into()),
            ("USER", self.name.clone().into()),
            ("LOGNAME", self.name.clone().into()),
            ("SHELL", self.shell.clone().into()),
        ];
        environment.extend(own.map(|(name, value)| (name.into(), value)));
        environment
    }

    /// Looks at files with the rights of this user.
    ///
    /// The thread that looks keeps its user id, by which the kernel decides who may signal it.
    pub fn look<T: Send>(&self, look: impl FnOnce() -> T + Send) -> Result<T, AccountError> {
        if self.is_own() {
            return Ok(look());
        }
        let not_seen = |source| AccountError::NotSeen { user: self.name.clone(), source };
        thread::scope(|scope| {
            let looking =
                thread::Builder::new().name("look".to_owned()).spawn_scoped(scope, || {
                    self.take_file_rights()?;
                    Ok(look())
                });
            let looked = looking.map_err(not_seen)?.join();
            looked.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(not_seen)
        })
    }

    /// Gives this thread alone the rights of this user to files. The C library would change all threads.
    #[allow(unsafe_code)]
    fn take_file_rights(&self) -> io::Result<()> {
        let groups = &self.groups;
        // SAFETY: the list outlives the call that reads it; all else are numbers.
        let now = unsafe {
            let set = libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr());
            Errno::result(set)?;
            libc::syscall(libc::SYS_setfsgid, self.gid);
            libc::syscall(libc::SYS_setfsuid, self.uid);
            // These calls report no errors, but what was set before.
            [
                libc::syscall(libc::SYS_setfsgid, self.gid),
                libc::syscall(libc::SYS_setfsuid, self.uid),
            ]
        };
        let is_set = now == [self.gid, self.uid].map(libc::c_long::from);
        if is_set { Ok(()) } else { Err(Errno::EPERM.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let root = Account::of_uid(0).unwrap();
        assert_eq!((root.uid, &*root.name), (0, "root"));
        let unknown = Account::of_uid(4_000_000_000).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no user \"4000000000\"");
    }

    #[test]
    fn only_root_starts_programs_of_other_users() {
        let account = Account { uid: 1000, ..Account::of_uid(0).unwrap() };
        assert!(account.check_for(Uid::from_raw(0)).is_ok());
        assert!(account.check_for(Uid::from_raw(1000)).is_ok());
        let refused = account.check_for(Uid::from_raw(1001)).unwrap_err();
        assert!(matches!(refused, AccountError::NotRoot { us: 1001, .. }), "{refused}");
    }

    #[test]
    fn another_user_gets_nothing_of_the_daemons_environment_but_what_the_machine_shares() {
        let other = Account {
            uid: u32::MAX - 2,
            gid: 7,
            groups: vec![7],
            name: "other".to_owned(),
            home: "/home/other".into(),
            shell: "/bin/sh".into(),
        };
        let daemon = [("PATH", "/bin"), ("SECRET", "x"), ("HOME", "/root"), ("LC_ALL", "C")];
        let daemon = daemon.map(|(name, value)| (name.into(), value.into())).into();
        let environment = other.environment(&daemon);
        let names: Vec<_> = environment.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["HOME", "LC_ALL", "LOGNAME", "PATH", "SHELL", "USER"]);
        assert_eq!(environment[&OsString::from("HOME")], "/home/other");
    }
}
