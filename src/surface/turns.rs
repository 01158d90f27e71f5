//! Turns for work whose size callers choose, such as a pattern or a large history, so that it delays no other call.
//!
//! Separate threads do it, one slice after the other, in turn. The memory for patterns is counted here too.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::core::ids::TenantId;
use crate::surface::error::SurfaceError;

/// How many cells of screens or history a call goes through where others wait behind it: some tenths of a
/// millisecond, whatever is made of them.
const CELLS_HERE: usize = 1 << 13;
/// The memory that the patterns of one tenant may take.
const TENANT_BYTES_MAX: usize = 16 << 20;
/// How many reads of files of a tenant's choice may be under way. A file system that hangs keeps one.
const TENANT_READS_MAX: usize = 4;
/// It is counted in pieces of so many bytes.
const PIECE_BYTES: usize = 1 << 10;

/// Whether going through about so many cells delays nobody who waits behind it.
pub fn is_short(cells: usize) -> bool {
    cells <= CELLS_HERE
}

/// The turns of all, and the memory for patterns.
///
/// Whoever waits for a turn stands in the line of its tenant, and the first ones of each tenant stand in
/// the line of all: so tenants take turns, and the waits of each tenant among themselves.
#[derive(Debug)]
pub struct Turns {
    turns: Arc<Semaphore>,
    at_once: usize,
    /// Those that have turns or memory, and others until a new one comes.
    tenants: Mutex<HashMap<TenantId, Arc<Tenant>>>,
}

#[derive(Debug)]
struct Tenant {
    turns: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl Default for Turns {
    /// Half of the machine's cores at once, so that the others are there for everybody else.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::new((cores / 2).max(1))
    }
}

impl Turns {
    fn new(at_once: usize) -> Self {
        let turns = Arc::new(Semaphore::new(at_once));
        Self { turns, at_once, tenants: Mutex::default() }
    }

    /// How many turns there are at once.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// What somebody of this tenant may use.
    pub fn share_of(&self, tenant: &TenantId) -> Share {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tenants.get(tenant).cloned();
        let tenant = known.unwrap_or_else(|| {
            let memory = Arc::new(Semaphore::new(TENANT_BYTES_MAX / PIECE_BYTES));
            let turns = Arc::new(Semaphore::new(self.at_once));
            let reads = Arc::new(Semaphore::new(TENANT_READS_MAX));
            let fresh = Arc::new(Tenant { turns, memory, reads });
            tenants.retain(|_, known| Arc::strong_count(known) > 1);
            tenants.insert(tenant.clone(), Arc::clone(&fresh));
            fresh
        });
        Share { tenant, turns: Arc::clone(&self.turns) }
    }
}

/// The turns and the memory of one tenant; clones are the same.
#[derive(Clone, Debug)]
pub struct Share {
    tenant: Arc<Tenant>,
    turns: Arc<Semaphore>,
}

/// Memory for patterns, free for others of the tenant once this is dropped.
#[derive(Debug)]
pub struct Reserved(
    #[allow(dead_code, reason = "it counts until it is dropped")] OwnedSemaphorePermit,
);

impl Share {
    /// Counts the memory of patterns that are about to be waited for.
    ///
    /// # Errors
    /// [`SurfaceError::Quota`] when the tenant has no more.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, SurfaceError> {
        let over = SurfaceError::Quota("the memory for patterns of one user");
        let Ok(pieces) = u32::try_from(bytes.div_ceil(PIECE_BYTES)) else { return Err(over) };
        let reserved = Arc::clone(&self.tenant.memory).try_acquire_many_owned(pieces);
        reserved.map(Reserved).map_err(|_| over)
    }

    /// Does what goes through about so many cells: here and now, or in a turn where that takes long.
    pub async fn off_worker<T: Send + 'static>(
        &self,
        cells: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if is_short(cells) { work() } else { self.turn().await.work(work).await }
    }

    /// Reads files of the tenant's choice, once fewer than four such reads are under way.
    ///
    /// It takes up none of the turns, since it may take for ever; and counts until it is over, also when
    /// nobody waits for it any more. None when the runtime ends or the read fails by a panic.
    pub async fn read_files<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let tenant = Arc::clone(&self.tenant);
        let permit = Arc::clone(&tenant.reads).acquire_owned().await.ok();
        let reading = spawn_blocking(move || {
            // What is known of the tenant stays known until then.
            let _counted = (permit, tenant);
            read()
        });
        reading.await.ok()
    }

    /// Waits for a turn.
    pub async fn turn(&self) -> WorkTurn {
        // The one of the tenant first, so that a tenant has no more in the line of all than may be served
        // at once. Neither line is ever closed.
        let own = Arc::clone(&self.tenant.turns).acquire_owned().await.ok();
        let all = Arc::clone(&self.turns).acquire_owned().await.ok();
        WorkTurn { _permits: [own, all] }
    }
}

