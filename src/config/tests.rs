//! The defaults, and that each key sets what it names.

use std::collections::BTreeSet;

use super::*;
use crate::config::key::ValueKind;
use crate::core::event::EventKinds;
use crate::core::frame::Size;
use crate::core::frame::history::HistoryLimits;
use crate::core::ids::TenantId;
use crate::core::policy::tenants::{Members, NamedTenant, Visibility};

#[test]
fn the_file_of_defaults_names_every_key_once_and_nothing_else() {
    let (given, problems) = file::read(DEFAULTS, Path::new("termgate.toml"));
    assert!(problems.is_empty(), "{problems:?}");
    let named: Vec<&str> = given.iter().map(|given| given.key.name).collect();
    let known: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(named.len(), KEYS.len());
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_file_of_defaults_says_the_bounds_of_every_number() {
    let lines: Vec<&str> = DEFAULTS.lines().collect();
    for key in KEYS {
        let ValueKind::Number { least, most } = key.kind else { continue };
        let name = key.name.rsplit('.').next().unwrap();
        let section = lines.iter().position(|line| *line == format!("[{}]", key.section()));
        let from = section.unwrap();
        let at = from + lines[from..].iter().position(|line| line.starts_with(name)).unwrap();
        // The bounds of keys that stand together are in the comment above the first of them, or of
        // their section where one comment speaks of all.
        let above = lines[..at].iter().rev().take(16).map(|line| line.trim_start_matches("# "));
        let above: Vec<&str> = above.collect();
        let text = above.into_iter().rev().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("{least} to {most}")), "{}: {text}", key.name);
    }
}

#[test]
fn without_a_file_the_defaults_of_the_design_hold() {
    let config = Config::built_in();
    assert!(!config.allow_write && !config.lease.auto);
    assert_eq!(config.lease.ttl, Duration::from_secs(30));
    assert_eq!(config.lease.max_hold, Duration::from_secs(600));
    assert_eq!(config.lease.grace, Duration::from_secs(5));
    assert_eq!(config.lease.person_idle, Duration::from_secs(10));
    assert_eq!(config.lease.waiters, 16);
    assert_eq!(config.frame_interval, Duration::from_millis(8));
    assert_eq!(config.screen.history, HistoryLimits { rows_max: 10_000, bytes_max: 8 << 20 });
    assert_eq!(config.cells, Size::CELLS_MAX as usize);
    assert_eq!(config.sessions, Quota::new(512, 64));
    assert_eq!(config.keep_ended, Duration::from_secs(3_600));
    assert_eq!(config.connections, Quota::new(2_048, 64));
    assert_eq!(config.subscriptions, Quota::new(4_096, 256));
    assert_eq!(config.calls, Quota::new(0, 200));
    let connection = ConnectionConfig {
        message_bytes: 1 << 20,
        message_tokens: 20_000,
        parsing_bytes: 4 << 20,
        incoming: Quota::new(16 << 20, 4 << 20),
        first_message: Duration::from_secs(5),
        inside_message: Duration::from_secs(10),
        short_requests: 64,
        long_requests: 256,
        unsent_reply_bytes: 768 << 10,
        unsent_push_bytes: 256 << 10,
    };
    assert_eq!(config.connection, connection);
}

#[test]
fn without_a_file_a_screen_has_the_limits_it_has_by_itself() {
    assert_eq!(Config::built_in().screen, ScreenLimits::default());
}

#[test]
fn no_key_lets_a_terminal_have_more_cells_than_an_emulator_bears() {
    let cells = ConfigKey::find("screen.cells").unwrap();
    assert!(!cells.kind.takes(&Value::Number(u64::from(Size::CELLS_MAX) + 1)));
}

