//! Work that the task of a connection does for requests which the library runs in tasks of their own.
//!
//! What that work sends is then written in the same turn of the same task, without waking another.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::oneshot;

/// Such a piece of work.
pub type Guest = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The guests of one connection that its task has not taken in yet.
#[derive(Default)]
pub struct Guests(Mutex<Reception>);

#[derive(Default)]
struct Reception {
    /// Each belongs to a request in flight, which bounds them.
    arrived: Vec<Guest>,
    task: Option<Waker>,
    closed: bool,
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guests")
    }
}

impl Guests {
    /// Has the connection's task do this work, and returns its result; `None` if the task has ended or the work has
    /// panicked. Dropping the returned future ends the work.
    pub fn host<T, W>(&self, work: W) -> impl Future<Output = Option<T>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let (mut done, result) = oneshot::channel();
        let guest = async move {
            let result = tokio::select! {
                biased;
                () = done.closed() => return,
                result = work => result,
            };
            // Whoever asked may have gone.
            let _ = done.send(result);
        };
        let mut reception = self.lock();
        if !reception.closed {
            reception.arrived.push(Box::pin(guest));
        }
        let task = reception.task.take();
        drop(reception);
        if let Some(task) = task {
            task.wake();
        }
        async { result.await.ok() }
    }

    /// Takes those who have arrived. The next one wakes the task.
    pub fn take(&self, task: &Waker) -> Vec<Guest> {
        let mut reception = self.lock();
        reception.task = Some(task.clone());
        std::mem::take(&mut reception.arrived)
    }

    /// Turns away whoever has not been taken, and whoever comes later.
    pub fn close(&self) {
        let mut reception = self.lock();
        reception.closed = true;
        let turned_away = std::mem::take(&mut reception.arrived);
        drop(reception);
        drop(turned_away);
    }

    fn lock(&self) -> MutexGuard<'_, Reception> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
