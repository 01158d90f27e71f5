//! The lease and its queue as a story told second by second.
//!
//! It has no deadlines and no cleverness: it walks every second there was and asks each rule in
//! turn. It must not learn from the code that it judges.

use std::collections::{BTreeMap, BTreeSet};

/// Agents come first, then connections of the command line, then people.
pub(super) const AGENTS: usize = 4;
pub(super) const WRITERS: usize = 6;
pub(super) const PRINCIPALS: usize = 8;
const TENANTS: usize = 3;
/// The first two agents, the command line and the people share a tenant. Behind the principals comes,
/// for each tenant, whoever of it held a lease when the daemon ended.
pub(super) const TENANT: [usize; PRINCIPALS + TENANTS] = [0, 0, 1, 2, 0, 0, 0, 0, 0, 1, 2];
pub(super) const LINE_MAX: usize = 3;
pub(super) const TENANT_LINE_MAX: usize = 2;
pub(super) const MAX_HOLD: u64 = 40;
pub(super) const OFFER: u64 = 10;
pub(super) const TTL_DEFAULT: u64 = 30;
pub(super) const GRACE: u64 = 5;
pub(super) const TTL_MAX: u64 = 45;
pub(super) const PERSON_IDLE: u64 = 10;
const RECLAIM: u64 = 10;
/// The epochs of a later daemon begin above the microseconds since boot.
const EPOCHS_PER_SECOND: u64 = 1_000_000;
/// Every key has this many bytes.
pub(super) const KEY: usize = 4;

/// What a write is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// So many keys, each a piece of its own.
    Keys(usize),
    /// So many characters of one to four bytes, all one piece.
    Characters(usize),
}

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

/// How a person has the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyboard {
    Typing,
    TakenOver,
}

/// What a holder must have seen before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    /// What no frame shows yet.
    NotShown,
    From(u64),
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
    /// The holder's connections that used it and live.
    pub used_on: BTreeSet<u64>,
    pub gone: Option<u64>,
    pub once: bool,
    pub offer: Option<(usize, u128, u64, u64)>,
    pub waited: Option<u64>,
    /// How a person has it, and when it pressed its last key.
    pub keyboard: Option<(Keyboard, u64)>,
    pub look: Look,
    /// It is of a daemon before, and until when it may be taken back.
    pub former: Option<u64>,
    /// The command line has it.
    pub operator: bool,
}

/// A lease that stands aside.
#[derive(Clone, Debug)]
pub(super) struct Aside {
    pub hold: Hold,
    pub since: u64,
    pub left: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub number: u64,
    pub who: usize,
    pub on: u64,
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
    /// Its lease ended, and this is what completes a key or a character.
    pub dead: bool,
    /// Where it may end.
    pub harmless: Vec<usize>,
    pub words: Words,
    /// Under which key a person typed it.
    pub key: Option<u64>,
}

/// What a person typed under one key, over all daemons.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub who: usize,
    pub len: usize,
    /// How many of its bytes the terminal took.
    pub taken: usize,
    /// Whether the daemon that runs was asked to type it.
    pub asked: bool,
}

/// What becomes of what a person types when it is asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypesAgain {
    /// Nothing: this write has it, and waits for the terminal.
    Waits(u64),
    /// Everything behind so many bytes.
    From(usize),
}

