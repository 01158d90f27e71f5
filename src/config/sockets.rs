//! Who may connect to the sockets of a daemon besides its own user, and the groups and modes that this takes.

use std::sync::Arc;

use nix::unistd::Group;

/// The value of a key that stands for every user.
const EVERYONE: &str = "*";

/// Who may connect besides the daemon's user: no one if empty, the group of this name, or everyone for `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketsConfig {
    /// To the gateway and the sockets of sessions.
    pub clients: Arc<str>,
    /// To the read-only ones.
    pub observers: Arc<str>,
}

/// Whom a file or directory is open to, besides its owner and root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketAudience {
    #[default]
    Owner,
    /// The members of this group.
    Group(u32),
    Everyone,
}

/// Whom the sockets of a daemon are open to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketAccess {
    clients: SocketAudience,
    observers: SocketAudience,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error(
        "there is no group {name:?} on this machine; create it with `groupadd {name}`, name another \
         one, or set \"*\" for every user"
    )]
    Unknown { name: Arc<str> },
    #[error("the group {name:?} cannot be looked up: {reason}")]
    Lookup { name: Arc<str>, reason: &'static str },
}

impl SocketAudience {
    /// The audience that the value of a key means.
    ///
    /// # Errors
    /// Fails when it names a group that the machine does not have.
    pub fn of(value: &Arc<str>) -> Result<Self, GroupError> {
        match &**value {
            "" => return Ok(Self::Owner),
            EVERYONE => return Ok(Self::Everyone),
            _ => {}
        }
        match Group::from_name(value) {
            Ok(Some(group)) => Ok(Self::Group(group.gid.as_raw())),
            Ok(None) => Err(GroupError::Unknown { name: Arc::clone(value) }),
            Err(errno) => Err(GroupError::Lookup { name: Arc::clone(value), reason: errno.desc() }),
        }
    }

    /// Whether it includes somebody who is in these groups, other than as the owner.
    pub fn includes(self, groups: &[u32]) -> bool {
        match self {
            Self::Owner => false,
            Self::Group(group) => groups.contains(&group),
            Self::Everyone => true,
        }
    }

    /// The group that its files must have; `None` if any will do.
    pub fn group(self) -> Option<u32> {
        match self {
            Self::Group(group) => Some(group),
            Self::Owner | Self::Everyone => None,
        }
    }

    /// The mode of a socket that this audience may connect to.
    pub fn socket_mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group(_) => 0o660,
            Self::Everyone => 0o666,
        }
    }

    /// The mode of a directory in which this audience may open what it knows the name of, and list nothing.
    pub fn directory_mode(self) -> u32 {
        match self {
            Self::Owner => 0o700,
            Self::Group(_) => 0o710,
            Self::Everyone => 0o711,
        }
    }
}

impl SocketAccess {
    /// # Errors
    /// Fails when a key names a group that the machine does not have.
    pub fn of(config: &SocketsConfig) -> Result<Self, GroupError> {
        Ok(Self {
            clients: SocketAudience::of(&config.clients)?,
            observers: SocketAudience::of(&config.observers)?,
        })
    }

    /// Who may connect to the gateway and to the sockets of sessions.
    pub fn clients(self) -> SocketAudience {
        self.clients
    }

    /// Who may connect to the read-only sockets: the observers and, where one group is enough for both, the clients.
    ///
    /// A file has one group. If the keys name two, it is that of the observers.
    pub fn observers(self) -> SocketAudience {
        use SocketAudience::{Everyone, Group, Owner};
        match (self.clients, self.observers) {
            (Everyone, _) | (_, Everyone) => Everyone,
            (clients, Owner) => clients,
            (Owner | Group(_), observers @ Group(_)) => observers,
        }
    }

    /// Who may pass through the directories of these sockets. With two groups, every user may, since a directory has
    /// one as well; the sockets then keep the others out.
    pub fn directories(self) -> SocketAudience {
        use SocketAudience::{Everyone, Group, Owner};
        match (self.clients, self.observers) {
            (Everyone, _) | (_, Everyone) => Everyone,
            (clients, Owner) => clients,
            (Owner, observers) => observers,
            (Group(clients), Group(observers)) if clients == observers => Group(clients),
            (Group(_), Group(_)) => Everyone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SocketAudience::{Everyone, Group, Owner};
    use super::*;

    const ALL: [SocketAudience; 4] = [Owner, Group(1), Group(2), Everyone];

    fn of(value: &str) -> Result<SocketAudience, GroupError> {
        SocketAudience::of(&Arc::from(value))
    }

    #[test]
    fn a_value_is_nobody_a_group_of_the_machine_or_everyone() {
        assert_eq!(of(""), Ok(Owner));
        assert_eq!(of("*"), Ok(Everyone));
        assert_eq!(of("root"), Ok(Group(0)));
        let error = of("no-such-group").unwrap_err();
        let told = error.to_string();
        assert!(told.contains("\"no-such-group\""), "{told}");
        assert!(told.contains("groupadd no-such-group"), "{told}");
    }

    #[test]
    fn modes_never_let_others_list_or_change_a_directory() {
        for audience in ALL {
            assert_eq!(audience.directory_mode() & 0o066, 0, "{audience:?}");
            assert_eq!(audience.socket_mode() & 0o111, 0, "{audience:?}");
        }
        assert_eq!((Owner.directory_mode(), Owner.socket_mode()), (0o700, 0o600));
    }

    #[test]
    fn the_observers_key_opens_no_more_than_the_read_only_sockets() {
        for observers in ALL {
            let access = SocketAccess { clients: Owner, observers };
            let opened = (access.clients(), access.observers(), access.directories());
            assert_eq!(opened, (Owner, observers, observers));
        }
    }

    #[test]
    fn clients_may_also_observe() {
        for clients in ALL {
            let access = SocketAccess { clients, observers: Owner };
            let opened = (access.clients(), access.observers(), access.directories());
            assert_eq!(opened, (clients, clients, clients));
        }
    }

    #[test]
    fn two_groups_keep_their_sockets_apart_and_share_the_directories() {
        let access = SocketAccess { clients: Group(1), observers: Group(2) };
        let opened = (access.clients(), access.observers(), access.directories());
        assert_eq!(opened, (Group(1), Group(2), Everyone));
        let access = SocketAccess { clients: Group(1), observers: Group(1) };
        assert_eq!(access.directories(), Group(1));
        let access = SocketAccess { clients: Group(1), observers: Everyone };
        let opened = (access.clients(), access.observers(), access.directories());
        assert_eq!(opened, (Group(1), Everyone, Everyone));
    }
}
