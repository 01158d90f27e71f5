//! What the rows share: yardsticks, clients, measuring and tables.

pub(crate) mod agent;
pub(crate) mod bare;
pub(crate) mod child;
pub(crate) mod daemon;
pub(crate) mod echo;
pub(crate) mod empty_tool;
pub(crate) mod home;
pub(crate) mod machine;
pub(crate) mod observer;
pub(crate) mod observers;
pub(crate) mod painter;
pub(crate) mod placement;
pub(crate) mod plot;
pub(crate) mod processes;
pub(crate) mod profile;
pub(crate) mod pump;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod samples;
pub(crate) mod shell;
pub(crate) mod shims;
pub(crate) mod speed;
pub(crate) mod streams;
pub(crate) mod table;
pub(crate) mod terminals;
pub(crate) mod tmux;
