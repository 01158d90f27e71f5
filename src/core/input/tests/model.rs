//! Random histories of one session, told to the input and to a naive reference at once.
//!
//! After every step both must agree on who may write, what waits, and what went out.

mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use uuid::Uuid;

use super::*;
use crate::core::caller::Kind;
use crate::core::ids::{ConnectionId, TenantId};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::input::request::{Typing, WriteId, WriteOutcome};
use crate::core::input::tests::model::reference::{
    AGENTS, After, Bytes, GRACE, Hold, KEY, Keyboard, LINE_MAX, Look, MAX_HOLD, OFFER, PERSON_IDLE,
    PRINCIPALS, Reference, TENANT, TENANT_LINE_MAX, TTL_DEFAULT, TTL_MAX, Take, Typed, TypesAgain,
    Verdict, WRITERS, Waiting, Words, is_operator,
};
use crate::core::input::typing::TypedBefore;
use crate::core::keys::{Piece, Unit};
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::record::LeaseRecord;
use crate::core::lease::request::{
    AcquireRequest, Acquired, HandOver, OnDisconnect, ReleaseRequest, RenewRequest,
};
use crate::core::lease::view::{LeaseChange, LeaseEvent};

const STEPS_MAX: usize = 200;
const HISTORIES: u32 = 1_024;
/// Every history starts late enough after boot for the reference to look back.
const BEGIN: u64 = 10_000;
const FLOOR: Epoch = Epoch(41);
/// Each principal has two connections, and speaks on one of them.
const FIRST_CONNECTIONS: [u64; PRINCIPALS] = [0, 1, 2, 3, 4, 5, 6, 7];
const OTHER_CONNECTIONS: [u64; PRINCIPALS] = [8, 9, 10, 11, 12, 13, 14, 15];
const CONNECTIONS: u64 = 16;
const ANSWER: &[u8] = b"\x1b[0n";
const INTERRUPT: &[u8] = &[3];

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    Acquire {
        who: usize,
        shows: Option<usize>,
        ttl: Option<u64>,
        wait: u64,
        after: Option<After>,
    },
    Write {
        who: usize,
        shows: Option<usize>,
        take: Take,
        words: Words,
        named: Option<u8>,
        /// How long ago the frame is that the writer has seen, in frames.
        seen: Option<u64>,
    },
    /// A named write is asked for again with its lease, by anybody of its tenant.
    Retry {
        which: usize,
    },
    Interrupt {
        who: usize,
    },
    TooLong {
        who: usize,
    },
    Resize {
        who: usize,
        shows: Option<usize>,
        take: Take,
    },
    Renew {
        who: usize,
        shows: Option<usize>,
        ttl: Option<u64>,
    },
    Release {
        who: usize,
        shows: Option<usize>,
        to: Option<usize>,
    },
    Rehearse {
        who: usize,
        shows: Option<usize>,
        take: Take,
    },
    Preempt,
    TypeIn {
        who: usize,
        words: Words,
    },
    /// The same under a key of its own.
    TypeKeyed {
        who: usize,
        keys: usize,
    },
    /// What was typed under a key is asked for again.
    TypeAgain {
        which: usize,
    },
    TypeInterrupt {
        who: usize,
    },
    TakeOver {
        who: usize,
    },
    HandBack {
        who: usize,
    },
    Detach {
        who: usize,
    },
    /// The shell publishes a frame.
    Show,
    /// Speaks on its other connection from now on.
    Hop {
        who: usize,
    },
    /// Closes the connection it speaks on; a new one takes its place.
    Disconnect {
        who: usize,
    },
    Cancel {
        wait: u64,
    },
    Undeliverable {
        wait: u64,
    },
    Window {
        seconds: Option<u64>,
    },
    Answer,
    Drain {
        bytes: usize,
    },
    /// The daemon dies, and the next one begins; what it is told of the lease may be lost.
    Restart {
        down: u64,
        is_recorded: bool,
    },
    /// Time passes, and the shell looks when it was told to.
    Tick {
        seconds: u64,
    },
    /// Time passes while nobody looks.
    Jump {
        seconds: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..WRITERS;
    let person = || WRITERS..PRINCIPALS;
    let shows = || proptest::option::weighted(0.25, 0..PRINCIPALS);
    let take = || prop_oneof![3 => Just(Take::Held), 1 => Just(Take::Once), 2 => Just(Take::Keep)];
    let ttl = || proptest::option::of(1..25u64);
    let words = || {
        let keys = (0..4usize).prop_map(Words::Keys);
        prop_oneof![keys, (1..6usize).prop_map(Words::Characters)]
    };
    let after = prop_oneof![Just(After::Nothing), Just(After::Seconds(3)), Just(After::Never)];
    let step = prop_oneof![
        6 => (who(), shows(), ttl(), 0..50u64, proptest::option::of(after)).prop_map(
            |(who, shows, ttl, wait, after)| Step::Acquire { who, shows, ttl, wait, after }
        ),
        8 => (
            (who(), shows(), take(), words()),
            proptest::option::weighted(0.3, 0..2u8),
            proptest::option::weighted(0.7, 0..3u64),
        )
            .prop_map(|((who, shows, take, words), named, seen)| {
                Step::Write { who, shows, take, words, named, seen }
            }),
        2 => (0..6usize).prop_map(|which| Step::Retry { which }),
        1 => who().prop_map(|who| Step::Interrupt { who }),
        1 => who().prop_map(|who| Step::TooLong { who }),
        2 => (who(), shows(), take())
            .prop_map(|(who, shows, take)| Step::Resize { who, shows, take }),
        2 => (who(), shows(), ttl()).prop_map(|(who, shows, ttl)| Step::Renew { who, shows, ttl }),
        3 => (who(), shows(), proptest::option::weighted(0.4, 0..PRINCIPALS))
            .prop_map(|(who, shows, to)| Step::Release { who, shows, to }),
        1 => (who(), shows(), take())
            .prop_map(|(who, shows, take)| Step::Rehearse { who, shows, take }),
        1 => Just(Step::Preempt),
        3 => (person(), words()).prop_map(|(who, words)| Step::TypeIn { who, words }),
        3 => (person(), 1..4usize).prop_map(|(who, keys)| Step::TypeKeyed { who, keys }),
        4 => (0..4usize).prop_map(|which| Step::TypeAgain { which }),
        1 => person().prop_map(|who| Step::TypeInterrupt { who }),
        1 => person().prop_map(|who| Step::TakeOver { who }),
        2 => person().prop_map(|who| Step::HandBack { who }),
        1 => person().prop_map(|who| Step::Detach { who }),
        4 => Just(Step::Show),
        6 => who().prop_map(|who| Step::Hop { who }),
        2 => (0..PRINCIPALS).prop_map(|who| Step::Disconnect { who }),
        1 => (0..12u64).prop_map(|wait| Step::Cancel { wait }),
        1 => (0..12u64).prop_map(|wait| Step::Undeliverable { wait }),
        1 => proptest::option::weighted(0.8, 0..200u64)
            .prop_map(|seconds| Step::Window { seconds }),
        1 => Just(Step::Answer),
        6 => (1..12usize).prop_map(|bytes| Step::Drain { bytes }),
        2 => (1..15u64, proptest::bool::weighted(0.9))
            .prop_map(|(down, is_recorded)| Step::Restart { down, is_recorded }),
        5 => (0..8u64).prop_map(|seconds| Step::Tick { seconds }),
        2 => (0..60u64).prop_map(|seconds| Step::Jump { seconds }),
    ];
    proptest::collection::vec(step, 1..=STEPS_MAX)
}

