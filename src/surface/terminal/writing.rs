//! What all writing tools share: their options, the write itself, and waiting for what comes of it.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::counted::counted;
use crate::core::fnv::Fnv;
use crate::core::frame::Size;
use crate::core::frame::delta::View;
use crate::core::ids::{LeaseId, Watermark};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::wait::Conditions;
use crate::session::clock::Clock;
use crate::session::command::{Content, Expectation, WriteOrder, Written};
use crate::session::handle::Session;
use crate::surface::answer::budget::room_left;
use crate::surface::answer::page::Form;
use crate::surface::argument::{lease_id, millis};
use crate::surface::call::{Call, Target};
use crate::surface::error::SurfaceError;
use crate::surface::terminal::wait_for::{Memory, WaitConditions};
use crate::surface::terminal::waiting::{Bounds, FIRST_LOOK_LEAST, Watch};
use crate::surface::tool::Answer;
use crate::surface::turns::Share;
use crate::wire::delta::DeltaWire;
use crate::wire::lease::LeaseLeft;
use crate::wire::wait::{WaitOutcome, WriteResult};

/// How long the screen stays as it is before it counts as the answer of a program of which nothing else is known.
const IDLE_MS: u64 = 200;

/// How long a write with `until` waits when nobody says.
pub const WAIT_MS_DEFAULT: u64 = 5_000;

/// Most summaries are shorter.
const SUMMARY_BYTES: usize = 64;

/// The options that every writing tool takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct WriteOptions {
    /// Default: the lease you hold
    pub lease_id: Option<String>,
    /// Refuse if the screen changed since
    pub expect_watermark: Option<u64>,
    /// Refuse unless this is shown
    pub expect_text: Option<String>,
    /// A repeated call has no second effect
    pub idempotency_key: Option<String>,
    /// Say what would happen, send nothing
    #[serde(default)]
    pub dry_run: bool,
    /// Wait until idle, at most this long
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
    /// Or until this, as of wait_for
    pub until: Option<WaitConditions>,
}

impl WriteOptions {
    /// Whether the caller waits for what comes of its write.
    fn waits(&self) -> bool {
        self.until.is_some() || self.wait_ms.is_some_and(|wait| wait > 0)
    }
}

/// The lease id that the caller presents for a session.
///
/// # Errors
/// [`SurfaceError::Argument`] for what is no lease id, and for the lease of another session that the caller sees:
/// to call it unknown would have its holder throw it away.
pub fn presented(
    call: &Call,
    session: &Session,
    given: Option<&str>,
) -> Result<Option<LeaseId>, SurfaceError> {
    let Some(id) = given.map(lease_id).transpose()? else { return Ok(None) };
    let other = call.daemon.sessions.of_lease(id).filter(|other| other.id() != session.id());
    match other.filter(|other| call.session(Some(&other.id().to_string())).is_ok()) {
        Some(other) => {
            let problem = format!("this is the lease of session {}", other.name());
            Err(SurfaceError::argument("lease_id", problem))
        }
        None => Ok(Some(id)),
    }
}

/// Reads an idempotency key; the fingerprint tells different calls with the same key apart.
pub fn idempotency_key(
    text: Option<&str>,
    fingerprint: u64,
) -> Result<Option<IdempotencyKey>, SurfaceError> {
    let problem = || {
        let problem = format!("must have 1 to {} bytes", IdempotencyKey::LEN_MAX);
        SurfaceError::argument("idempotency_key", problem)
    };
    text.map(|text| IdempotencyKey::new(text, fingerprint).ok_or_else(problem)).transpose()
}