#[test]
fn every_key_sets_its_own_value_and_no_other() {
    for key in KEYS {
        let mut config = Config::built_in();
        let another = match (key.kind, key.value(&config)) {
            (ValueKind::Switch, Value::Switch(on)) => Value::Switch(!on),
            (ValueKind::Number { least, most }, Value::Number(number)) => {
                Value::Number(if number == most { least } else { most })
            }
            (ValueKind::Key, Value::Key(_)) => Value::of_name("C-a").unwrap(),
            (ValueKind::Text { .. }, Value::Text(_)) => Value::Text("true".into()),
            (ValueKind::EventKinds, Value::EventKinds(_)) => {
                Value::EventKinds(EventKinds::of(["bell"]).unwrap())
            }
            (kind, value) => panic!("{}: {value:?} is no {kind}", key.name),
        };
        key.set(&mut config, another.clone());
        assert_eq!(key.value(&config), another, "{}", key.name);
        let built_in = Config::built_in();
        let changed = KEYS.iter().filter(|key| key.value(&config) != key.value(&built_in));
        assert_eq!(changed.map(|key| key.name).collect::<Vec<_>>(), [key.name]);
    }
}

#[test]
fn keys_of_a_section_stand_together() {
    let mut sections: Vec<&str> = KEYS.iter().map(ConfigKey::section).collect();
    sections.dedup();
    let distinct: BTreeSet<&str> = sections.iter().copied().collect();
    assert_eq!(sections.len(), distinct.len());
}

#[test]
fn the_right_to_write_is_never_a_projects_and_never_changed_by_reading_again() {
    let key = ConfigKey::find("allow_write").unwrap();
    assert_eq!((key.project, key.applies), (None, Applies::Restart));
}

#[test]
fn the_pages_for_users_name_only_keys_that_there_are() {
    let pages = [include_str!("../../README.md"), include_str!("../../docs/PROTOCOL.md")];
    let sections = KEYS.iter().map(ConfigKey::section).filter(|section| !section.is_empty());
    let sections: BTreeSet<&str> = sections.collect();
    let mut named = BTreeSet::new();
    for word in pages.iter().flat_map(|page| page.split('`')) {
        let dotted = word.split_once('.').filter(|(section, _)| sections.contains(section));
        let Some((_, rest)) = dotted else { continue };
        if rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            assert!(ConfigKey::find(word).is_some(), "there is no key {word}");
            named.insert(word);
        }
    }
    assert!(named.contains("calls.per_second") && named.len() > 10, "{named:?}");
}

#[test]
fn what_may_change_is_taken_over_and_what_needs_a_restart_is_told_each_time() {
    let mut running = Config::built_in();
    let mut read = Config::built_in();
    read.allow_write = true;
    read.lease.auto = true;
    let names = |changes: Vec<Change>| changes.iter().map(|it| it.key.name).collect::<Vec<_>>();
    assert_eq!(names(running.take_over(&read)), ["allow_write", "lease.auto"]);
    assert!(running.lease.auto && !running.allow_write);
    assert_eq!(names(running.take_over(&read)), ["allow_write"]);
}

#[test]
fn each_limit_of_a_tenant_reaches_what_it_limits() {
    let limits = TenantLimits {
        sessions: Some(1),
        connections: Some(2),
        subscriptions: Some(3),
        calls_per_second: Some(4),
        waiters: Some(5),
        history_rows: Some(105),
        history_bytes: Some(65_536),
    };
    let tenant = NamedTenant {
        members: Members::default(),
        roles: None,
        visibility: Visibility::Tenant,
        run_as: None,
        sandbox: false,
        tools: None,
        limits,
    };
    let id: TenantId = "web".parse().unwrap();
    let mut config = Config::built_in();
    let named = [(id.clone(), tenant)].into();
    config.adopt(Arc::new(Tenants { named, grants: Vec::new() }));
    let (own, other) = (TenantId::of_uid(1), TenantId::of_uid(2));
    let quotas = [&config.sessions, &config.connections, &config.subscriptions, &config.calls];
    assert_eq!(quotas.map(|quota| quota.of(&id, &own)), [1, 2, 3, 4]);
    assert_eq!(quotas.map(|quota| quota.of(&other, &own)), [64, 64, 256, 200]);
    config.adopt(Arc::default());
    let quotas = [&config.sessions, &config.connections, &config.subscriptions, &config.calls];
    assert_eq!(quotas.map(|quota| quota.of(&id, &own)), [64, 64, 256, 200]);
}