/// What is known of one write, by the bytes it was to send.
#[derive(Debug, Default)]
struct Story {
    len: usize,
    logged: usize,
    /// The first write of the same text.
    text: u64,
    answered: Option<WriteOutcome>,
    discarded_later: usize,
}

/// The input and the reference, side by side.
struct Pair {
    input: Input,
    reference: Reference,
    /// Seconds that have passed since anybody looked.
    unseen: u64,
    /// The other connection of each principal.
    elsewhere: [u64; PRINCIPALS],
    connections: u64,
    fresh: u128,
    writes: u64,
    stories: BTreeMap<u64, Story>,
    /// What each text has left to go out, by its first write.
    texts: BTreeMap<u64, Vec<u8>>,
    /// By principal and name: the write that first had it, and when it was answered.
    named: BTreeMap<(usize, u8), (u64, Option<u64>)>,
    last_logged: Option<(Epoch, u64)>,
    finished: BTreeSet<u64>,
    newest_epoch: Epoch,
    /// Who wrote in each epoch.
    writers: BTreeMap<Epoch, usize>,
    in_force: Option<Epoch>,
    /// The epoch that was told to be suspended.
    aside: Option<Epoch>,
    answer_bytes: usize,
    /// The watermark of the newest frame.
    watermark: u64,
    /// By write: its tenant, its lease and its name, where it has one.
    keyed: BTreeMap<u64, Keyed>,
    /// What the terminal took under each stamp, and of each named write, with its length.
    stamps: Vec<FormerWrite>,
    taken: BTreeMap<Keyed, (usize, usize)>,
    /// What daemons before made of named writes, and until when that counts.
    former: (BTreeMap<Keyed, (usize, usize)>, u64),
    restarts: u64,
}

type Keyed = (usize, u128, u8);

type Check = Result<(), TestCaseError>;

impl Pair {
    fn new() -> Self {
        let input = Input::new(LeaseManager::new(FLOOR, limits()), WriteWindow::Open);
        let reference = Reference {
            now: BEGIN,
            open_until: u64::MAX,
            epoch: FLOOR.0,
            on: FIRST_CONNECTIONS,
            ..Reference::default()
        };
        Self {
            input,
            reference,
            unseen: 0,
            elsewhere: OTHER_CONNECTIONS,
            connections: CONNECTIONS,
            fresh: 0,
            writes: 10,
            stories: BTreeMap::new(),
            texts: BTreeMap::new(),
            named: BTreeMap::new(),
            last_logged: None,
            finished: BTreeSet::new(),
            newest_epoch: FLOOR,
            writers: BTreeMap::new(),
            in_force: None,
            aside: None,
            answer_bytes: 0,
            watermark: 0,
            keyed: BTreeMap::new(),
            stamps: Vec::new(),
            taken: BTreeMap::new(),
            former: (BTreeMap::new(), 0),
            restarts: 0,
        }
    }

    fn now(&self) -> Moment {
        at(self.reference.now)
    }

    fn caller(&self, who: usize) -> Caller {
        Caller {
            principal: self.principal(who),
            connection: ConnectionId(self.reference.on[who]),
            tenant: TenantId::of_uid(TENANT[who] as u32),
            kind: kind_of(who),
            label: Arc::from("model"),
        }
    }

    fn principal(&self, who: usize) -> PrincipalId {
        principal_of(who, self.restarts)
    }

    fn fresh(&mut self) -> u128 {
        self.fresh += 1;
        self.fresh
    }

    /// The id that was last given to a principal, or one that nobody was given.
    fn id_of(&self, shows: Option<usize>) -> Option<u128> {
        shows.map(|of| self.reference.ids.get(&of).copied().unwrap_or(u128::MAX))
    }