/// Tells calls with the same key apart by what they ask for, in the next daemon too, which may be of
/// another build.
pub fn fingerprint(of: &impl Hash) -> u64 {
    let mut hasher = Fnv::default();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Writes to the session of the call and waits as the options say.
///
/// # Errors
/// Whatever is wrong with the options, before anything is sent; then what the session said.
pub async fn write(
    mut call: Call,
    content: Content,
    options: WriteOptions,
) -> Result<Answer<WriteResult>, SurfaceError> {
    let share = &call.share();
    let clock = call.daemon.sessions.clock().clone();
    let started = clock.now();
    let waiting = match options.waits() {
        true => Some(Box::pin(WaitAfter::of(&options, share, &clock)).await?),
        false => None,
    };
    let target = call.take_target()?;
    call.touched(&target.session);
    let order = order(&call, &target.session, content, &options, waiting.is_some())?;
    let dry_run = options.dry_run;
    // No row of what follows is to be lost before the wait begins.
    let compares = waiting.as_ref().filter(|it| !it.conditions.patterns.is_empty());
    let follower = compares.map(|_| target.session.follow_rows(target.session.frame().base_row));
    let hurry = waiting.as_ref().filter(|it| it.conditions.idle_program);
    let hurry = hurry.map(|_| target.session.hurry());
    let mut written = target.session.write(&target.permit, order, call.accepted).await?;
    if let Some(grant) = &written.lease {
        call.daemon.sessions.remember_lease(grant.lease, target.session.id());
    }
    let mut result = WriteResult::of(&target, &written, dry_run, &clock);
    if let Some(waiting) = waiting.filter(|_| !dry_run && !written.replayed) {
        let since = Some(written.before);
        let bounds = Bounds { since, started, timeout: waiting.timeout, epoch: written.epoch };
        let watch =
            Watch::begin(target.session.clone(), waiting.conditions, bounds, share.clone())?;
        drop(follower);
        // Boxed, since most writes do not wait, and each would be larger by this.
        let waited = Box::pin(watch.end(&clock, &call.daemon.departure.waiting())).await;
        drop(hurry);
        // The lease was kept alive up to here.
        drop(written.kept.take());
        result.watermark = waited.watermark.unwrap_or(result.watermark);
        let asks = matches!(waited.outcome, WaitOutcome::Timeout | WaitOutcome::NeedsInput);
        result.wait = Some(waited);
        let room = room_left(&result, &result.summary());
        let changed = changes(&target, written.before, room, share).await;
        let tells =
            changed.rows_left_out.is_none() && changed.updates.iter().any(|it| it.row().is_some());
        if let Some(waited) = result.wait.as_mut().filter(|_| tells && !asks) {
            // The rows that changed say more.
            waited.last_rows.clear();
        }
        result.changed = Some(changed);
    }
    Ok(Answer { text: result.summary(), result })
}

struct WaitAfter {
    conditions: Conditions,
    timeout: std::time::Duration,
    _memory: Memory,
}

impl WaitAfter {
    /// # Errors
    /// [`SurfaceError::Quota`] when the patterns of others leave no turn to compile this one in the time
    /// that the call may wait; and what [`WaitConditions::conditions`] says.
    async fn of(
        options: &WriteOptions,
        share: &Share,
        clock: &Clock,
    ) -> Result<Self, SurfaceError> {
        let still = WaitConditions { idle_ms: Some(IDLE_MS), ..WaitConditions::default() };
        let wanted = options.until.as_ref().unwrap_or(&still);
        let timeout = millis("wait_ms", options.wait_ms.unwrap_or(WAIT_MS_DEFAULT), 0..=600_000)?;
        let (conditions, memory) = tokio::select! {
            biased;
            conditions = wanted.conditions(1, share) => {
                conditions.map_err(|error| error.within("until"))?
            }
            () = clock.sleep_until(clock.now() + timeout.max(FIRST_LOOK_LEAST)) => {
                return Err(SurfaceError::Quota("turns to compile patterns"));
            }
        };
        let conditions = Conditions { idle_program: options.until.is_none(), ..conditions };
        Ok(Self { conditions, timeout, _memory: memory })
    }
}

fn order(
    call: &Call,
    session: &Session,
    content: Content,
    options: &WriteOptions,
    keep_alive: bool,
) -> Result<WriteOrder, SurfaceError> {
    let key = idempotency_key(options.idempotency_key.as_deref(), fingerprint(&content))?;
    Ok(WriteOrder {
        caller: call.standing.caller.clone(),
        door: call.standing.door,
        content,
        presented: presented(call, session, options.lease_id.as_deref())?,
        take: call.take_rule(),
        expect: Expectation {
            watermark: options.expect_watermark.map(Watermark),
            text: options.expect_text.clone(),
        },
        key,
        dry_run: options.dry_run,
        keep_alive,
        command: None,
        decision: None,
        bound: None,
    })
}

async fn changes(target: &Target, since: Watermark, room: usize, share: &Share) -> DeltaWire {
    let frame = target.session.frame();
    let Size { rows, cols } = frame.size.value;
    let compare = move || {
        let delta = frame.delta_since(Some(since), &View::default(), None);
        DeltaWire::within(&delta, room, Form::ObjectAndText)
    };
    share.off_worker(usize::from(rows) * usize::from(cols), compare).await
}

impl WriteResult {
    fn of(target: &Target, written: &Written, dry_run: bool, clock: &Clock) -> Self {
        let now = clock.now();
        let left = |grant: &crate::core::lease::request::Grant| LeaseLeft {
            lease_id: grant.lease.to_string(),
            expires_in_ms: now.until(grant.expires_at).as_millis() as u64,
        };
        Self {
            session: Arc::clone(&target.session.about().id_text),
            written: written.outcome.written,
            queued_bytes: written.outcome.queued,
            discarded: written.outcome.discarded,
            watermark: written.watermark.0,
            lease: written.lease.as_ref().map(left),
            warning: written.warning.clone(),
            dry_run,
            replayed: written.replayed,
            wait: None,
            changed: None,
        }
    }

    fn summary(&self) -> String {
        let mut text = String::with_capacity(SUMMARY_BYTES);
        let sent = counted(self.written, "byte");
        // A string takes all that is written to it.
        let _ = match (self.dry_run, self.replayed) {
            (true, _) => write!(text, "this would be sent; nothing was"),
            (false, true) => write!(text, "this was sent before ({sent}), not again"),
            (false, false) => write!(text, "sent {sent}"),
        };
        if self.queued_bytes > 0 {
            let queued = counted(self.queued_bytes, "byte");
            text.push_str(&format!("; {queued} queued, because the program does not read"));
        }
        let _ = write!(text, ", watermark {}", self.watermark);
        if let Some(warning) = &self.warning {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        if let Some(waited) = &self.wait {
            text.push_str(&format!("\n{}", waited.headline()));
        }
        if let Some(changed) = &self.changed {
            text.push_str(&changed.rows_told());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::TenantId;
    use crate::surface::turns::Turns;

    #[tokio::test(start_paused = true)]
    async fn a_write_is_refused_when_its_pattern_gets_no_turn_in_its_time() {
        let (turns, clock) = (Turns::default(), Clock::paused());
        let share = turns.share_of(&TenantId::of_uid(1));
        let mut taken = Vec::new();
        for _ in 0..turns.at_once() {
            taken.push(share.turn().await);
        }
        let pattern = Some("a+".to_owned());
        let until = WaitConditions { pattern, ..WaitConditions::default() };
        let options =
            WriteOptions { until: Some(until), wait_ms: Some(2_000), ..WriteOptions::default() };
        let began = clock.now();
        let refused = WaitAfter::of(&options, &share, &clock).await.err();
        assert!(matches!(refused, Some(SurfaceError::Quota(_))), "{refused:?}");
        assert_eq!(clock.now().since(began).as_secs(), 2);
        drop(taken);
        assert!(WaitAfter::of(&options, &share, &clock).await.is_ok());
    }
}
