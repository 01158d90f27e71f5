//! The defaults, what may be laid over them, and how errors are told.

use super::*;

use std::fs;

use crate::core::frame::history::HistoryLimits;
use crate::core::lease::limits::LeaseLimits;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("my.toml"))
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn defaults() -> Config {
    Config::load(None).unwrap()
}

#[test]
fn without_a_file_the_defaults_of_the_design_hold() {
    let expected = Config {
        allow_write: false,
        lease: LeaseConfig {
            ttl: Duration::from_secs(30),
            max_hold: Duration::from_secs(600),
            grace: Duration::from_secs(5),
            auto: false,
        },
        history: HistoryConfig { rows: 10_000, bytes: 8 * 1024 * 1024 },
        frame_interval: Duration::from_millis(8),
        keep_ended: Duration::from_secs(3_600),
        sessions_max: 512,
        subscriptions_max: 4_096,
    };
    assert_eq!(defaults(), expected);
}

#[test]
fn the_defaults_agree_with_those_of_the_core() {
    let Config { lease, history, .. } = defaults();
    let leases = LeaseLimits::default();
    assert_eq!(lease.ttl, leases.ttl_default);
    assert_eq!(lease.max_hold, leases.max_hold);
    assert_eq!(lease.grace, leases.grace_default);
    let kept = HistoryLimits::default();
    assert_eq!((history.rows, history.bytes), (kept.rows_max, kept.bytes_max));
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let config = parse("allow_write = true\n[lease]\nttl_ms = 5000\n").unwrap();
    let mut expected = defaults();
    expected.allow_write = true;
    expected.lease.ttl = Duration::from_secs(5);
    assert_eq!(config, expected);
}

#[test]
fn tables_may_be_written_in_every_way_that_toml_knows() {
    let mut expected = defaults();
    expected.lease.auto = true;
    for text in ["[lease]\nauto = true", "lease.auto = true", "lease = { auto = true }"] {
        assert_eq!(parse(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn every_key_reaches_the_setting_it_names() {
    let text = "allow_write = true\n\
        lease = { ttl_ms = 1001, max_hold_ms = 1002, grace_ms = 1003, auto = true }\n\
        history = { rows = 1004, bytes = 100005 }\n\
        screen.frame_interval_ms = 6\n\
        sessions = { keep_ended_ms = 1007, max = 8 }\n\
        limits.subscriptions = 9\n";
    let expected = Config {
        allow_write: true,
        lease: LeaseConfig {
            ttl: Duration::from_millis(1_001),
            max_hold: Duration::from_millis(1_002),
            grace: Duration::from_millis(1_003),
            auto: true,
        },
        history: HistoryConfig { rows: 1_004, bytes: 100_005 },
        frame_interval: Duration::from_millis(6),
        keep_ended: Duration::from_millis(1_007),
        sessions_max: 8,
        subscriptions_max: 9,
    };
    assert_eq!(parse(text).unwrap(), expected);
}

#[test]
fn a_key_that_nobody_knows_is_told_with_file_line_and_name() {
    let told = error("allow_write = true\n\n[lease]\nttl = 5\n");
    assert!(told.starts_with("my.toml:4: lease.ttl: unknown field `ttl`"), "{told}");
    let told = error("allow_writes = true");
    assert!(told.starts_with("my.toml:1: allow_writes: unknown field"), "{told}");
    let told = error("[lease]\nauto = true\n[leases]\nauto = true");
    assert!(told.starts_with("my.toml:3: leases: unknown field"), "{told}");
}

#[test]
fn a_number_out_of_bounds_is_told_with_the_bounds() {
    let bounds = "expected a whole number from 1000 to 600000";
    for value in ["999", "600001", "-1", "9223372036854775807"] {
        assert_eq!(
            error(&format!("[lease]\nauto = true\nttl_ms = {value}")),
            format!("my.toml:3: lease.ttl_ms: invalid value: integer `{value}`, {bounds}")
        );
    }
    assert!(parse("[lease]\nttl_ms = 1000").is_ok());
    assert!(parse("[lease]\nttl_ms = 600000").is_ok());
}

#[test]
fn a_value_of_another_type_is_told_with_line_and_key() {
    let told = error("[history]\nrows = \"many\"");
    let expected = "my.toml:2: history.rows: invalid type: string \"many\", \
                    expected a whole number from 100 to 10000000";
    assert_eq!(told, expected);
    let told = error("allow_write = 1");
    assert!(told.starts_with("my.toml:1: allow_write: invalid type: integer `1`"), "{told}");
    let told = error("\nlease = 5");
    assert_eq!(told, "my.toml:2: lease: invalid type: integer `5`, expected a table");
    let told = error("screen.frame_interval_ms = 8.0");
    assert!(told.starts_with("my.toml:1: screen.frame_interval_ms: invalid type"), "{told}");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let told = error("[lease]\nauto = true\nttl_ms == 5");
    assert!(told.starts_with("my.toml:3: "), "{told}");
    let told = error("[lease]\nauto = true\nauto = true");
    assert!(told.starts_with("my.toml:3: "), "{told}");
}

#[test]
fn a_file_is_read_from_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.toml");
    fs::write(&path, "[sessions]\nmax = 7\n").unwrap();
    assert_eq!(Config::load(Some(&path)).unwrap().sessions_max, 7);
}

#[test]
fn a_file_that_is_not_there_or_without_end_is_told() {
    let error = Config::load(Some(Path::new("/nowhere/my.toml"))).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/my.toml: "), "{error}");
    let error = Config::load(Some(Path::new("/dev/zero"))).unwrap_err();
    assert!(matches!(error, ConfigError::TooLarge { .. }), "{error}");
}

#[test]
fn every_key_of_the_defaults_says_what_it_is_for() {
    // A comment explains the keys that follow it without a gap.
    let mut explained = false;
    for line in DEFAULTS.lines() {
        let is_key = !line.starts_with('#') && line.contains('=');
        assert!(explained || !is_key, "{line}");
        explained = line.starts_with('#') || is_key && explained;
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_reading_fail_in_another_way_than_with_an_error(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_keys_and_values_make_reading_fail_in_another_way_than_with_an_error(
        lines in proptest::collection::vec(
            "(\\[?(lease|history|screen)\\]?|ttl_ms|auto|rows|\n)( = )?(-?[0-9]{0,20}|true|\\{|\"é)?\n?",
            0..8,
        )
    ) {
        let _ = parse(&lines.concat());
    }
}
