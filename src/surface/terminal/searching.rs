//! A search under way: the rows that the index lacks are read from the sessions, all others from the index.
//!
//! Frames are taken first. Rows that are indexed after that are found twice at most, never missed, and only those up to
//! the position of the index are taken from it.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::core::frame::Frame;
use crate::core::ids::{RowNumber, SessionId, TenantId};
use crate::core::moment::Moment;
use crate::core::policy::Standing;
use crate::core::wait::line_matcher::{BudgetSpent, LineMatcher};
use crate::core::wait::logical::LogicalLine;
use crate::session::clock::Clock;
use crate::session::handle::Session;
use crate::session::registry::Registry;
use crate::session::registry::silent::Known;
use crate::store::index::database::IndexError;
use crate::store::index::hits::{CommandHit, IndexHit, IndexHits};
use crate::store::index::query::{Expired, IndexQuery, IndexView};
use crate::store::index::writer::SearchIndex;
use crate::surface::call::{find_known, seen_known, sees_id};
use crate::surface::error::SurfaceError;
use crate::wire::command::CommandWire;

/// How long a search takes at most.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// What to search, and for whom.
#[derive(Debug)]
pub(super) struct SearchScope {
    pub(super) sessions: Registry,
    pub(super) index: SearchIndex,
    pub(super) standing: Standing,
    /// Id, prefix or name of the only session, which may be gone.
    pub(super) session: Option<String>,
    /// In milliseconds since 1970.
    pub(super) since_ms: u64,
    pub(super) hits_max: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct SearchFindings {
    /// Newest first, and one more than wanted if there are more.
    pub(super) hits: Vec<IndexHit>,
    /// How many rows of these sessions were never indexed.
    pub(super) rows_skipped: u64,
    /// What was not searched, and why.
    pub(super) incomplete: Option<String>,
}

impl SearchScope {
    /// Searches until enough is found or the time is up. Blocks.
    ///
    /// # Errors
    /// Returns [`SurfaceError::SessionNotFound`] when neither a session nor the index has the given one.
    pub(super) fn search(&self, matcher: &mut LineMatcher) -> Result<SearchFindings, SurfaceError> {
        let clock = self.sessions.clock();
        let (deadline, ticking) = (clock.now() + SEARCH_MAX, clock.clone());
        let expired: Expired = Arc::new(move || ticking.now() >= deadline);
        let (known, missing) = match self.session.as_deref() {
            None => (seen_known(&self.sessions, &self.standing), None),
            Some(given) => match find_known(&self.sessions, &self.standing, Some(given)) {
                Ok(known) => (vec![known], None),
                Err(error @ SurfaceError::SessionNotFound { .. }) => (Vec::new(), Some(error)),
                Err(error) => return Err(error),
            },
        };
        let live = LiveScreen::of(&known, clock);
        let viewed = self.index.view(Arc::clone(&expired), |view| {
            let chosen = match (&self.session, &missing) {
                (None, _) => None,
                (Some(given), Some(_)) => Some(self.gone_sessions(view, given)?),
                (Some(_), None) => Some(known.iter().map(Known::id).collect()),
            };
            self.search_all(view, chosen, &live, &expired, matcher)
        });
        let unread = match viewed {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => None,
            Err(IndexError::NotReady) if self.index.is_on() => None,
            Err(IndexError::NotReady) => Some(
                "only sessions that exist were searched, since `search.enabled` is off".to_owned(),
            ),
            Err(error @ (IndexError::Damaged(_) | IndexError::Unusable(_))) => {
                Some(error.to_string())
            }
        };
        if let Some(error) = missing {
            return Err(error);
        }
        let mut found = SearchFindings { incomplete: unread, ..SearchFindings::default() };
        self.search_live(&live, |_| 0, &expired, matcher, &mut found);
        Ok(self.newest(found))
    }

    fn sees(&self, id: SessionId, tenant: &TenantId) -> bool {
        sees_id(&self.sessions, &self.standing, id, tenant)
    }

    /// The sessions of the index that are meant and that the caller sees.
    fn gone_sessions(
        &self,
        view: &IndexView<'_>,
        given: &str,
    ) -> Result<Vec<SessionId>, IndexError> {
        let named = view.sessions_named(given)?;
        let seen = named.iter().filter(|known| self.sees(known.id, &known.tenant));
        Ok(seen.map(|known| known.id).collect())
    }