    fn step(&mut self, step: &Step) -> Check {
        if let Step::Jump { seconds } = step {
            self.unseen += seconds;
            return Ok(());
        }
        let unseen = std::mem::take(&mut self.unseen);
        self.reference.advance(self.reference.now + unseen);
        match *step {
            Step::Acquire { who, shows, ttl, wait, after } => {
                self.acquire(who, shows, ttl, wait, after)?;
            }
            Step::Write { who, shows, take, words, named, seen } => {
                self.write(who, self.id_of(shows), take, words, named, seen)?;
            }
            Step::Retry { which } => self.retry(which)?,
            Step::Interrupt { who } => self.interrupt(who)?,
            Step::TooLong { who } => self.write_too_much(who)?,
            Step::Resize { who, shows, take } => self.resize(who, shows, take)?,
            Step::Renew { who, shows, ttl } => self.renew(who, shows, ttl)?,
            Step::Release { who, shows, to } => self.release(who, shows, to)?,
            Step::Rehearse { who, shows, take } => self.rehearse(who, shows, take)?,
            Step::Preempt => self.preempt()?,
            Step::TypeIn { who, words } => self.type_once(who, Some(words))?,
            Step::TypeKeyed { who, keys } => self.type_under_key(who, keys)?,
            Step::TypeAgain { which } => self.type_again(which)?,
            Step::TypeInterrupt { who } => self.type_once(who, None)?,
            Step::TakeOver { who } => self.take_over(who)?,
            Step::HandBack { who } => {
                let had = self.input.hand_back(self.now(), &self.caller(who));
                prop_assert_eq!(had, self.reference.let_person_go(who));
            }
            Step::Detach { who } => {
                self.input.on_person_left(self.now(), self.principal(who));
                self.reference.let_person_go(who);
            }
            Step::Show => {
                self.input.on_time(self.now());
                self.watermark += 1;
                self.input.mark_resumed(Watermark(self.watermark));
                self.reference.show(self.watermark);
            }
            Step::Hop { who } => {
                self.input.on_time(self.now());
                std::mem::swap(&mut self.reference.on[who], &mut self.elsewhere[who]);
            }
            Step::Disconnect { who } => self.disconnect(who),
            Step::Cancel { wait } => self.cancel(wait)?,
            Step::Undeliverable { wait } => self.undeliverable(wait),
            Step::Window { seconds } => self.window(seconds),
            Step::Answer => {
                self.input.on_time(self.now());
                if self.input.answer(ANSWER) {
                    self.answer_bytes += ANSWER.len();
                }
            }
            Step::Drain { bytes } => self.drain(bytes)?,
            Step::Restart { down, is_recorded } => self.restart(down, is_recorded)?,
            Step::Tick { seconds } => return self.tick(seconds),
            Step::Jump { .. } => {}
        }
        self.compare()
    }

    fn acquire(
        &mut self,
        who: usize,
        shows: Option<usize>,
        ttl: Option<u64>,
        wait: u64,
        after: Option<After>,
    ) -> Check {
        let (id, fresh, now) = (self.id_of(shows), self.fresh(), self.reference.now);
        let request = AcquireRequest {
            fresh: lease_id(fresh),
            presented: id.map(lease_id),
            ttl: ttl.map(Duration::from_secs),
            on_disconnect: after.map(on_disconnect),
            reason: None,
            wait_until: Some(at(now + wait)),
            waiters_max: None,
        };
        let acquired = self.input.acquire(at(now), &self.caller(who), request, None);
        let reference = &mut self.reference;
        let open = now < reference.open_until;
        let known = [reference.hold.as_ref(), reference.aside.as_ref().map(|aside| &aside.hold)];
        let held = known.into_iter().flatten().any(|hold| {
            let same = TENANT[hold.who] == TENANT[who];
            id.is_none_or(|id| id == hold.id && same)
        });
        if open && reference.use_lease(who, id, Take::Keep, fresh, true) {
            let hold = reference.hold.as_mut().expect("used");
            hold.ttl = ttl.unwrap_or(hold.ttl);
            hold.after = after.unwrap_or(hold.after);
            (hold.once, hold.used) = (false, now);
            let epoch = hold.epoch;
            reference.tidy();
            prop_assert!(matches!(&acquired, Ok(Acquired::Granted(g)) if g.epoch == Epoch(epoch)));
            return Ok(());
        }
        if open {
            reference.come_back(who, id);
        }
        let of_tenant = reference.line.iter().filter(|w| TENANT[w.who] == TENANT[who]).count();
        let room = reference.line.len() < LINE_MAX && of_tenant < TENANT_LINE_MAX;
        if !open || !held || wait == 0 || !room {
            prop_assert!(acquired.is_err(), "{acquired:?}");
            return Ok(());
        }
        reference.waits += 1;
        reference.line.push(Waiting {
            on: reference.on[who],
            number: reference.waits,
            who,
            id: fresh,
            ttl: ttl.unwrap_or(TTL_DEFAULT),
            after: after.unwrap_or(After::Seconds(GRACE)),
            until: now + wait,
        });
        prop_assert_eq!(acquired, Ok(Acquired::Waiting(WaiterId(reference.waits))));
        reference.advance(now);
        Ok(())
    }

    fn retry(&mut self, which: usize) -> Check {
        let newest = self.keyed.values().rev().nth(which);
        let Some((tenant, lease, name)) = newest.copied() else {
            self.input.on_time(self.now());
            return Ok(());
        };
        let who = TENANT.iter().position(|of| *of == tenant).expect("every tenant has an agent");
        self.write(who, Some(lease), Take::Held, Words::Keys(1), Some(name), None)
    }

