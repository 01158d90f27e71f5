//! Whether all that the clients of one session were answered can have happened in one order that the rules of a
//! lease allow, and that typed the very bytes which the program read.
//!
//! The search is that of Wing and Gong, and remembers where it has been. The rules are written down here a second
//! time, as plainly as they can be said, and nothing of the program is used.

use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::time::Duration;

/// A principal: a connection of its own.
pub(crate) type Client = u64;

/// More calls than this are too many for one search.
const CALLS_MAX: usize = 256;
/// So many places may be visited before the search is given up.
const PLACES_MAX: usize = 2_000_000;

/// What a client does. Ids of leases are those that it shows; without one it goes by its name.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Acquire {
        shown: Option<u128>,
        ttl: Duration,
    },
    Renew {
        shown: u128,
    },
    Release {
        shown: u128,
    },
    Write {
        shown: Option<u128>,
        text: String,
    },
    /// An operator ends the lease.
    Preempt,
    /// Its connection closes, and its lease ends this long after that.
    Leave {
        grace: Duration,
    },
    /// It may not write any more.
    Revoke,
    /// The daemon is killed and another one serves, which keeps the lease for this long for who shows its id.
    Restart {
        grace: Duration,
    },
}

/// What it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted {
        lease: u128,
        epoch: u64,
        revived: bool,
    },
    /// So many bytes were typed, and so many more may be.
    Wrote {
        bytes: usize,
        queued: usize,
        epoch: Option<u64>,
    },
    Released,
    AlreadyGone,
    /// Whether there was a lease, and how many bytes the program had been given when this was answered.
    Preempted {
        ended: bool,
        typed: Option<usize>,
    },
    Restarted,
    Refused(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Required,
    Held,
    Lost,
    Superseded,
    /// It is held, and no more callers may wait for it.
    QueueFull,
}

/// When something happened: its place among all that was noted, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    place: u64,
    at: Duration,
}

/// One call and its answer; without one it may have had its effect at any time, or never.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    client: Client,
    action: Action,
    begun: Stamp,
    answer: Option<(Stamp, Outcome)>,
}

impl Call {
    fn outcome(&self) -> Option<&Outcome> {
        self.answer.as_ref().map(|(_, outcome)| outcome)
    }

    fn latest(&self) -> Duration {
        self.answer.as_ref().map_or(Duration::MAX, |(stamp, _)| stamp.at)
    }
}

/// The calls of one session, as they are noted.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<(u64, Vec<Call>)>);

impl History {
    /// Notes that a client is about to ask, and gives the call a number.
    pub(crate) fn begin(&self, at: Duration, client: Client, action: Action) -> usize {
        let (place, calls) = &mut *self.0.lock().unwrap();
        *place += 1;
        calls.push(Call { client, action, begun: Stamp { place: *place, at }, answer: None });
        calls.len() - 1
    }

    /// Notes the answer to a call.
    pub(crate) fn end(&self, at: Duration, number: usize, outcome: Outcome) {
        let (place, calls) = &mut *self.0.lock().unwrap();
        *place += 1;
        calls[number].answer = Some((Stamp { place: *place, at }, outcome));
    }

    /// Looks for an order of all calls that ends with this typed; `slack` is by how much clocks may differ.
    ///
    /// # Errors
    /// The longest beginning of an order that was found, and what cannot follow.
    pub(crate) fn check(&self, typed: &str, slack: Duration) -> Result<(), String> {
        let calls = &self.0.lock().unwrap().1;
        assert!(calls.len() <= CALLS_MAX, "{} calls are too many", calls.len());
        let mut search = Search { calls, typed, slack, seen: HashSet::new(), best: Vec::new() };
        match search.goes_on(Done::default(), &State::default(), &mut Vec::new()) {
            true => Ok(()),
            false => Err(search.complaint()),
        }
    }

    /// How many calls had an answer of this kind.
    pub(crate) fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.0.lock().unwrap().1.iter().filter_map(Call::outcome).filter(|it| is(it)).count()
    }
}

type Done = [u64; CALLS_MAX / 64];

struct Search<'a> {
    calls: &'a [Call],
    typed: &'a str,
    slack: Duration,
    seen: HashSet<(Done, State)>,
    best: Vec<usize>,
}

