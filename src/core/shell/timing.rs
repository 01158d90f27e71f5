//! All times by which the shell in a terminal is judged.

use std::time::Duration;

/// When the kernel is asked after output or input. The last look decides what only quiet tells.
pub(super) const LOOKS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
];

/// The first look after input: a program that reads it and writes is looked at then.
pub(super) const FIRST_AFTER_INPUT: usize = 1;

/// The look from which on a program has done all that it does at once.
pub(super) const SETTLED: usize = 2;

/// How soon the kernel is asked again when output was still on its way here.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How often the kernel is asked while a caller waits for what only it knows: at first, and at most.
/// Between them, after this part of the silence.
pub(super) const ATTENDED: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
pub(super) const ATTENDED_PART: u32 = 20;

/// How long a shell has to be silent where the kernel does not say whether it waits for input. fish
/// pauses for 250 ms.
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(300);

/// After this time a shell counts as done with what was typed ahead, even if it seems to work.
pub(super) const READ_AHEAD_MAX: Duration = Duration::from_secs(10);

/// How long another prompt than the one before has to stand still: output can end as prompts do.
pub(super) const OTHER_PROMPT_QUIET: Duration = Duration::from_secs(1);

/// How long a shell that should mark its prompts may be silent before it counts as one without marks.
pub(super) const MARKS_PATIENCE: Duration = Duration::from_secs(2);

/// How long a terminal may take to become ready after input, an interrupt, or being ready.
pub(super) const SOON: Duration = Duration::from_secs(2);