    fn write(
        &mut self,
        who: usize,
        id: Option<u128>,
        take: Take,
        words: Words,
        named: Option<u8>,
        seen: Option<u64>,
    ) -> Check {
        let number = self.next_write();
        let text = text_of(number, words);
        let unit = unit_of(&text, words);
        let key = named.map(|name| IdempotencyKey::new(&name.to_string(), 7).expect("short"));
        let known = named.and_then(|name| self.named.get(&(who, name)));
        let fresh_enough = |done: Option<u64>| done.is_none_or(|at| at + 300 > self.reference.now);
        let first = known.filter(|(_, done)| fresh_enough(*done)).map(|(first, _)| *first);
        let fresh = self.fresh();
        let expected = seen.map(|ago| self.watermark.saturating_sub(ago));
        let answer = self.ask(who, id, take, fresh, number, unit, key, expected);
        if let Some(first) = first {
            self.hear()?;
            let replays = match &answer {
                Ok(Accepted::InFlight(write)) => *write == WriteId(first),
                Ok(Accepted::Replayed(outcome)) => self.stories[&first].answered == Some(*outcome),
                Ok(Accepted::Queued { .. }) | Err(_) => false,
            };
            prop_assert!(replays, "a replay has no second effect: {answer:?}");
            return Ok(());
        }
        let lease = id.or_else(|| self.reference.own_id(who));
        let keyed = named.zip(lease).map(|(name, lease)| (TENANT[who], lease, name));
        let counts = self.reference.now < self.former.1;
        let made = keyed.filter(|_| counts).and_then(|it| self.former.0.get(&it));
        if let Some((taken, length)) = made {
            let discarded = length.saturating_sub(*taken);
            let outcome = WriteOutcome { written: *taken, discarded, queued: 0 };
            prop_assert_eq!(answer, Ok(Accepted::Replayed(outcome)), "a replay after a restart");
            let former = self.reference.hold.as_ref().is_some_and(|hold| hold.former.is_some());
            if former && self.reference.now < self.reference.open_until {
                self.reference.use_lease(who, id, Take::Held, fresh, false);
            }
            self.reference.tidy();
            return Ok(());
        }
        let open = self.reference.now < self.reference.open_until;
        let verdict = self.reference.verdict(who, id, take, false);
        let expected = open
            && self.reference.has_seen(verdict, expected)
            && self.reference.use_lease(who, id, take, fresh, false);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        self.note_writer(who, &answer)?;
        if expected {
            let hold = self.reference.hold.as_mut().expect("used");
            hold.look = Look::Nothing;
            if let Some(name) = named {
                self.named.insert((who, name), (number, None));
                self.keyed.insert(number, (TENANT[who], hold.id, name));
            }
            self.follow_write(number, text, words, None);
        }
        self.reference.tidy();
        Ok(())
    }

    /// No two may write in one epoch, whatever ids they show.
    fn note_writer(&mut self, who: usize, answer: &Result<Accepted, WriteError>) -> Check {
        if let Ok(Accepted::Queued { grant, .. }) = answer {
            let party = party_of(who);
            let writer = *self.writers.entry(grant.epoch).or_insert(party);
            prop_assert_eq!(writer, party, "two wrote in one epoch");
        }
        Ok(())
    }

    fn interrupt(&mut self, who: usize) -> Check {
        let number = self.next_write();
        let unit = unit_of(INTERRUPT, Words::Keys(1));
        let seen = Some(self.watermark);
        let answer = self.ask(who, None, Take::Held, 0, number, unit, None, seen);
        let open = self.reference.now < self.reference.open_until;
        let verdict = self.reference.verdict(who, None, Take::Held, false);
        let expected = open
            && self.reference.has_seen(verdict, seen)
            && self.reference.use_lease(who, None, Take::Held, 0, false);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        self.note_writer(who, &answer)?;
        if expected {
            self.reference.hold.as_mut().expect("used").look = Look::Nothing;
            self.reference.bytes.iter_mut().for_each(Bytes::cut);
            self.follow_write(number, INTERRUPT.to_vec(), Words::Keys(1), None);
        }
        self.reference.tidy();
        Ok(())
    }

    fn write_too_much(&mut self, who: usize) -> Check {
        let number = self.next_write();
        let unit = Unit { pieces: vec![Piece::Text(vec![0; Input::QUEUE_BYTES_MAX + 1])] };
        let answer = self.ask(who, None, Take::Held, 0, number, unit, None, Some(self.watermark));
        prop_assert!(answer.is_err(), "more than may wait is refused");
        Ok(())
    }

    /// A person types these words, or an interrupt.
    fn type_once(&mut self, who: usize, words: Option<Words>) -> Check {
        let number = self.next_write();
        let text = words.map_or(INTERRUPT.to_vec(), |words| text_of(number, words));
        self.type_in(who, number, &text, words.unwrap_or(Words::Keys(1)), None)
    }

    fn type_under_key(&mut self, who: usize, keys: usize) -> Check {
        let key = self.writes + 1;
        let typed = Typed { who, len: keys * KEY, taken: 0, asked: false };
        self.reference.typed.insert(key, typed);
        self.type_keyed(key)
    }

    /// A person asks again for what it typed under a key, with this daemon or one before.
    fn type_again(&mut self, which: usize) -> Check {
        self.input.on_time(self.now());
        let newest = self.reference.typed.iter().rev().nth(which);
        // Nobody asks for what a daemon before took after it has been forgotten.
        let known = newest.filter(|(_, typed)| {
            typed.asked || typed.taken == 0 || self.reference.now < self.former.1
        });
        match known.map(|(key, _)| *key) {
            Some(key) => self.type_keyed(key),
            None => Ok(()),
        }
    }

    /// A person types the text of a key, or what is left of it.
    fn type_keyed(&mut self, key: u64) -> Check {
        let number = self.next_write();
        let Typed { who, len, .. } = self.reference.typed[&key];
        let words = Words::Keys(len / KEY);
        let text = text_of(key, words);
        let name = IdempotencyKey::new(&key.to_string(), 7).expect("short");
        let stamp = WriteStamp::of_person(&TenantId::of_uid(TENANT[who] as u32), &name);
        let before = self.input.typed_before(self.now(), &stamp, len);
        match self.reference.types_again(key) {
            TypesAgain::Waits(write) => {
                prop_assert_eq!(before, Ok(TypedBefore::Waits(WriteId(write))));
                self.hear()?;
                let story = self.stories.get_mut(&write).expect("it waits");
                // It is answered again, with all that became of it.
                (story.answered, story.discarded_later) = (None, 0);
                Ok(())
            }
            TypesAgain::From(typed) => {
                prop_assert_eq!(before, Ok(TypedBefore::Bytes(typed)));
                if typed == len {
                    return Ok(());
                }
                self.type_in(who, number, &text[typed..], words, Some((key, stamp)))
            }
        }
    }

