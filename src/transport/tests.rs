//! What all transports and the floors below them do together.

// The figures are those of one kind of build.
#[cfg(all(target_arch = "x86_64", debug_assertions))]
mod instructions;
