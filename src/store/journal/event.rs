//! Events as records: their kind, and what else is known of them as JSON.

use serde_json::{Map, Value, json};

use crate::core::caller::Caller;
use crate::core::event::Event;
use crate::core::frame::Exit;
use crate::core::ids::Epoch;
use crate::core::lease::error::EndCause;
use crate::core::lease::view::LeaseChange;
use crate::core::mount::MountName;
use crate::core::screen::sequence::TaskProgress;
use crate::core::shell::activity::Evidence;

/// The kind of an event in records, one of [`EVENT_KINDS`](crate::core::event::EVENT_KINDS).
pub(super) fn kind_of(event: &Event) -> &'static str {
    match event {
        Event::DaemonStopped { .. } => "daemon_stopped",
        Event::ConfigurationRead { .. } => "configuration_read",
        Event::SessionCreated { .. } => "session_created",
        Event::SessionRenamed { .. } => "session_renamed",
        Event::SessionEnded { .. } => "session_ended",
        Event::SessionRemoved => "session_removed",
        Event::Lease { change, .. } => kind_of_change(change),
        Event::CommandStarted { .. } => "command_started",
        Event::CommandEnded { .. } => "command_ended",
        Event::NeedsInput { .. } => "needs_input",
        Event::Bell { .. } => "bell",
        Event::Notification { .. } => "notification",
        Event::Progress { .. } => "progress",
        Event::LeftOut { .. } => "left_out",
        Event::Attached { .. } => "attached",
        Event::Detached { .. } => "detached",
        Event::WritingSwitched { .. } => "writing_switched",
        Event::ApprovalAsked { .. } => "approval_asked",
        Event::ApprovalDecided { granted: true, .. } => "approval_granted",
        Event::ApprovalDecided { granted: false, .. } => "approval_denied",
        Event::Fault { .. } => "fault",
    }
}

fn kind_of_change(change: &LeaseChange) -> &'static str {
    match change {
        LeaseChange::Granted | LeaseChange::Revived => "lease_granted",
        LeaseChange::Renewed => "lease_renewed",
        LeaseChange::Suspended { .. } => "lease_suspended",
        LeaseChange::Resumed => "lease_resumed",
        LeaseChange::Ended(EndCause::Released) => "lease_released",
        LeaseChange::Ended(EndCause::Expired) => "lease_expired",
        LeaseChange::Ended(EndCause::Preempted { .. }) => "lease_preempted",
        LeaseChange::Ended(EndCause::HandedOver { .. }) => "lease_handed_over",
        LeaseChange::Ended(
            EndCause::HeldTooLong
            | EndCause::Disconnected
            | EndCause::Undeliverable
            | EndCause::Replaced { .. }
            | EndCause::WritingSwitchedOff
            | EndCause::SessionEnded
            | EndCause::SessionRestarted
            | EndCause::RightEnded,
        ) => "lease_ended",
    }
}

/// Who an event is about.
pub(super) fn caller_of(event: &Event) -> Option<&Caller> {
    match event {
        Event::Lease { holder, .. } => Some(holder),
        Event::Attached { person } | Event::Detached { person } => Some(person),
        Event::WritingSwitched { by, .. } => by.as_ref(),
        Event::ApprovalAsked { by, .. } | Event::ApprovalDecided { by, .. } => Some(by),
        Event::DaemonStopped { .. }
        | Event::ConfigurationRead { .. }
        | Event::SessionCreated { .. }
        | Event::SessionRenamed { .. }
        | Event::SessionEnded { .. }
        | Event::SessionRemoved
        | Event::CommandStarted { .. }
        | Event::CommandEnded { .. }
        | Event::NeedsInput { .. }
        | Event::Bell { .. }
        | Event::Notification { .. }
        | Event::Progress { .. }
        | Event::LeftOut { .. }
        | Event::Fault { .. } => None,
    }
}

