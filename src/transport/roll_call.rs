//! Asking tasks whether they still run.
//!
//! It knows nothing of what they do. A task answers whenever it is polled, so what is found out is
//! that it has not ended, does not hang, and that the runtime has time for it.

use std::future::pending;

use tokio::sync::{mpsc, oneshot};

/// Those who are asked.
#[derive(Debug, Default)]
pub struct RollCall {
    members: Vec<mpsc::Sender<oneshot::Sender<()>>>,
}

impl RollCall {
    /// Has a task answer from now on; it ends as before.
    pub fn enter<F: Future<Output = ()>>(&mut self, task: F) -> impl Future<Output = ()> + use<F> {
        let (ask, mut asked) = mpsc::channel::<oneshot::Sender<()>>(1);
        self.members.push(ask);
        let answer = async move {
            while let Some(answer) = asked.recv().await {
                // Whoever asked may have given up.
                let _ = answer.send(());
            }
            pending().await
        };
        async move {
            tokio::select! {
                () = task => {}
                () = answer => {}
            }
        }
    }

    /// Asks all of them: true when each has answered, false as soon as one is found to have ended.
    ///
    /// A task that hangs keeps this waiting.
    pub async fn is_complete(&self) -> bool {
        for member in &self.members {
            let (answer, answered) = oneshot::channel();
            if member.send(answer).await.is_err() || answered.await.is_err() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::task::Poll;
    use std::time::Duration;

    use tokio::sync::oneshot::channel;
    use tokio::time::timeout;

    #[tokio::test]
    async fn tasks_that_wait_for_work_answer() {
        let mut roll = RollCall::default();
        tokio::spawn(roll.enter(pending()));
        tokio::spawn(roll.enter(pending()));
        assert!(roll.is_complete().await);
        assert!(roll.is_complete().await);
    }

    #[tokio::test]
    async fn a_task_that_has_ended_is_missed() {
        let mut roll = RollCall::default();
        let (end, ended) = channel::<()>();
        tokio::spawn(roll.enter(pending()));
        let task = tokio::spawn(roll.enter(async { ended.await.unwrap() }));
        assert!(roll.is_complete().await);
        end.send(()).unwrap();
        task.await.unwrap();
        assert!(!roll.is_complete().await);
    }

    #[tokio::test]
    async fn a_task_that_panicked_is_missed() {
        let mut roll = RollCall::default();
        let task = tokio::spawn(roll.enter(async { panic!("on purpose") }));
        assert!(task.await.unwrap_err().is_panic());
        assert!(!roll.is_complete().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_nobody_polls_is_waited_for() {
        let mut roll = RollCall::default();
        let mut task = Box::pin(roll.enter(pending()));
        assert!(timeout(Duration::from_secs(3_600), roll.is_complete()).await.is_err());
        let polled =
            std::future::poll_fn(|context| Poll::Ready(task.as_mut().poll(context).is_pending()));
        assert!(polled.await);
    }

    #[tokio::test]
    async fn tasks_go_on_when_nobody_asks_any_more() {
        let mut roll = RollCall::default();
        let (end, ended) = channel::<()>();
        let task = tokio::spawn(roll.enter(async { ended.await.unwrap() }));
        drop(roll);
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        end.send(()).unwrap();
        task.await.unwrap();
    }
}
