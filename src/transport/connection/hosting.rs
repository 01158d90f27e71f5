//! Does the work of a connection's guests inside the connection's task.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use crate::mcp::guests::Guests;

/// Does the work of all guests. It ends only by being dropped, and all guests with it.
pub(super) async fn host(guests: &Guests) {
    let closing = CloseOnDrop(guests);
    let mut present = FuturesUnordered::new();
    poll_fn(|context| {
        let arrived = guests.take(context.waker()).into_iter();
        present.extend(arrived.map(|guest| AssertUnwindSafe(guest).catch_unwind()));
        while let Poll::Ready(Some(_)) = present.poll_next_unpin(context) {}
        Poll::<()>::Pending
    })
    .await;
    drop(closing);
}

struct CloseOnDrop<'a>(&'a Guests);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_guest_is_served_by_the_task_and_its_result_comes_back() {
        let guests = Arc::new(Guests::default());
        let serving = tokio::spawn({
            let guests = Arc::clone(&guests);
            async move { host(&guests).await }
        });
        let task = serving.id();
        assert_eq!(guests.host(async { tokio::task::id() }).await, Some(task));
        let panicked: Option<()> = guests.host(async { panic!("on purpose") }).await;
        assert_eq!(panicked, None);
        assert_eq!(guests.host(async { 2 }).await, Some(2), "the task goes on");
        serving.abort();
        assert!(serving.await.is_err());
        assert_eq!(guests.host(async { 3 }).await, None);
    }

    #[tokio::test]
    async fn a_guest_leaves_with_whoever_asked_and_with_the_task() {
        let guests = Guests::default();
        let (inside, mut outside) = oneshot::channel::<()>();
        let hosted = guests.host(async move {
            let _inside = inside;
            std::future::pending::<()>().await;
        });
        let mut serving = Box::pin(host(&guests));
        assert!(futures_util::poll!(&mut serving).is_pending());
        drop(hosted);
        assert!(futures_util::poll!(&mut serving).is_pending());
        assert_eq!(outside.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        let hosted = guests.host(std::future::pending::<()>());
        assert!(futures_util::poll!(&mut serving).is_pending());
        drop(serving);
        assert_eq!(hosted.await, None);
    }
}