pub(super) fn epoch_of(event: &Event) -> Option<Epoch> {
    if let Event::Lease { epoch, .. } = event { Some(*epoch) } else { None }
}

/// What else is known of an event. Members that do not apply are left out.
/// Without `keep_input`, the text of commands is left out.
pub(super) fn details_of(event: &Event, keep_input: bool) -> Option<Value> {
    let mut details = match event {
        Event::SessionRemoved | Event::Attached { .. } | Event::Detached { .. } => return None,
        Event::DaemonStopped { cause } => json!({"cause": cause}),
        Event::ConfigurationRead { changed } => json!({"changed": changed}),
        Event::SessionCreated { name, command } => json!({"name": name, "command": command}),
        Event::SessionRenamed { name } => json!({"name": name}),
        Event::SessionEnded { exit } => of_exit(*exit),
        Event::Lease { change, mount, .. } => of_change(change, mount.as_ref()),
        Event::CommandStarted { id, text, by } => {
            json!({"command_id": id.0, "command": keep_input.then_some(text), "by": by})
        }
        Event::CommandEnded { id, code, evidence } => {
            json!({"command_id": id.0, "exit_code": code, "evidence": word_of(*evidence)})
        }
        Event::NeedsInput { is_secret, program } => {
            json!({"secret": is_secret.then_some(true), "program": program})
        }
        Event::Bell { count } => json!({"count": count}),
        Event::LeftOut { count, offset } => json!({"count": count, "offset": offset}),
        Event::Notification { title, body, offset } => {
            json!({"title": title, "body": body, "offset": offset})
        }
        Event::Progress { progress, offset } => {
            let (state, percent) = of_progress(*progress);
            json!({"state": state, "percent": percent, "offset": offset})
        }
        Event::WritingSwitched { is_on, for_ms, .. } => {
            json!({"writing": if *is_on { "on" } else { "off" }, "for_ms": for_ms})
        }
        Event::ApprovalAsked { id, what, .. } => {
            let what = Some(what).filter(|what| keep_input && !what.is_empty());
            json!({"approval_id": id.to_string(), "what": what})
        }
        Event::ApprovalDecided { id, .. } => json!({"approval_id": id.to_string()}),
        Event::Fault { what } => json!({"what": what}),
    };
    if let Value::Object(members) = &mut details {
        members.retain(|_, value| !value.is_null());
        if members.is_empty() {
            return None;
        }
    }
    Some(details)
}

fn of_exit(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({"exit_code": code}),
        Exit::Signal(signal) => json!({"signal": signal}),
        Exit::Unknown | Exit::Lost => Value::Object(Map::new()),
    }
}

fn of_change(change: &LeaseChange, mount: Option<&MountName>) -> Value {
    let mount = mount.map(MountName::as_str);
    match change {
        LeaseChange::Granted | LeaseChange::Renewed | LeaseChange::Resumed => {
            json!({"mount": mount})
        }
        LeaseChange::Revived => json!({"mount": mount, "reason": "revived"}),
        LeaseChange::Suspended { by } => json!({"mount": mount, "other": by.to_string()}),
        LeaseChange::Ended(cause) => {
            let other = cause.by().map(ToString::to_string);
            json!({"mount": mount, "reason": cause.as_str(), "other": other})
        }
    }
}

fn of_progress(progress: TaskProgress) -> (&'static str, Option<u8>) {
    match progress {
        TaskProgress::Removed => ("removed", None),
        TaskProgress::Running(percent) => ("running", Some(percent)),
        TaskProgress::Failed(percent) => ("failed", Some(percent)),
        TaskProgress::Indeterminate => ("running", None),
        TaskProgress::Paused(percent) => ("paused", Some(percent)),
    }
}

fn word_of(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Osc133 => "osc133",
        Evidence::Kernel => "kernel",
        Evidence::Pattern => "pattern",
        Evidence::Idle => "idle",
        Evidence::Exit => "exit",
    }
}