/// All that is known of one session.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// The connection that each principal speaks on.
    pub on: [u64; PRINCIPALS],
    pub now: u64,
    pub open_until: u64,
    pub epoch: u64,
    pub hold: Option<Hold>,
    pub lapsed: Option<Hold>,
    pub aside: Option<Aside>,
    pub line: Vec<Waiting>,
    pub waits: u64,
    pub bytes: Vec<Bytes>,
    /// Who got what it waited for, and who did not.
    pub served: Vec<(u64, u64)>,
    pub turned_away: Vec<u64>,
    /// The last id each principal was given.
    pub ids: BTreeMap<usize, u128>,
    /// What people typed, by its key.
    pub typed: BTreeMap<u64, Typed>,
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
            let answers = |hold: &&mut Hold| hold.keyboard.is_none();
            if let Some(hold) = self.hold.as_mut().filter(alive).filter(answers) {
                hold.used = hold.used.max(write.asked + 1);
            }
        }
        if self.offer_is_over(second)
            && let Some(hold) = &mut self.hold
            && let Some((_, _, _, left)) = hold.offer.take()
        {
            hold.used = (second + left).saturating_sub(hold.ttl);
        }
        if self.aside.as_ref().is_some_and(|aside| has_left(&aside.hold, second)) {
            self.aside = None;
        }
        while let Some(expired) = self.is_over(second) {
            self.end_at(second, expired);
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
        let waited_for = self.is_waited_for(hold);
        let offered = hold.offer.is_some();
        let left = has_left(hold, second);
        if let Some((_, key)) = hold.keyboard {
            let idle = !waited_for && second >= hold.used + hold.ttl;
            return (idle || left || second >= key + TTL_MAX).then_some(false);
        }
        if !self.line.is_empty() && second >= hold.since + MAX_HOLD {
            return Some(false);
        }
        if offered {
            return None;
        }
        // Of two ends in one second, the one that came first counts; they differ in whether the
        // holder may come back.
        let runs = !waited_for && hold.former.is_none();
        let expired = runs && second >= hold.used + hold.ttl;
        if expired || left { Some(expired) } else { None }
    }

    /// Whether somebody waits for bytes of this holding: whoever wrote them, for an answer; a
    /// person, until they are taken.
    fn is_waited_for(&self, hold: &Hold) -> bool {
        let person = hold.keyboard.is_some();
        let waits = |w: &Bytes| w.epoch == hold.epoch && !w.dead && (person || !w.answered);
        self.bytes.iter().any(waits)
    }

    /// Ends the holding; the next has it then.
    pub(super) fn end(&mut self, expired: bool) {
        self.end_at(self.now, expired);
    }

    /// Ends the holding as of this second: who stood aside has it again, else the next in line.
    fn end_at(&mut self, second: u64, expired: bool) {
        self.lapsed = self.hold.take().filter(|_| expired);
        if let Some(Aside { mut hold, since, left }) = self.aside.take() {
            self.epoch += 1;
            hold.epoch = self.epoch;
            hold.since += second - since;
            hold.used = (second + left).saturating_sub(hold.ttl);
            hold.look = Look::NotShown;
            let who = hold.who;
            self.hold = Some(hold);
            self.serve_twins(who);
            return;
        }
        if !self.line.is_empty() {
            let next = self.line.remove(0);
            self.serve(next);
        }
    }

    pub(super) fn serve(&mut self, next: Waiting) {
        let once = false;
        self.start((next.who, next.on), next.id, next.ttl, next.after, once);
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
        self.aside = None;
    }

    /// Begins a holding of a principal on one of its connections.
    pub(super) fn start(
        &mut self,
        (who, on): (usize, u64),
        id: u128,
        ttl: u64,
        after: After,
        once: bool,
    ) {
        self.epoch += 1;
        self.lapsed = None;
        let (since, used, epoch) = (self.now, self.now, self.epoch);
        let (used_on, gone, offer, waited) = (BTreeSet::from([on]), None, None, None);
        let (keyboard, look, former) = (None, Look::Nothing, None);
        let operator = is_operator(who);
        self.ids.insert(who, id);
        self.hold = Some(Hold {
            who,
            id,
            epoch,
            ttl,
            since,
            used,
            after,
            used_on,
            gone,
            once,
            offer,
            waited,
            keyboard,
            look,
            former,
            operator,
        });
        self.serve_twins(who);
    }

    fn serve_twins(&mut self, who: usize) {
        let twins = self.line.iter().filter(|w| w.who == who);
        for twin in twins {
            self.served.push((twin.number, self.epoch));
            if let Some(hold) = &mut self.hold {
                hold.used_on.insert(twin.on);
            }
        }
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
        let (now, on) = (self.now, self.on[who]);
        match verdict {
            Verdict::No => return false,
            Verdict::Yes => {
                let hold = self.hold.as_mut().expect("held");
                if hold.offer.take().is_some() || hold.used < now {
                    hold.used = now;
                }
                hold.gone = None;
                hold.used_on.insert(on);
            }
            Verdict::Revive => {
                let mut hold = self.lapsed.take().expect("lapsed");
                (hold.used, hold.since, hold.gone) = (now, now, None);
                hold.used_on.insert(on);
                let holder = hold.who;
                self.hold = Some(hold);
                self.serve_twins(holder);
            }
            Verdict::Move => {
                let was_held = self.hold.is_some();
                let mut hold = self.hold.take().or(self.lapsed.take()).expect("known");
                self.epoch += 1;
                (hold.epoch, hold.used) = (self.epoch, now);
                (hold.waited, hold.offer) = (None, None);
                hold.pass_to(who);
                hold.used_on = BTreeSet::from([on]);
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
                self.start((who, on), id, TTL_DEFAULT, after, false);
            }
            Verdict::Fresh => {
                let once = take == Take::Once;
                let after = if once { After::Never } else { After::Seconds(GRACE) };
                self.start((who, on), fresh, TTL_DEFAULT, after, once);
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
        let aside = self.aside.as_ref().map(|aside| &aside.hold);
        if aside.is_some_and(|hold| shows.map_or(hold.who == who, |id| hold.id == id)) {
            return Verdict::No;
        }
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
            (Some(hold), _, _) if hold.former.is_some() => Verdict::Move,
            (Some(hold), _, _) if hold.is_of(who) => Verdict::Yes,
            (Some(hold), _, _) if hold.gone.is_some() => Verdict::Move,
            (Some(_), _, _) => Verdict::No,
            (None, Some(lapsed), None) if lapsed.who == who => Verdict::Revive,
            (None, Some(lapsed), Some(id)) if lapsed.id == id && same_tenant(lapsed) => {
                match (lapsed.is_of(who), lapsed.gone) {
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
        if self.has_aside(who, shows) {
            if to.is_none() {
                self.aside = None;
            }
            return;
        }
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
        let waited_for = self.is_waited_for(hold);
        Some(match (hold.offer, hold.former) {
            (Some((_, _, _, left)), _) => left,
            (None, Some(until)) => until.saturating_sub(self.now),
            (None, None) if waited_for => hold.ttl,
            (None, None) => (hold.used + hold.ttl).saturating_sub(self.now),
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
                let counts = |hold: &&mut Hold| hold.keyboard.is_some() || !write.answered;
                if let Some(hold) = own.filter(counts).filter(|_| !write.dead) {
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

    /// Whether the lease that stands aside is this principal's, by name or by the id it shows.
    pub(super) fn has_aside(&self, who: usize, shows: Option<u128>) -> bool {
        let Some(Aside { hold, .. }) = &self.aside else { return false };
        let known = hold.is_of(who) || hold.gone.is_some();
        match shows {
            None => hold.who == who,
            Some(id) => id == hold.id && TENANT[hold.who] == TENANT[who] && known,
        }
    }

    /// Lets a principal come back to the lease that stands aside.
    pub(super) fn come_back(&mut self, who: usize, shows: Option<u128>) {
        if self.has_aside(who, shows)
            && let Some(Aside { hold, .. }) = &mut self.aside
        {
            hold.used_on.insert(self.on[who]);
            if hold.gone.is_some() && (!hold.is_of(who) || hold.former.is_some()) {
                hold.pass_to(who);
                self.ids.insert(who, hold.id);
            }
            hold.gone = None;
        }
    }

    /// Whether whoever wrote by this verdict would have seen what a person left behind.
    pub(super) fn has_seen(&self, verdict: Verdict, expected: Option<u64>) -> bool {
        let known = match verdict {
            Verdict::Yes | Verdict::Move | Verdict::Revive => {
                self.hold.as_ref().or(self.lapsed.as_ref())
            }
            Verdict::No | Verdict::TakeUp(_) | Verdict::Fresh => None,
        };
        match known.map_or(Look::Nothing, |hold| hold.look) {
            Look::Nothing => true,
            Look::NotShown => false,
            Look::From(shown) => expected.is_some_and(|seen| seen >= shown),
        }
    }

    /// A frame shows how everything stands.
    pub(super) fn show(&mut self, watermark: u64) {
        let known = [&mut self.hold, &mut self.lapsed].into_iter().flatten();
        for hold in known.filter(|hold| hold.look == Look::NotShown) {
            hold.look = Look::From(watermark);
        }
    }

    /// Lets a person press a key, or take over without one; says whether it may.
    pub(super) fn take_keyboard(&mut self, who: usize, id: u128, wants: Keyboard) -> bool {
        let now = self.now;
        let before = self.hold.as_ref().and_then(|hold| Some((hold.who, hold.keyboard?.0)));
        match before {
            Some((other, Keyboard::TakenOver)) if other != who && wants == Keyboard::Typing => {
                return false;
            }
            Some((same, _)) if same == who => {}
            Some(_) => self.start((who, self.on[who]), id, PERSON_IDLE, After::Nothing, false),
            None => {
                let left = self.left();
                if let Some(mut hold) = self.hold.take().filter(|hold| !hold.once) {
                    hold.offer = None;
                    let left = if hold.former.is_some() { hold.ttl } else { left.expect("held") };
                    self.aside = Some(Aside { hold, since: now, left });
                }
                self.start((who, self.on[who]), id, PERSON_IDLE, After::Nothing, false);
            }
        }
        let hold = self.hold.as_mut().expect("taken");
        let taken_over = wants == Keyboard::TakenOver
            || hold.keyboard.is_some_and(|(how, _)| how == Keyboard::TakenOver);
        if taken_over {
            hold.ttl = TTL_MAX;
        }
        let how = if taken_over { Keyboard::TakenOver } else { Keyboard::Typing };
        (hold.keyboard, hold.used) = (Some((how, now)), now);
        true
    }

    /// What becomes of what is typed under this key, for the first time or again. What this daemon was
    /// asked to type is never typed again, and of what one before was asked only what nobody took.
    pub(super) fn types_again(&self, key: u64) -> TypesAgain {
        let typed = &self.typed[&key];
        match self.bytes.iter().find(|write| write.key == Some(key)) {
            Some(waiting) => TypesAgain::Waits(waiting.write),
            None if typed.asked => TypesAgain::From(typed.len),
            None => TypesAgain::From(typed.taken),
        }
    }

    /// Lets a person go; says whether it had the keyboard.
    pub(super) fn let_person_go(&mut self, who: usize) -> bool {
        let has = |hold: &Hold| hold.keyboard.is_some() && hold.who == who;
        let had = self.hold.as_ref().is_some_and(has);
        if had {
            self.end(false);
            self.tidy();
        }
        had
    }

    /// The id of the lease that a principal has by name.
    pub(super) fn own_id(&self, who: usize) -> Option<u128> {
        let aside = self.aside.as_ref().map(|aside| &aside.hold);
        let known = [aside, self.hold.as_ref(), self.lapsed.as_ref()];
        known.into_iter().flatten().find(|hold| hold.who == who).map(|hold| hold.id)
    }

    /// The daemon dies; after so many seconds another one begins, which finds bytes up to the epoch
    /// `written` and the record of the lease, or none.
    pub(super) fn restart(&mut self, down: u64, is_recorded: bool, written: u64) {
        let aside = self.aside.take().map(|Aside { mut hold, .. }| {
            hold.look = Look::NotShown;
            hold
        });
        let outlives = |hold: &Hold| {
            is_recorded && hold.keyboard.is_none() && !hold.once && hold.after != After::Nothing
        };
        let known = aside.or(self.hold.take()).filter(outlives);
        let recorded = if is_recorded { self.epoch } else { 0 };
        let now = self.now + down;
        let floor = recorded.max(written).max(now * EPOCHS_PER_SECOND);
        let epoch = floor + u64::from(known.is_some());
        let hold = known.map(|hold| Hold {
            who: PRINCIPALS + TENANT[hold.who],
            epoch,
            since: now,
            used: now,
            used_on: BTreeSet::new(),
            gone: Some(now),
            offer: None,
            waited: None,
            look: if hold.look == Look::Nothing { Look::Nothing } else { Look::NotShown },
            former: Some(now + RECLAIM),
            ..hold
        });
        let (open_until, ids) = (self.open_until, std::mem::take(&mut self.ids));
        let mut typed = std::mem::take(&mut self.typed);
        typed.values_mut().for_each(|typed| typed.asked = false);
        *self = Self { now, open_until, epoch, hold, ids, typed, ..Self::default() };
        self.advance(now);
    }

    /// Lets the terminal take this many bytes.
    pub(super) fn take(&mut self, mut count: usize) {
        for write in &mut self.bytes {
            let taken = count.min(write.len - write.sent);
            write.sent += taken;
            count -= taken;
            if let Some(typed) = write.key.and_then(|key| self.typed.get_mut(&key)) {
                typed.taken += taken;
            }
        }
        self.tidy();
    }
}

/// Whether the holder's connection closed and it did not come back in time.
fn has_left(hold: &Hold, second: u64) -> bool {
    if let Some(until) = hold.former {
        return second >= until;
    }
    match (hold.gone, hold.after) {
        (None, _) | (_, After::Never) => false,
        (Some(_), After::Nothing) => true,
        (Some(gone), After::Seconds(grace)) => second >= gone + grace,
    }
}

/// Whether it is a connection of the command line.
pub(super) fn is_operator(who: usize) -> bool {
    (AGENTS..WRITERS).contains(&who)
}

impl Hold {
    /// Whether it is this one's, who shows its id: the command line is one.
    fn is_of(&self, who: usize) -> bool {
        let both = is_operator(who) && self.is_command_lines() && TENANT[self.who] == TENANT[who];
        self.who == who || both
    }

    fn is_command_lines(&self) -> bool {
        self.operator && self.after == After::Never
    }

    /// It is another one's from now on, and the one before is a stranger to it.
    fn pass_to(&mut self, who: usize) {
        (self.who, self.gone, self.former) = (who, None, None);
        self.operator = is_operator(who);
        self.after = match (self.operator, self.after) {
            (true, _) => After::Never,
            (false, After::Never) => After::Seconds(GRACE),
            (false, after) => after,
        };
    }
}

impl Bytes {
    /// Forgets what can be forgotten without splitting a key or a character.
    pub(super) fn cut(&mut self) {
        let end = self.harmless.iter().find(|end| **end >= self.sent);
        self.len = end.map_or(self.len, |end| self.len.min(*end));
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