    /// A person types a text, as the rest of what a key stands for if there is one.
    fn type_in(
        &mut self,
        who: usize,
        number: u64,
        text: &[u8],
        words: Words,
        key: Option<(u64, WriteStamp)>,
    ) -> Check {
        let (fresh, write) = (self.fresh(), WriteId(number));
        let stamp = key.map(|(_, stamp)| stamp);
        let typing = Typing { unit: unit_of(text, words), write, stamp, fresh: lease_id(fresh) };
        let answer = self.input.type_in(self.now(), &self.caller(who), typing);
        let reference = &mut self.reference;
        let open = reference.now < reference.open_until;
        let expected = open && reference.take_keyboard(who, fresh, Keyboard::Typing);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        if expected {
            reference.tidy();
            if text == INTERRUPT {
                reference.bytes.iter_mut().for_each(Bytes::cut);
            }
            let key = key.map(|(key, _)| key);
            if let Some(typed) = key.and_then(|key| reference.typed.get_mut(&key)) {
                typed.asked = true;
            }
            self.follow_write(number, text.to_vec(), words, key);
        }
        self.reference.tidy();
        Ok(())
    }

    fn take_over(&mut self, who: usize) -> Check {
        let fresh = self.fresh();
        let answer = self.input.take_over(self.now(), &self.caller(who), lease_id(fresh));
        let open = self.reference.now < self.reference.open_until;
        let expected = open && self.reference.take_keyboard(who, fresh, Keyboard::TakenOver);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        self.reference.tidy();
        Ok(())
    }

    fn next_write(&mut self) -> u64 {
        self.writes += 1;
        self.writes
    }

    #[expect(clippy::too_many_arguments, reason = "one call of the harness, all of it random")]
    fn ask(
        &mut self,
        who: usize,
        id: Option<u128>,
        take: Take,
        fresh: u128,
        number: u64,
        unit: Unit,
        key: Option<IdempotencyKey>,
        seen: Option<u64>,
    ) -> Result<Accepted, WriteError> {
        let (presented, take) = (id.map(lease_id), take_rule(take, fresh));
        let (write, expected) = (WriteId(number), seen.map(Watermark));
        let request = WriteRequest { presented, take, unit, write, key, expected };
        if number.is_multiple_of(3) {
            // To let go at once is to be answered at once.
            let (now, caller) = (self.now(), self.caller(who));
            let (accepted, token) = self.input.write_and_hold(now, &caller, request)?;
            token.into_iter().for_each(|token| self.input.let_go(now, token));
            return Ok(accepted);
        }
        self.input.write(self.now(), &self.caller(who), request)
    }

    /// Queues an accepted write in the reference. What is typed again under a key is no new text.
    fn follow_write(&mut self, number: u64, text: Vec<u8>, words: Words, key: Option<u64>) {
        let reference = &mut self.reference;
        let (len, first) = (text.len(), key.unwrap_or(number));
        self.stories.insert(number, Story { len, text: first, ..Story::default() });
        let harmless = harmless_ends(&text, words);
        self.texts.entry(first).or_insert(text);
        reference.bytes.push(Bytes {
            write: number,
            epoch: reference.epoch,
            asked: reference.now,
            answered: false,
            len,
            sent: 0,
            dead: false,
            harmless,
            words,
            key,
        });
    }

    fn resize(&mut self, who: usize, shows: Option<usize>, take: Take) -> Check {
        let (id, fresh) = (self.id_of(shows), self.fresh());
        let rule = take_rule(take, fresh);
        let answer = self.input.authorize(self.now(), &self.caller(who), id.map(lease_id), rule);
        let open = self.reference.now < self.reference.open_until;
        let expected = open && self.reference.use_lease(who, id, take, fresh, false);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        self.reference.tidy();
        Ok(())
    }

    fn rehearse(&mut self, who: usize, shows: Option<usize>, take: Take) -> Check {
        let id = self.id_of(shows);
        let rule = take_rule(take, u128::MAX - 1);
        let answer =
            self.input.would_write(self.now(), &self.caller(who), id.map(lease_id), rule, None);
        let open = self.reference.now < self.reference.open_until;
        let verdict = self.reference.verdict(who, id, take, false);
        let seen = self.reference.has_seen(verdict, None);
        let expected = open && seen && verdict != Verdict::No;
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        Ok(())
    }

    fn renew(&mut self, who: usize, shows: Option<usize>, ttl: Option<u64>) -> Check {
        let id = self.id_of(shows);
        let request =
            RenewRequest { presented: id.map(lease_id), ttl: ttl.map(Duration::from_secs) };
        let answer = self.input.renew(self.now(), &self.caller(who), request, None);
        let open = self.reference.now < self.reference.open_until;
        let expected = open && self.reference.use_lease(who, id, Take::Held, 0, false);
        prop_assert_eq!(answer.is_ok(), expected, "{:?}", answer);
        if expected {
            let hold = self.reference.hold.as_mut().expect("used");
            hold.ttl = ttl.unwrap_or(hold.ttl);
        }
        self.reference.tidy();
        Ok(())
    }

