//! What is kept beside the terminal, and when.

use std::sync::Mutex;

use super::*;
use crate::core::caller::Kind;
use crate::core::lease::record::LeaseRecord;
use crate::session::pty::Note;
use crate::session::records::lease::from_note;

/// The records of the lease that were kept so far, in order.
fn kept(desk: &Desk) -> Vec<LeaseRecord> {
    let notes = desk.terminal.notes().into_iter();
    let lease = notes.filter(|(note, _)| *note == Note::Lease);
    lease.map(|(_, bytes)| from_note(&bytes).expect("it was just written")).collect()
}

fn newest(desk: &Desk) -> LeaseRecord {
    kept(desk).pop().expect("one is kept from the beginning")
}

/// What could be seen when a record was kept: its epoch, the epoch in the frame, the bytes written.
type Seen = (Epoch, Option<Epoch>, usize);

fn watch_notes(desk: &Desk) -> Arc<Mutex<Vec<Seen>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (session, terminal, list) = (desk.session.clone(), desk.terminal.clone(), seen.clone());
    desk.terminal.on_note(move |note, bytes| {
        if note == Note::Lease {
            let epoch = from_note(bytes).expect("it was just written").epoch;
            let shown = session.frame().lease.value.holding.as_ref().map(|it| it.epoch);
            list.lock().unwrap().push((epoch, shown, terminal.written().len()));
        }
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn the_session_and_its_lease_are_kept_from_the_beginning() {
    let desk = Desk::open();
    let kinds: Vec<_> = desk.terminal.notes().into_iter().map(|(note, _)| note).collect();
    assert_eq!(kinds, [Note::Identity, Note::Lease, Note::Commands]);
    assert_eq!(newest(&desk), LeaseRecord::default());
}

#[tokio::test(start_paused = true)]
async fn a_grant_and_its_end_are_kept_before_any_frame_shows_them() {
    let desk = Desk::open();
    let seen = watch_notes(&desk);
    let lease = desk.acquire(&agent(1)).await.expect("free");
    assert_eq!(newest(&desk).holding.map(|holding| holding.lease), Some(lease));
    desk.session.permitted_preempt(&agent(9)).await.expect("alive");
    assert_eq!(newest(&desk), LeaseRecord { epoch: Epoch(1), holding: None });
    assert_eq!(*seen.lock().unwrap(), [(Epoch(1), None, 0), (Epoch(1), Some(Epoch(1)), 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_by_a_write_is_kept_before_its_first_byte_goes_out() {
    let desk = Desk::open();
    let seen = watch_notes(&desk);
    let take = TakeRule::AndKeep(fresh(), Duration::from_secs(30));
    desk.write(WriteOrder { take, ..typing(&agent(1), "ls") }).await.expect("free");
    assert_eq!(*seen.lock().unwrap(), [(Epoch(1), None, 0)]);
    assert_eq!(desk.terminal.written(), b"ls");
}

#[tokio::test(start_paused = true)]
async fn writing_and_reading_keep_nothing_anew() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let before = kept(&desk).len();
    for _ in 0..3 {
        desk.write(typing(&agent(1), "ls")).await.expect("held");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    desk.terminal.push("out");
    desk.until_shown("out").await;
    assert_eq!(kept(&desk).len(), before);
}

#[tokio::test(start_paused = true)]
async fn an_expiry_that_nobody_asked_about_is_kept() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.until_lease(true).await;
    desk.until_lease(false).await;
    assert_eq!(newest(&desk).holding, None);
}

#[tokio::test(start_paused = true)]
async fn the_lease_below_a_person_is_kept_with_the_duty_to_look() {
    let desk = Desk::open();
    let lease = desk.acquire(&agent(1)).await.expect("free");
    let ada = Caller { kind: Kind::Human, ..agent(2) };
    desk.session.permitted_take_over(ada.clone(), None).await.expect("people come first");
    let below = newest(&desk);
    let holding = below.holding.expect("it stands aside");
    assert_eq!((holding.lease, holding.must_look), (lease, true));
    desk.session.hand_back(ada).await.expect("alive");
    let back = newest(&desk);
    assert!(back.epoch > below.epoch);
    assert!(back.holding.is_some_and(|holding| holding.must_look));
}
