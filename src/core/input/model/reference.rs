//! The lease and its queue as a story told second by second.
//!
//! It has no deadlines and no cleverness: it walks every second there was and asks each rule in
//! turn. It must not learn from the code that it judges.

use std::collections::BTreeMap;

pub(super) const PRINCIPALS: usize = 4;
/// The first two share a tenant.
pub(super) const TENANT: [usize; PRINCIPALS] = [0, 0, 1, 2];
pub(super) const LINE_MAX: usize = 3;
pub(super) const TENANT_LINE_MAX: usize = 2;
pub(super) const MAX_HOLD: u64 = 40;
pub(super) const OFFER: u64 = 10;
pub(super) const TTL_DEFAULT: u64 = 30;
pub(super) const GRACE: u64 = 5;
/// Every piece of every write is a key of this many bytes.
pub(super) const KEY: usize = 4;

/// What becomes of a lease when its holder's connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    Seconds(u64),
    Never,
}

/// How the caller of a write stands to the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Held,
    Once,
    Keep,
}

#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub who: usize,
    pub id: u128,
    pub epoch: u64,
    pub ttl: u64,
    pub since: u64,
    pub used: u64,
    pub after: After,
    pub gone: Option<u64>,
    pub once: bool,
    pub offer: Option<(usize, u128, u64, u64)>,
    pub waited: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub number: u64,
    pub who: usize,
    pub id: u128,
    pub ttl: u64,
    pub after: After,
    pub until: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Bytes {
    pub write: u64,
    pub epoch: u64,
    pub asked: u64,
    pub answered: bool,
    pub len: usize,
    pub sent: usize,
    /// Its lease ended, and this is what completes a key.
    pub dead: bool,
}

/// All that is known of one session.
#[derive(Debug, Default)]
pub(super) struct Reference {
    pub now: u64,
    pub open_until: u64,
    pub epoch: u64,
    pub hold: Option<Hold>,
    pub lapsed: Option<Hold>,
    pub line: Vec<Waiting>,
    pub waits: u64,
    pub bytes: Vec<Bytes>,
    /// Who got what it waited for, and who did not.
    pub served: Vec<(u64, u64)>,
    pub turned_away: Vec<u64>,
    /// The last id each principal was given.
    pub ids: BTreeMap<usize, u128>,
}

impl Reference {
    /// Lives through every second up to this one.
    pub(super) fn advance(&mut self, to: u64) {
        let from = self.now;
        self.now = to;
        for second in from..=to {
            self.live(second);
        }
        self.tidy();
    }

    fn live(&mut self, second: u64) {
        for write in self.bytes.iter_mut().filter(|w| !w.answered && w.asked < second) {
            write.answered = true;
            let alive = |hold: &&mut Hold| hold.epoch == write.epoch && !write.dead;
            if let Some(hold) = self.hold.as_mut().filter(alive) {
                hold.used = hold.used.max(write.asked + 1);
            }
        }
        if self.offer_is_over(second)
            && let Some(hold) = &mut self.hold
            && let Some((_, _, _, left)) = hold.offer.take()
        {
            hold.used = (second + left).saturating_sub(hold.ttl);
        }
        if let Some(expired) = self.is_over(second) {
            self.end(expired);
        }
        let late = |waiting: &Waiting| waiting.until <= second;
        self.turned_away.extend(self.line.iter().filter(|w| late(w)).map(|w| w.number));
        self.line.retain(|waiting| !late(waiting));
        if second >= self.open_until {
            self.shut();
        }
    }

    fn offer_is_over(&self, second: u64) -> bool {
        let offer = self.hold.as_ref().and_then(|hold| hold.offer);
        offer.is_some_and(|(_, _, until, _)| second >= until)
    }

    /// Whether the holding is over in this second, and if so, whether its time just ran out.
    fn is_over(&self, second: u64) -> Option<bool> {
        let hold = self.hold.as_ref()?;
        let waited_for = self.bytes.iter().any(|w| w.epoch == hold.epoch && !w.answered && !w.dead);
        let offered = hold.offer.is_some();
        let left = match (hold.gone, hold.after) {
            (None, _) | (_, After::Never) => false,
            (Some(_), After::Nothing) => true,
            (Some(gone), After::Seconds(grace)) => second >= gone + grace,
        };
        if !self.line.is_empty() && second >= hold.since + MAX_HOLD {
            return Some(false);
        }
        if offered {
            return None;
        }
        // Of two ends in one second, the one that came first counts; they differ in whether the
        // holder may come back.
        let expired = !waited_for && second >= hold.used + hold.ttl;
        if expired || left { Some(expired) } else { None }
    }