    fn release(&mut self, who: usize, shows: Option<usize>, to: Option<usize>) -> Check {
        let (id, fresh) = (self.id_of(shows), self.fresh());
        let hand_to = to.map(|to| HandOver { to: self.caller(to).name(), fresh: lease_id(fresh) });
        let request = ReleaseRequest { presented: id.map(lease_id), hand_to };
        let answer = self.input.release(self.now(), &self.caller(who), request, None);
        if self.reference.verdict(who, id, Take::Held, true) != Verdict::No {
            prop_assert!(answer.is_ok(), "{answer:?}");
        }
        if self.reference.has_aside(who, id) {
            prop_assert_eq!(answer.is_ok(), to.is_none(), "{:?}", answer);
        }
        self.reference.release(who, id, to.map(|to| (to, fresh)));
        Ok(())
    }

    fn preempt(&mut self) -> Check {
        let by = self.caller(0).name();
        let ended = self.input.preempt(self.now(), by);
        prop_assert_eq!(ended, self.reference.hold.is_some());
        self.reference.aside = None;
        if ended {
            self.reference.end(false);
            self.reference.tidy();
        }
        Ok(())
    }

    fn disconnect(&mut self, who: usize) {
        let (now, closed) = (self.now(), self.reference.on[who]);
        self.input.on_connection_closed(now, ConnectionId(closed));
        self.connections += 1;
        let reference = &mut self.reference;
        reference.on[who] = self.connections;
        let gone = reference.line.iter().filter(|w| w.on == closed).map(|w| w.number);
        reference.turned_away.extend(gone);
        reference.line.retain(|waiting| waiting.on != closed);
        let second = reference.now;
        let aside = reference.aside.as_mut().map(|aside| &mut aside.hold);
        let known = [reference.hold.as_mut(), reference.lapsed.as_mut(), aside];
        for hold in known.into_iter().flatten() {
            if hold.used_on.remove(&closed) && hold.used_on.is_empty() {
                hold.gone = Some(second);
            }
        }
        reference.advance(second);
    }

    fn cancel(&mut self, wait: u64) -> Check {
        let waited = self.input.cancel_wait(self.now(), WaiterId(wait));
        let line = &mut self.reference.line;
        prop_assert_eq!(waited, line.iter().any(|waiting| waiting.number == wait));
        line.retain(|waiting| waiting.number != wait);
        Ok(())
    }

    fn undeliverable(&mut self, wait: u64) {
        self.input.on_undeliverable(self.now(), WaiterId(wait));
        if self.reference.hold.as_ref().is_some_and(|hold| hold.waited == Some(wait)) {
            self.reference.end(false);
            self.reference.tidy();
        }
    }

    fn window(&mut self, seconds: Option<u64>) {
        let now = self.reference.now;
        let window = match seconds {
            None => WriteWindow::Open,
            Some(0) => WriteWindow::Closed,
            Some(seconds) => WriteWindow::Until(at(now + seconds)),
        };
        self.input.set_window(at(now), window);
        self.reference.open_until = seconds.map_or(u64::MAX, |seconds| now + seconds);
        self.reference.advance(now);
    }

    /// The terminal takes bytes, in portions as it likes.
    fn drain(&mut self, mut left: usize) -> Check {
        self.input.on_time(self.now());
        self.hear()?;
        while left > 0
            && let Some(bytes) = self.input.next_bytes().map(|next| next.bytes)
        {
            let taken = bytes.len().min(left);
            let (bytes, epoch) =
                (bytes[..taken].to_vec(), self.input.next_bytes().and_then(|next| next.epoch));
            match epoch {
                Some(epoch) => {
                    self.keep_stamp(taken)?;
                    self.log(epoch, &bytes)?;
                }
                None => self.log_answer(taken)?,
            }
            self.input.on_taken(self.now(), taken);
            self.hear()?;
            if epoch.is_some() {
                self.reference.take(taken);
            }
            left -= taken;
        }
        Ok(())
    }

    /// Adds up what went out under each stamp, as whoever outlives the daemon does.
    fn keep_stamp(&mut self, taken: usize) -> Check {
        let front = self.reference.bytes.first();
        let (write, length) = front.map_or((0, 0), |write| (write.write, write.len));
        let (keyed, typed) = (self.keyed.get(&write), front.and_then(|write| write.key));
        let stamp = self.input.next_bytes().and_then(|next| next.stamp);
        let is_named = keyed.is_some() || typed.is_some();
        prop_assert_eq!(stamp.is_some(), is_named, "named writes alone have a stamp");
        if let Some(keyed) = keyed {
            self.taken.entry(*keyed).or_insert((0, length)).0 += taken;
        }
        if let Some(stamp) = stamp {
            match self.stamps.iter_mut().find(|write| write.stamp == stamp) {
                Some(known) => known.taken += taken,
                None => self.stamps.push(FormerWrite {
                    stamp,
                    own: None,
                    taken,
                    length: Some(length),
                    command: None,
                }),
            }
        }
        Ok(())
    }

    fn restart(&mut self, down: u64, is_recorded: bool) -> Check {
        // Whoever told everything so far has also told how the lease stands.
        self.input.on_time(self.now());
        self.hear()?;
        let record = self.input.lease().record();
        let record = if is_recorded { record } else { LeaseRecord::default() };
        let written = self.last_logged.map_or(Epoch(0), |(epoch, _)| epoch);
        let window = match self.reference.open_until {
            0 => WriteWindow::Closed,
            u64::MAX => WriteWindow::Open,
            end => WriteWindow::Until(at(end)),
        };
        let told = self.newest_epoch;
        self.reference.restart(down, is_recorded, written.0);
        let lease = LeaseManager::recovered(record, written, limits(), self.now());
        (self.in_force, self.aside) = (lease.epoch(), None);
        prop_assert!(self.in_force.is_none_or(|epoch| told < epoch), "an epoch does not grow");
        self.newest_epoch = self.in_force.unwrap_or(told);
        self.input = Input::new(lease, window).with_former(self.now(), self.stamps.clone());
        self.former = (self.taken.clone(), self.reference.now + 300);
        self.restarts += 1;
        self.reference.on = FIRST_CONNECTIONS;
        (self.elsewhere, self.connections) = (OTHER_CONNECTIONS, CONNECTIONS);
        self.named.clear();
        self.answer_bytes = 0;
        self.input.on_time(self.now());
        Ok(())
    }