/// A turn, which ends with the work that it is used for.
#[derive(Debug)]
pub struct WorkTurn {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl WorkTurn {
    /// Works on a thread that nobody else waits for.
    pub async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        // Also when nobody is there any more to take the result, the turn is over with the work only.
        let worked = spawn_blocking(move || (work(), self)).await;
        match worked {
            Ok((result, turn)) => {
                drop(turn);
                result
            }
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// What has come by now, if it has.
    fn now<T>(wanted: impl Future<Output = T> + Unpin) -> Option<T> {
        match pin!(wanted).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(came) => Some(came),
            Poll::Pending => None,
        }
    }

    fn tenant(uid: u32) -> TenantId {
        TenantId::of_uid(uid)
    }

    #[test]
    fn the_memory_of_a_tenant_is_bounded_and_free_again_when_a_wait_ends() {
        let turns = Turns::new(1);
        let share = turns.share_of(&tenant(1));
        let most = share.reserve(TENANT_BYTES_MAX - PIECE_BYTES).unwrap();
        let last = turns.share_of(&tenant(1)).reserve(1).unwrap();
        let refused = share.reserve(1).unwrap_err();
        assert!(matches!(refused, SurfaceError::Quota(_)), "{refused}");
        assert!(turns.share_of(&tenant(2)).reserve(TENANT_BYTES_MAX).is_ok());
        drop(last);
        assert!(share.reserve(1).is_ok());
        drop(most);
        assert!(share.reserve(TENANT_BYTES_MAX).is_ok());
        assert!(share.reserve(usize::MAX).is_err());
    }

    #[test]
    fn tenants_take_turns_however_many_wait_of_one() {
        let turns = Turns::new(1);
        let (many, one) = (turns.share_of(&tenant(1)), turns.share_of(&tenant(2)));
        let first = now(Box::pin(many.turn())).unwrap();
        let mut others: Vec<_> = (0..10).map(|_| Box::pin(many.turn())).collect();
        assert!(others.iter_mut().all(|other| now(other).is_none()));
        let mut alone = Box::pin(one.turn());
        assert!(now(&mut alone).is_none());
        drop(first);
        assert!(others.iter_mut().all(|other| now(other).is_none()), "it is the other's turn");
        let turn = now(&mut alone).unwrap();
        assert!(now(Box::pin(one.turn())).is_none());
        drop(turn);
        let turns: Vec<WorkTurn> = others.iter_mut().filter_map(now).collect();
        assert_eq!(turns.len(), 1);
    }

    #[tokio::test]
    async fn only_large_work_waits_for_a_turn_and_is_done_elsewhere() {
        let turns = Turns::new(1);
        let share = turns.share_of(&tenant(1));
        let here = std::thread::current().id();
        let others = share.turn().await;
        let small = now(Box::pin(share.off_worker(CELLS_HERE, || std::thread::current().id())));
        assert_eq!(small, Some(here));
        let mut large = Box::pin(share.off_worker(CELLS_HERE + 1, || std::thread::current().id()));
        assert_eq!(now(&mut large), None);
        drop(others);
        assert_ne!(large.await, here);
    }

    #[tokio::test]
    async fn reads_of_one_tenant_that_never_end_keep_no_other_from_reading() {
        let turns = Turns::new(1);
        let (hanging, other) = (turns.share_of(&tenant(1)), turns.share_of(&tenant(2)));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let mut reads: Vec<_> = (0..=TENANT_READS_MAX)
            .map(|_| {
                let ended = Arc::clone(&ended);
                Box::pin(hanging.read_files(move || ended.lock().unwrap().recv().is_err()))
            })
            .collect();
        assert!(reads.iter_mut().all(|read| now(read).is_none()));
        assert_eq!(other.read_files(|| 1).await, Some(1));
        // Nobody waits for them any more, and they count all the same.
        drop(reads);
        drop(hanging);
        let again = turns.share_of(&tenant(1));
        let mut late = Box::pin(again.read_files(|| 2));
        assert!(now(&mut late).is_none());
        drop(end);
        assert_eq!(late.await, Some(2));
    }

    #[test]
    fn what_is_not_used_any_more_is_forgotten() {
        let turns = Turns::new(1);
        for uid in 0..100 {
            turns.share_of(&tenant(uid));
        }
        assert_eq!(turns.tenants.lock().unwrap().len(), 1);
    }
}