    /// Ends the holding; the next in line has it then.
    pub(super) fn end(&mut self, expired: bool) {
        self.lapsed = self.hold.take().filter(|_| expired);
        if !self.line.is_empty() {
            let next = self.line.remove(0);
            self.serve(next);
        }
    }

    pub(super) fn serve(&mut self, next: Waiting) {
        let once = false;
        self.start(next.who, next.id, next.ttl, next.after, once);
        if let Some(hold) = &mut self.hold {
            hold.waited = Some(next.number);
        }
        self.served.push((next.number, self.epoch));
    }

    pub(super) fn shut(&mut self) {
        self.open_until = 0;
        self.turned_away.extend(self.line.drain(..).map(|waiting| waiting.number));
        self.hold = None;
        self.lapsed = None;
    }

    pub(super) fn start(&mut self, who: usize, id: u128, ttl: u64, after: After, once: bool) {
        self.epoch += 1;
        self.lapsed = None;
        let (since, used, epoch) = (self.now, self.now, self.epoch);
        let (gone, offer, waited) = (None, None, None);
        self.ids.insert(who, id);
        self.hold =
            Some(Hold { who, id, epoch, ttl, since, used, after, gone, once, offer, waited });
        self.serve_twins(who);
    }

    fn serve_twins(&mut self, who: usize) {
        let twins = self.line.iter().filter(|w| w.who == who).map(|w| (w.number, self.epoch));
        self.served.extend(twins);
        self.line.retain(|waiting| waiting.who != who);
    }

    /// Lets a principal use a lease, and says whether it may; `shows` is the id it shows.
    pub(super) fn use_lease(
        &mut self,
        who: usize,
        shows: Option<u128>,
        take: Take,
        fresh: u128,
        takes_back: bool,
    ) -> bool {
        let verdict = self.verdict(who, shows, take, takes_back);
        let now = self.now;
        match verdict {
            Verdict::No => return false,
            Verdict::Yes => {
                let hold = self.hold.as_mut().expect("held");
                if hold.offer.take().is_some() || hold.used < now {
                    hold.used = now;
                }
                if hold.who == who {
                    hold.gone = None;
                }
            }
            Verdict::Revive => {
                let mut hold = self.lapsed.take().expect("lapsed");
                (hold.used, hold.since, hold.gone) = (now, now, None);
                self.hold = Some(hold);
                self.serve_twins(who);
            }
            Verdict::Move => {
                let was_held = self.hold.is_some();
                let mut hold = self.hold.take().or(self.lapsed.take()).expect("known");
                self.epoch += 1;
                (hold.who, hold.epoch, hold.used, hold.gone) = (who, self.epoch, now, None);
                (hold.waited, hold.offer) = (None, None);
                if !was_held {
                    hold.since = now;
                }
                self.ids.insert(who, hold.id);
                self.hold = Some(hold);
                self.serve_twins(who);
            }
            Verdict::TakeUp(id) => {
                self.hold = None;
                let after = match (take, shows) {
                    (Take::Once, None) => After::Never,
                    _ => After::Seconds(GRACE),
                };
                self.start(who, id, TTL_DEFAULT, after, false);
            }
            Verdict::Fresh => {
                let once = take == Take::Once;
                let after = if once { After::Never } else { After::Seconds(GRACE) };
                self.start(who, fresh, TTL_DEFAULT, after, once);
            }
        }
        true
    }

