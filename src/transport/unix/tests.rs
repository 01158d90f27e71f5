//! What tests of sockets need: a process of their own.

pub(super) mod alone;
