//! The bodies of the fuzz targets: plain functions that panic when a property of `docs/RELIABILITY.md` does not hold
//! for some bytes. libFuzzer calls them, and `tests/corpora.rs` with every input that is kept.

pub mod awk_scripts;
pub mod choices;
pub mod command_lines;
pub mod configuration;
pub mod deltas;
pub mod escapes;
pub mod framing;
pub mod journal;
pub mod keys;
pub mod sanitiser;
pub mod sed_scripts;
pub mod shim_frames;
pub mod steps;
pub mod uris;
pub mod word_shapes;
