//! Work that would hold a worker of the runtime for longer than a moment.
//!
//! It knows nothing of the work. To part with a worker costs some ten microseconds, so what is quick is
//! better done where it is.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does this on this thread, and lets its other tasks go to another one where there are several.
pub(in crate::session) fn while_others_go_on<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // The flavors may become more; only the one above allows it.
        Ok(_) | Err(_) => work(),
    }
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
}
