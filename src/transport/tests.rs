//! What all transports and the floors below them do together.

mod instructions;