impl Search<'_> {
    fn goes_on(&mut self, done: Done, state: &State, order: &mut Vec<usize>) -> bool {
        let is_done = |number: usize| done[number / 64] >> (number % 64) & 1 == 1;
        let calls = self.calls;
        let open: Vec<usize> = (0..calls.len()).filter(|number| !is_done(*number)).collect();
        let first_answer = open.iter().filter_map(|number| calls[*number].answer.as_ref());
        let horizon = first_answer.map(|(stamp, _)| stamp.place).min();
        if horizon.is_none() && state.typed == self.typed.len() {
            return true;
        }
        if order.len() > self.best.len() {
            self.best.clone_from(order);
        }
        if !self.seen.insert((done, state.clone())) {
            return false;
        }
        assert!(self.seen.len() < PLACES_MAX, "the search was given up");
        let may_be_next =
            |number: &usize| horizon.is_none_or(|place| calls[*number].begun.place < place);
        for number in open.into_iter().filter(may_be_next) {
            let mut done = done;
            done[number / 64] |= 1 << (number % 64);
            order.push(number);
            for next in state.after(&calls[number], self.typed, self.slack) {
                if self.goes_on(done, &next, order) {
                    return true;
                }
            }
            order.pop();
        }
        false
    }

    fn complaint(&self) -> String {
        let line = |number: usize| format!("  {number}: {:?}", self.calls[number]);
        let (fit, rest): (Vec<usize>, Vec<usize>) =
            (0..self.calls.len()).partition(|number| self.best.contains(number));
        let fit: Vec<String> =
            self.best.iter().filter(|it| fit.contains(it)).map(|it| line(*it)).collect();
        let rest: Vec<String> = rest.into_iter().map(line).collect();
        format!(
            "no order is allowed; the longest beginning:\n{}\nnot placed:\n{}\ntyped: {}",
            fit.join("\n"),
            rest.join("\n"),
            self.typed
        )
    }
}

/// A lease that is held, or has expired and may still come back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lease {
    /// Unknown if its grant was never answered.
    id: Option<u128>,
    /// None once a daemon has restarted.
    holder: Option<Client>,
    epoch: Option<u64>,
    ttl: Duration,
    /// Between these it expires, unless it is used.
    expires: Option<(Duration, Duration)>,
    /// Its holder's connection is gone, and it ends at this time or later.
    leaves: Option<Duration>,
    expired: bool,
}

/// By which right a client may write, or is granted the lease.
enum Right {
    Use,
    Revive,
    Move,
    Take,
    No(Vec<Refusal>),
}

/// Where a session stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    lease: Option<Lease>,
    /// No grant has had a higher one.
    epoch: u64,
    /// Whose last lease ended, and not because they released it.
    lost: BTreeSet<Client>,
    /// How many bytes were typed.
    typed: usize,
    /// It is this late at least.
    now: Duration,
}

impl State {
    /// All that may be after this call.
    fn after(&self, call: &Call, typed: &str, slack: Duration) -> Vec<Self> {
        let mut before = vec![self.clone()];
        before[0].now = self.now.max(call.begun.at);
        let now = before[0].now;
        if let Some(lease) = &self.lease {
            let (mut expired, mut ended) = (before[0].clone(), before[0].clone());
            ended.lose();
            if lease.leaves.is_some_and(|at| at <= call.latest().saturating_add(slack))
                && !lease.expired
            {
                before.push(ended);
            }
            if let (Some((from, to)), false) = (lease.expires, lease.expired) {
                expired.lease = Some(Lease { expired: true, ..lease.clone() });
                if from <= call.latest().saturating_add(slack) {
                    before.push(expired);
                }
                if to.saturating_add(slack) < now {
                    before.remove(0);
                }
            }
        }
        before.into_iter().flat_map(|state| state.take(call, typed)).collect()
    }

    /// Does what a call does, if it can have been answered so.
    fn take(mut self, call: &Call, typed: &str) -> Vec<Self> {
        match &call.action {
            Action::Acquire { shown, ttl } => {
                let right = self.right(call.client, *shown, true);
                self.granted(call, right, Some(*ttl)).into_iter().collect()
            }
            Action::Renew { shown } => {
                let right = self.right(call.client, Some(*shown), false);
                self.granted(call, right, None).into_iter().collect()
            }
            Action::Write { shown, text } => {
                let right = self.right(call.client, *shown, false);
                let granted = self.granted(call, right, None);
                granted.map(|it| it.wrote(call, text, typed)).unwrap_or_default()
            }
            Action::Release { shown } => self.released(call, *shown).into_iter().collect(),
            Action::Preempt => {
                let held = self.lease.as_ref().is_some_and(|lease| !lease.expired);
                if held {
                    self.lose();
                }
                let Some(Outcome::Preempted { ended, typed }) = call.outcome() else {
                    return if call.outcome().is_none() { vec![self] } else { Vec::new() };
                };
                let fits = *ended == held && typed.is_none_or(|typed| self.typed <= typed);
                if fits { vec![self] } else { Vec::new() }
            }
            Action::Leave { grace } => {
                let leaves = self.now + *grace;
                if let Some(lease) = self.lease.as_mut().filter(|it| it.holder == Some(call.client))
                {
                    lease.leaves = Some(leaves);
                }
                vec![self]
            }
            Action::Revoke => {
                if self.lease.as_ref().is_some_and(|it| it.holder == Some(call.client)) {
                    self.lose();
                }
                vec![self]
            }
            Action::Restart { grace } => {
                let (leaves, kept) =
                    (self.now + *grace, self.lease.take().filter(|it| !it.expired));
                let former = |it| Lease { holder: None, expires: None, leaves: Some(leaves), ..it };
                self.lease = kept.map(former);
                self.lost.clear();
                vec![self]
            }
        }
    }