    fn log(&mut self, epoch: Epoch, bytes: &[u8]) -> Check {
        let front = self.reference.bytes.first();
        let (write, left) = front.map_or((0, 0), |write| (write.write, write.len - write.sent));
        prop_assert!(bytes.len() <= left, "a byte went out after the end of its epoch was told");
        prop_assert_eq!(front.map(|write| write.epoch), Some(epoch.0));
        let (before, last) = self.last_logged.unwrap_or((FLOOR, 0));
        prop_assert!(before <= epoch, "the epochs of the log decrease");
        if last != write {
            self.finished.insert(last);
        }
        prop_assert!(!self.finished.contains(&write), "the bytes of a write are torn apart");
        self.last_logged = Some((epoch, write));
        let story = self.stories.get_mut(&write).expect("queued");
        story.logged += bytes.len();
        let text = self.texts.get_mut(&story.text).expect("queued");
        prop_assert!(text.starts_with(bytes), "a byte goes out twice, or in another order");
        text.drain(..bytes.len());
        Ok(())
    }

    fn log_answer(&mut self, taken: usize) -> Check {
        let between = |write: &Bytes| match write.words {
            Words::Keys(_) => write.sent.is_multiple_of(KEY),
            Words::Characters(_) => write.sent == 0,
        };
        let between = self.reference.bytes.first().is_none_or(between);
        prop_assert!(between, "an answer splits a key or a text");
        prop_assert!(taken <= self.answer_bytes);
        self.answer_bytes -= taken;
        Ok(())
    }

    fn tick(&mut self, seconds: u64) -> Check {
        let from = self.reference.now;
        self.input.on_time(at(from));
        self.compare()?;
        for second in from + 1..=from + seconds {
            self.reference.advance(second);
            if self.input.deadline().is_some_and(|deadline| deadline <= at(second)) {
                self.input.on_time(at(second));
            }
            self.compare()?;
        }
        Ok(())
    }

    /// Everything that can be seen must be as the reference says.
    fn compare(&mut self) -> Check {
        self.hear()?;
        let (lease, reference) = (self.input.lease(), &mut self.reference);
        let hold = reference.hold.as_ref();
        prop_assert_eq!(lease.epoch(), hold.map(|hold| Epoch(hold.epoch)));
        let holder = lease.holder().map(|holder| holder.principal);
        prop_assert_eq!(holder, hold.map(|hold| principal_of(hold.who, self.restarts)));
        let now = at(reference.now);
        let left = lease.expires_at(now).map(|at| now.until(at));
        prop_assert_eq!(left, reference.left().map(Duration::from_secs));
        prop_assert!(left.is_none_or(|left| left <= Duration::from_secs(TTL_MAX)));
        let view = lease.view();
        let aside = view.suspended.map(|suspended| suspended.by.principal);
        let aside_of = |hold: &Hold| principal_of(hold.who, self.restarts);
        let expected = reference.aside.as_ref().map(|aside| aside_of(&aside.hold));
        prop_assert_eq!(aside, expected);
        let reclaimable = view.holding.as_ref().is_some_and(|holding| holding.reclaimable);
        prop_assert_eq!(reclaimable, hold.is_some_and(|hold| hold.former.is_some()));
        let human = view.holding.is_some_and(|holding| holding.kind == Kind::Human);
        prop_assert_eq!(human, hold.is_some_and(|hold| hold.keyboard.is_some()));
        prop_assert!(human || aside.is_none(), "a lease is suspended and nobody types");
        prop_assert_eq!(lease.view().waiters, reference.line.len());
        prop_assert!(reference.line.len() <= LINE_MAX);
        let waiting: usize = reference.bytes.iter().map(|write| write.len - write.sent).sum();
        prop_assert_eq!(self.input.queued_bytes(), waiting);
        prop_assert!(waiting <= Input::QUEUE_BYTES_MAX);
        prop_assert!(self.answer_bytes <= Input::ANSWER_BYTES_MAX);

        let grants = self.input.take_grants();
        let mut grants: Vec<_> = grants.iter().map(|(w, grant)| (w.0, grant.epoch.0)).collect();
        let mut served = std::mem::take(&mut reference.served);
        // One principal's own waits are answered together, in no order of their own.
        grants.sort_unstable();
        served.sort_unstable();
        prop_assert_eq!(grants, served);
        let refusals = self.input.take_refusals();
        let refused: BTreeSet<_> = refusals.iter().map(|(waiter, _)| waiter.0).collect();
        let turned_away = std::mem::take(&mut reference.turned_away);
        prop_assert_eq!(refused, turned_away.into_iter().collect());
        Ok(())
    }

    /// Takes in what the input has to say, and checks that it makes sense by itself.
    fn hear(&mut self) -> Check {
        for Completion { write, outcome } in self.input.take_completions() {
            let now = self.reference.now;
            let names = self.named.values_mut().filter(|(first, _)| *first == write.0);
            names.for_each(|(_, done)| *done = Some(now));
            let Some(story) = self.stories.get_mut(&write.0) else {
                return Err(TestCaseError::fail("a refused write was answered"));
            };
            prop_assert_eq!(story.answered, None, "a write is answered once");
            let WriteOutcome { written, discarded, queued } = outcome;
            prop_assert_eq!(written, story.logged, "what was written is what the log shows");
            prop_assert_eq!(written + discarded + queued, story.len);
            story.answered = Some(outcome);
        }
        for event in self.input.take_events() {
            match event {
                InputEvent::Lease(event) => self.hear_lease(&event)?,
                InputEvent::Discarded(discarded) => {
                    let story = self.stories.get_mut(&discarded.write.0).expect("queued");
                    let queued = story.answered.map_or(0, |outcome| outcome.queued);
                    story.discarded_later += discarded.bytes;
                    prop_assert!(story.discarded_later <= queued);
                }
            }
        }
        Ok(())
    }

