//! Why the rights of a caller do not allow a change.

/// Why a change is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No switch that covers the session is on.
    #[error("this daemon is read-only")]
    SwitchedOff,
    /// The switch of the session, or of its tenant, is off, whatever wider ones say.
    #[error("writing is switched off for this session")]
    Protected,
    /// The door can never write.
    #[error("this socket is for watching only")]
    ObserverDoor,
    /// The token is one for watching.
    #[error("your token is for watching only")]
    ReadOnlyToken,
    /// The person attached to watch and not to type.
    #[error("you are attached to watch only")]
    Watching,
    /// The caller is a program inside a managed session.
    #[error("programs inside a session have no rights through its daemon")]
    InsideSession,
    /// The door shows one session, and the call is about others.
    #[error("this socket belongs to one session")]
    BoundDoor,
    /// No role of the caller allows it.
    #[error("your roles do not allow this")]
    NoRole,
    /// Only operators may do this.
    #[error("only an operator may do this")]
    NotOperator,
    /// A permit was shown that was given for something else, which is a mistake of the daemon.
    #[error("this permit is for another act, session or caller")]
    OtherPermit,
}