    /// Ends the lease against its holder's will.
    fn lose(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.lost.extend(lease.holder);
        }
    }

    fn right(&self, client: Client, shown: Option<u128>, takes: bool) -> Right {
        let own = |lease: &Lease| lease.holder == Some(client);
        let mut refusals = Vec::new();
        match (&self.lease, shown) {
            (Some(lease), Some(id)) if lease.id == Some(id) => match lease {
                lease if own(lease) && lease.expired => return Right::Revive,
                lease if own(lease) => return Right::Use,
                lease if lease.holder.is_none() || lease.leaves.is_some() => return Right::Move,
                lease if lease.expired => refusals.push(Refusal::Lost),
                _ => refusals.push(Refusal::Held),
            },
            (_, Some(_)) => refusals.extend([Refusal::Lost, Refusal::Superseded]),
            (Some(lease), None) if own(lease) && lease.expired => return Right::Revive,
            (Some(lease), None) if own(lease) => return Right::Use,
            (Some(lease), None) if !lease.expired => {
                refusals.push(Refusal::Held);
                if takes {
                    refusals.push(Refusal::QueueFull);
                }
            }
            (_, None) if takes => return Right::Take,
            (_, None) => refusals.push(Refusal::Required),
        }
        if shown.is_none() && !takes && self.lost.contains(&client) {
            refusals.push(Refusal::Lost);
        }
        Right::No(refusals)
    }

    /// Grants or renews by a right, or refuses, as it was answered.
    fn granted(mut self, call: &Call, right: Right, ttl: Option<Duration>) -> Option<Self> {
        let (told_id, told_epoch, told_revived) = match (&right, call.outcome()) {
            (Right::No(may), Some(Outcome::Refused(refusal))) => {
                return may.contains(refusal).then_some(self);
            }
            (Right::No(_), _) | (_, Some(Outcome::Refused(_))) => return None,
            (_, Some(Outcome::Granted { lease, epoch, revived })) => {
                (Some(*lease), Some(*epoch), Some(*revived))
            }
            (_, Some(Outcome::Wrote { epoch, .. })) => (None, *epoch, None),
            (_, _) => (None, None, None),
        };
        if told_revived.is_some_and(|revived| revived != matches!(right, Right::Revive)) {
            return None;
        }
        let new = |id| Lease {
            id,
            holder: Some(call.client),
            epoch: None,
            ttl: ttl.unwrap_or_default(),
            expires: None,
            leaves: None,
            expired: false,
        };
        let mut lease = match (&right, self.lease.take()) {
            (Right::Take, expired) => {
                self.lost.extend(expired.and_then(|lease| lease.holder));
                new(told_id)
            }
            (Right::Move, Some(lease)) => Lease { ttl: lease.ttl, ..new(lease.id) },
            (_, Some(lease)) => Lease { expired: false, ..lease },
            (_, None) => return None,
        };
        if matches!(right, Right::Take | Right::Move) {
            self.epoch += 1;
        }
        // One that nobody was told may be any that is high enough.
        if let Some(told) = told_epoch {
            if told < self.epoch || lease.epoch.is_some_and(|epoch| epoch != told) {
                return None;
            }
            lease.epoch = Some(told);
            self.epoch = told;
        }
        if told_id.is_some_and(|told| lease.id.is_some_and(|id| id != told)) {
            return None;
        }
        self.lost.remove(&call.client);
        lease.id = lease.id.or(told_id);
        lease.ttl = ttl.unwrap_or(lease.ttl);
        let latest = call.latest().saturating_add(lease.ttl);
        lease.expires = Some((self.now + lease.ttl, latest));
        self.lease = Some(lease);
        Some(self)
    }

    /// Types what a call says that it typed, where the program read it.
    fn wrote(self, call: &Call, text: &str, typed: &str) -> Vec<Self> {
        let rest = &typed.as_bytes()[self.typed..];
        let same = text.bytes().zip(rest).take_while(|(one, other)| one == *other).count();
        let (least, most) = match call.outcome() {
            Some(Outcome::Wrote { bytes, queued, .. }) => (*bytes, *bytes + *queued),
            Some(_) => return vec![self],
            None => (0, text.len()),
        };
        let typed = |count| Self { typed: self.typed + count, ..self.clone() };
        (least..=most.min(same)).map(typed).collect()
    }

    fn released(mut self, call: &Call, shown: u128) -> Option<Self> {
        let outcome = call.outcome();
        let expired = self.lease.as_ref().is_some_and(|lease| lease.expired);
        match self.right(call.client, Some(shown), false) {
            Right::No(may) => match outcome {
                Some(Outcome::AlreadyGone) => may.contains(&Refusal::Lost).then_some(self),
                Some(Outcome::Refused(refusal)) => may.contains(refusal).then_some(self),
                Some(_) => None,
                None => Some(self),
            },
            Right::Use | Right::Revive | Right::Move | Right::Take => {
                self.lease = None;
                let fits = match expired {
                    true => Outcome::AlreadyGone,
                    false => Outcome::Released,
                };
                outcome.is_none_or(|outcome| *outcome == fits).then_some(self)
            }
        }
    }
}