    fn hear_lease(&mut self, event: &LeaseEvent) -> Check {
        match &event.change {
            LeaseChange::Granted | LeaseChange::Resumed => {
                prop_assert!(self.newest_epoch < event.epoch, "an epoch does not grow");
                prop_assert_eq!(self.in_force, None, "two leases are in force");
                (self.newest_epoch, self.in_force) = (event.epoch, Some(event.epoch));
                if event.change == LeaseChange::Resumed {
                    prop_assert!(self.aside.take().is_some(), "nothing was suspended");
                }
            }
            LeaseChange::Revived => {
                prop_assert_eq!(self.newest_epoch, event.epoch);
                prop_assert_eq!(self.in_force, None);
                self.in_force = Some(event.epoch);
            }
            LeaseChange::Suspended { .. } => {
                prop_assert_eq!(self.in_force, Some(event.epoch));
                prop_assert_eq!(self.aside, None);
                (self.in_force, self.aside) = (None, Some(event.epoch));
            }
            LeaseChange::Renewed => prop_assert_eq!(self.in_force, Some(event.epoch)),
            LeaseChange::Ended(_) if self.aside == Some(event.epoch) => self.aside = None,
            LeaseChange::Ended(_) => {
                prop_assert_eq!(self.in_force, Some(event.epoch));
                self.in_force = None;
            }
        }
        Ok(())
    }
}

fn limits() -> LeaseLimits {
    LeaseLimits {
        max_hold: Duration::from_secs(MAX_HOLD),
        waiters_max: LINE_MAX,
        tenant_waiters_max: TENANT_LINE_MAX,
        ttl_default: Duration::from_secs(TTL_DEFAULT),
        grace_default: Duration::from_secs(GRACE),
        offer: Duration::from_secs(OFFER),
        ttl_max: Duration::from_secs(TTL_MAX),
        person_idle: Duration::from_secs(PERSON_IDLE),
        ..LeaseLimits::default()
    }
}

/// Each daemon counts its principals anew, so that each number goes to another one.
fn principal_of(who: usize, restarts: u64) -> PrincipalId {
    let number = (who as u64 + restarts) % PRINCIPALS as u64;
    if who < PRINCIPALS { PrincipalId::Connection(number) } else { PrincipalId::FORMER }
}

fn kind_of(who: usize) -> Kind {
    match who {
        who if who < AGENTS => Kind::Agent,
        who if is_operator(who) => Kind::Operator,
        _ => Kind::Human,
    }
}

/// Whom a write counts for: the connections of the command line are one.
fn party_of(who: usize) -> usize {
    if is_operator(who) { AGENTS } else { who }
}

fn at(second: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(second))
}

fn lease_id(number: u128) -> LeaseId {
    LeaseId(Uuid::from_u128(number))
}

/// So many keys or characters, which tell whose they are or where.
fn text_of(write: u64, words: Words) -> Vec<u8> {
    let own = u8::try_from(write).expect("a history has fewer writes than bytes have values");
    let byte = |place: usize| if place.is_multiple_of(KEY) { own } else { place as u8 };
    match words {
        Words::Keys(keys) => (0..keys * KEY).map(byte).collect(),
        Words::Characters(count) => {
            (0..count).map(|place| character(own, place)).collect::<String>().into_bytes()
        }
    }
}

/// A character of one to four bytes, each write beginning with another length.
fn character(own: u8, place: usize) -> char {
    let firsts = [' ', '\u{100}', '\u{1000}', '\u{1f300}'];
    let first = firsts[(usize::from(own) + place) % firsts.len()];
    char::from_u32(u32::from(first) + u32::from(own) % 64).expect("all of these are characters")
}

fn unit_of(text: &[u8], words: Words) -> Unit {
    let pieces = match words {
        Words::Keys(_) => text.chunks(KEY).map(|key| Piece::Key(key.to_vec())).collect(),
        Words::Characters(_) => vec![Piece::Text(text.to_vec())],
    };
    Unit { pieces }
}

/// Where a text may end without splitting a key or a character.
fn harmless_ends(text: &[u8], words: Words) -> Vec<usize> {
    let inside = |place: usize| match words {
        Words::Keys(_) => !place.is_multiple_of(KEY),
        Words::Characters(_) => text.get(place).is_some_and(|byte| (0x80..0xc0).contains(byte)),
    };
    (0..=text.len()).filter(|place| *place == text.len() || !inside(*place)).collect()
}

fn on_disconnect(after: After) -> OnDisconnect {
    match after {
        After::Nothing => OnDisconnect::Release,
        After::Seconds(seconds) => OnDisconnect::Grace(Duration::from_secs(seconds)),
        After::Never => OnDisconnect::Keep,
    }
}

fn take_rule(take: Take, fresh: u128) -> TakeRule {
    match take {
        Take::Held => TakeRule::HeldOnly,
        Take::Once => TakeRule::ForThisCall(lease_id(fresh)),
        Take::Keep => TakeRule::AndKeep(lease_id(fresh), Duration::from_secs(TTL_DEFAULT)),
    }
}

fn check(steps: &[Step]) -> Check {
    let mut pair = Pair::new();
    steps.iter().try_for_each(|step| pair.step(step))
}

#[test]
fn every_history_is_as_the_reference_tells_it() {
    // The same histories every time.
    let config = Config {
        cases: HISTORIES,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&steps(), |steps| check(&steps)).unwrap();
}
