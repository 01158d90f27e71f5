//! Local sockets: where they may stand, who may put them there, and who is at the other end.
//!
//! It knows nothing of MCP or rights: it hands streams and facts about peers to whoever decides.
//! Everything here trusts the kernel and the file system's owners and modes, never a name.

pub mod changes;
pub mod dial;
pub mod directory;
pub mod fair_queue;
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
