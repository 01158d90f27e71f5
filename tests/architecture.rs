//! What `docs/ARCHITECTURE.md` says, as tests: who may name whom, where foreign crates live, how
//! files are made and what is depended upon.
//!
//! Each rule is a function from sources to complaints, so that each is also shown to complain.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

mod architecture {
    mod dependencies;
    mod floors;
    mod homes;
    mod knots;
    mod licence;
    mod packages;
    mod shape;
    mod source;
    mod variables;
}
