//! Runs long work without blocking a runtime worker. Leaving a worker costs about ten microseconds, so short
//! work should stay on it.

use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::core::frame::Size;

/// The most cells of a screen that a worker processes itself: more than most windows have.
const CELLS_MAX: usize = 20_000;

/// Whether a screen of this size takes too long for a worker.
pub(in crate::session) fn is_large(Size { rows, cols }: Size) -> bool {
    usize::from(rows) * usize::from(cols) > CELLS_MAX
}

/// Runs `work` on this thread. A multi-threaded runtime moves its other tasks to another thread first.
pub(in crate::session) fn while_others_go_on<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // Only the multi-threaded flavor supports this, and more flavors may be added.
        Ok(_) | Err(_) => work(),
    }
}

/// Runs a future. Each poll for which `is_long` is true lets other tasks move to another thread.
pub(in crate::session) async fn in_steps<F: Future>(
    running: F,
    is_long: impl Fn() -> bool,
) -> F::Output {
    let mut running = pin!(running);
    std::future::poll_fn(|context| match is_long() {
        true => while_others_go_on(|| running.as_mut().poll(context)),
        false => running.as_mut().poll(context),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_task_of_the_only_worker_goes_on_meanwhile() {
        let mut one = tokio::runtime::Builder::new_multi_thread();
        let runtime = one.worker_threads(1).build().expect("a runtime");
        let (tell, told) = mpsc::channel();
        let working = runtime.spawn(async move {
            tokio::spawn(async move { tell.send(()) });
            while_others_go_on(|| told.recv_timeout(Duration::from_secs(30)))
        });
        runtime.block_on(working).expect("no panic").expect("the other one went on");
    }

    #[test]
    fn the_only_worker_is_free_during_the_long_steps_of_a_future() {
        let mut one = tokio::runtime::Builder::new_multi_thread();
        let runtime = one.worker_threads(1).build().expect("a runtime");
        let (tell, told) = mpsc::channel();
        let steps = async move {
            tokio::spawn(async move { tell.send(()) });
            told.recv_timeout(Duration::from_secs(30))
        };
        let running = runtime.spawn(in_steps(steps, || true));
        runtime.block_on(running).expect("no panic").expect("the other one went on");
    }
}