    pub(super) fn verdict(
        &self,
        who: usize,
        shows: Option<u128>,
        take: Take,
        takes_back: bool,
    ) -> Verdict {
        let same_tenant = |hold: &Hold| TENANT[hold.who] == TENANT[who];
        let offered = self.hold.as_ref().and_then(|hold| hold.offer);
        if let (Some(hold), Some((to, id, _, _))) = (&self.hold, offered)
            && to == who
            && same_tenant(hold)
            && shows.is_none_or(|shown| shown == hold.id)
        {
            return Verdict::TakeUp(id);
        }
        match (&self.hold, &self.lapsed, shows) {
            (Some(hold), _, None) if hold.who != who => Verdict::No,
            (Some(hold), _, Some(id)) if hold.id != id || !same_tenant(hold) => Verdict::No,
            (Some(hold), _, _) if hold.offer.is_some() && !takes_back => Verdict::No,
            (Some(hold), _, _) if hold.who == who => Verdict::Yes,
            (Some(hold), _, _) if hold.gone.is_some() && takes_back => Verdict::Move,
            (Some(hold), _, _) if hold.after == After::Never => Verdict::Yes,
            (Some(hold), _, _) if hold.gone.is_some() => Verdict::Move,
            (Some(_), _, _) => Verdict::No,
            (None, Some(lapsed), None) if lapsed.who == who => Verdict::Revive,
            (None, Some(lapsed), Some(id)) if lapsed.id == id && same_tenant(lapsed) => {
                match (lapsed.who == who, lapsed.gone) {
                    (true, _) => Verdict::Revive,
                    (false, Some(_)) => Verdict::Move,
                    (false, None) => Verdict::No,
                }
            }
            (None, _, Some(_)) => Verdict::No,
            (None, _, None) if take == Take::Held => Verdict::No,
            (None, _, None) => Verdict::Fresh,
        }
    }

    /// Lets a principal give up what it may use, to somebody if it says so.
    pub(super) fn release(&mut self, who: usize, shows: Option<u128>, to: Option<(usize, u128)>) {
        let left = self.left();
        match self.verdict(who, shows, Take::Held, true) {
            Verdict::No | Verdict::Fresh => {}
            Verdict::TakeUp(_) => {
                let hold = self.hold.as_mut().expect("held");
                hold.offer = None;
                hold.used = (self.now + left.expect("held")).saturating_sub(hold.ttl);
            }
            Verdict::Yes | Verdict::Move | Verdict::Revive => match (&mut self.hold, to) {
                (None, _) => self.lapsed = None,
                (Some(_), None) => self.end(false),
                (Some(hold), Some((to, id))) => {
                    let wanted = |w: &Waiting| w.who == to && TENANT[to] == TENANT[hold.who];
                    match self.line.iter().position(wanted) {
                        Some(place) => {
                            let next = self.line.remove(place);
                            self.hold = None;
                            self.serve(next);
                        }
                        None => {
                            let until = self.now + OFFER;
                            hold.offer = Some((to, id, until, left.expect("held")));
                        }
                    }
                }
            },
        }
        self.tidy();
    }

    /// How many seconds the lease lasts unless it is used.
    pub(super) fn left(&self) -> Option<u64> {
        let hold = self.hold.as_ref()?;
        let waited_for = self.bytes.iter().any(|w| w.epoch == hold.epoch && !w.answered && !w.dead);
        Some(match hold.offer {
            Some((_, _, _, left)) => left,
            None if waited_for => hold.ttl,
            None => (hold.used + hold.ttl).saturating_sub(self.now),
        })
    }

    /// Cuts what lost its lease, drops what is done, and gives back what was for one call.
    pub(super) fn tidy(&mut self) {
        loop {
            let in_force = self.hold.as_ref().map(|hold| hold.epoch);
            for write in self.bytes.iter_mut().filter(|write| Some(write.epoch) != in_force) {
                write.cut();
                write.dead = true;
            }
            let now = self.now;
            for write in self.bytes.iter().filter(|write| write.sent == write.len) {
                let own = self.hold.as_mut().filter(|hold| hold.epoch == write.epoch);
                if let Some(hold) = own.filter(|_| !write.answered && !write.dead) {
                    hold.used = hold.used.max(now);
                }
            }
            self.bytes.retain(|write| write.sent < write.len);
            let busy = self.bytes.iter().any(|write| Some(write.epoch) == in_force);
            if busy || !self.hold.as_ref().is_some_and(|hold| hold.once) {
                return;
            }
            self.end(false);
        }
    }

    /// Lets the terminal take this many bytes.
    pub(super) fn take(&mut self, mut count: usize) {
        for write in &mut self.bytes {
            let taken = count.min(write.len - write.sent);
            write.sent += taken;
            count -= taken;
        }
        self.tidy();
    }
}

impl Bytes {
    /// Forgets what can be forgotten without splitting a key.
    pub(super) fn cut(&mut self) {
        self.len = self.len.min(self.sent.next_multiple_of(KEY));
    }
}

/// What a principal may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    No,
    Yes,
    Revive,
    Move,
    TakeUp(u128),
    Fresh,
}
