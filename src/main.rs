//! The program `termgate`: hands the words of the command line on and ends with the code it is told.

use std::env;
use std::process::ExitCode;
use std::thread;

use anyhow::Context as _;
use termgate::shim;
use termgate::shim::memory;

fn main() -> anyhow::Result<ExitCode> {
    // At once: whoever opened the memory of a process that was not hidden keeps it.
    memory::hide().context("cannot hide the memory of this process")?;
    let words: Vec<_> = env::args_os().collect();
    // Before anything is made that a shim must not have, a second thread above all.
    if words.get(1).is_some_and(|word| word == shim::WORD) {
        return Ok(shim::run_shims(&words));
    }
    if words.get(1).is_some_and(|word| word == shim::INSIDE) {
        return Ok(shim::inside::run(&words));
    }
    if termgate::cli::completions::answer(&words)? {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(termgate::cli::run(words));
    // A read of standard input cannot be given up, so nobody waits for it.
    runtime.shutdown_background();
    Ok(exit?.into())
}

/// How many threads run tasks: half of the processors, rounded up. Behind each session work a shim and a program, which
/// need the others, and each call that wakes a second thread takes longer for it.
fn workers() -> usize {
    thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}
