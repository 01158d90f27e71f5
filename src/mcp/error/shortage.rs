//! What a session needs and the system has no more of.

use crate::session::pty::spawn::Shortage;
use crate::wire::error::RefusalCause;

pub(super) fn missing(shortage: Shortage) -> RefusalCause {
    match shortage {
        Shortage::Descriptors => RefusalCause::NoDescriptors,
        Shortage::Processes => RefusalCause::NoProcesses,
        Shortage::Terminals => RefusalCause::NoTerminals,
        Shortage::Memory => RefusalCause::NoMemory,
    }
}