    /// Searches sessions and index; `None` when the index does not have the chosen session either.
    fn search_all(
        &self,
        view: &IndexView<'_>,
        chosen: Option<Vec<SessionId>>,
        live: &[LiveScreen],
        expired: &Expired,
        matcher: &mut LineMatcher,
    ) -> Result<Option<SearchFindings>, IndexError> {
        if chosen.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let ids: Vec<_> = match &chosen {
            Some(chosen) => chosen.clone(),
            None => live.iter().map(|screen| screen.session.id()).collect(),
        };
        let positions = view.positions(&ids)?;
        let mut found = SearchFindings {
            rows_skipped: positions.values().map(|(_, skipped)| skipped).sum(),
            ..SearchFindings::default()
        };
        let position = |id| positions.get(&id).map_or(0, |(next, _)| *next);
        self.search_live(live, position, expired, matcher, &mut found);
        let IndexHits { hits, unfinished } = view.search(IndexQuery {
            matcher,
            sessions: chosen.as_deref(),
            sees: &|id, tenant| self.sees(id, tenant),
            since_ms: self.since_ms,
            hits_max: self.hits_max + 1,
        })?;
        let of_command = |hit: &IndexHit| hit.command.as_ref().map(|it| (hit.session, it.number));
        let known: Vec<_> = found.hits.iter().filter_map(of_command).collect();
        let is_new = |hit: &IndexHit| of_command(hit).is_none_or(|it| !known.contains(&it));
        found.hits.extend(hits.into_iter().filter(is_new));
        if unfinished {
            found.incomplete = Some(TIME_IS_UP.to_owned());
        }
        Ok(Some(self.newest(found)))
    }

    /// Searches the commands of the sessions and the rows from `position` on.
    fn search_live(
        &self,
        live: &[LiveScreen],
        position: impl Fn(SessionId) -> u64,
        expired: &Expired,
        matcher: &mut LineMatcher,
        found: &mut SearchFindings,
    ) {
        let since_ms = self.since_ms;
        for screen in live {
            let most = found.hits.len() + self.hits_max + 1;
            let from = RowNumber(position(screen.session.id()));
            let mut search = LiveSearch { screen, expired, matcher, most, hits: &mut found.hits };
            let searched = match screen.at_ms >= since_ms {
                true => search.rows(from).and_then(|()| search.commands(since_ms)),
                false => search.commands(since_ms),
            };
            if searched.is_err() {
                found.incomplete = Some(TIME_IS_UP.to_owned());
                return;
            }
        }
    }

    fn newest(&self, mut found: SearchFindings) -> SearchFindings {
        found.hits.sort_by_key(|hit| std::cmp::Reverse(hit.at_ms));
        found.hits.truncate(self.hits_max + 1);
        found
    }
}

const TIME_IS_UP: &str = "it takes too long to search everything: name a session, or give `since`";

/// A session with its newest frame.
#[derive(Debug)]
struct LiveScreen {
    session: Session,
    frame: Arc<Frame>,
    /// When its screen last changed, in milliseconds since 1970.
    at_ms: u64,
    clock: Clock,
}

impl LiveScreen {
    fn of(known: &[Known], clock: &Clock) -> Vec<Self> {
        let (now, wall) = clock.now_by_wall();
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = |at: Moment| {
            u64::try_from(wall.saturating_sub(now.since(at)).as_millis()).unwrap_or(u64::MAX)
        };
        let live = known.iter().filter_map(Known::here).map(|session| {
            let frame = session.frame();
            let (session, clock) = (session.clone(), clock.clone());
            Self { session, at_ms: at_ms(frame.screen_changed_at), frame, clock }
        });
        live.collect()
    }
}

/// The search of one session.
struct LiveSearch<'a> {
    screen: &'a LiveScreen,
    expired: &'a Expired,
    matcher: &'a mut LineMatcher,
    /// How many hits are enough.
    most: usize,
    hits: &'a mut Vec<IndexHit>,
}

impl LiveSearch<'_> {
    /// Searches the rows from this one on, newest first.
    fn rows(&mut self, from: RowNumber) -> Result<(), BudgetSpent> {
        let frame = &*self.screen.frame;
        let first = from.max(frame.history.first());
        let mut end = frame.end_row();
        while end > first && self.hits.len() < self.most {
            if (self.expired)() {
                return Err(BudgetSpent);
            }
            let row = RowNumber(end.0 - 1);
            let Some(line) = LogicalLine::around(frame, row) else {
                // Numbers between history and a screen that was wrapped anew name nothing.
                end = frame.history.end().min(row);
                continue;
            };
            if let Some(found) = self.matcher.find(line.text())? {
                self.add(line.first(), self.screen.at_ms, line.text(), found, None);
            }
            end = line.first();
        }
        Ok(())
    }

    fn commands(&mut self, since_ms: u64) -> Result<(), BudgetSpent> {
        let LiveScreen { frame, clock, .. } = self.screen;
        for record in frame.commands.value.iter().rev() {
            if let Some(found) = self.matcher.find(&record.text)? {
                let command = CommandWire::of(record, clock);
                if command.started < since_ms {
                    break;
                }
                let CommandWire { command: text, started, .. } = &command;
                let hit = CommandHit {
                    number: command.command_id,
                    exit_code: command.exit_code,
                    directory: command.cwd.clone(),
                    by: command.by.clone(),
                    duration_ms: command.duration_ms,
                };
                self.add(record.from.row, *started, text, found, Some(hit));
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        row: RowNumber,
        at_ms: u64,
        text: &str,
        found: Range<usize>,
        command: Option<CommandHit>,
    ) {
        let session = &self.screen.session;
        self.hits.push(IndexHit {
            session: session.id(),
            name: session.name().to_string(),
            row: row.0,
            at_ms,
            text: text.to_owned(),
            found,
            command,
        });
    }
}
