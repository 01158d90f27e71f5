//! What a file sets, and how each mistake in it is told.

use super::*;

use std::fs;

fn given(text: &str) -> Vec<String> {
    let (given, problems) = read(text, Path::new("my.toml"));
    assert!(problems.is_empty(), "{problems:?}");
    given.iter().map(|it| format!("{}: {} = {}", it.origin, it.key.name, it.value)).collect()
}

fn problems(text: &str) -> Vec<String> {
    read(text, Path::new("my.toml")).1.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_sets_what_it_names_and_nothing_else() {
    let text = "allow_write = true\n[lease]\n  ttl_ms = 5_000\n";
    assert_eq!(
        given(text),
        ["my.toml:1:1: allow_write = true", "my.toml:3:3: lease.ttl_ms = 5000"]
    );
    assert!(given("# nothing\n").is_empty());
}

#[test]
fn tables_may_be_written_in_every_way_that_toml_knows() {
    for text in ["[lease]\nauto = true", "lease.auto = true", "lease = { auto = true }"] {
        let set = given(text);
        assert!(set.len() == 1 && set[0].ends_with(": lease.auto = true"), "{text}: {set:?}");
    }
}

#[test]
fn numbers_may_be_written_in_every_base() {
    assert_eq!(given("lease.ttl_ms = 0x1388"), ["my.toml:1:7: lease.ttl_ms = 5000"]);
}

#[test]
fn a_key_that_nobody_knows_is_told_with_its_place_and_the_nearest() {
    assert_eq!(
        problems("allow_write = true\n\n[lease]\nttl = 5\n"),
        ["my.toml:4:1: lease.ttl: unknown key; did you mean lease.ttl_ms?"]
    );
    assert_eq!(
        problems("allow_writes = true"),
        ["my.toml:1:1: allow_writes: unknown key; did you mean allow_write?"]
    );
    assert_eq!(
        problems("[lease]\nauto = true\n[leases]\nauto = true"),
        ["my.toml:3:2: leases: unknown key; did you mean lease?"]
    );
    assert_eq!(problems("[colours]\nred = 1"), ["my.toml:1:2: colours: unknown key"]);
}

#[test]
fn a_number_out_of_bounds_is_told_with_the_bounds() {
    for value in ["999", "600001", "-1", "9223372036854775808"] {
        assert_eq!(
            problems(&format!("[lease]\nauto = true\nttl_ms = {value}")),
            [format!(
                "my.toml:3:10: lease.ttl_ms: {value} is not a whole number from 1000 to 600000"
            )]
        );
    }
    assert_eq!(given("[lease]\nttl_ms = 1000").len(), 1);
    assert_eq!(given("[lease]\nttl_ms = 600000").len(), 1);
}

#[test]
fn a_value_of_another_type_is_told_with_what_is_expected() {
    for (text, expected) in [
        ("history.rows = \"many\"", "1:16: history.rows: \"many\" is not a whole number from 100"),
        ("allow_write = 1", "1:15: allow_write: 1 is not true or false"),
        ("\nlease = 5", "2:9: lease: 5 is not a table of keys"),
        ("lease.ttl_ms = 8.0", "1:16: lease.ttl_ms: 8.0 is not a whole number from 1000"),
        ("lease.auto = { on = 1 }", "1:14: lease.auto: { on = 1 } is not true or false"),
        ("history.rows = [\n1]", "1:16: history.rows: [… is not a whole number from 100"),
    ] {
        let told = problems(text);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("my.toml:{expected}")), "{told:?}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_in_the_order_of_its_text() {
    let told = problems("sessions.max = 0\nhistory.row = 5\nallow_write = \"yes\"\n");
    let places: Vec<&str> = told.iter().map(|line| &line[..10]).collect();
    assert_eq!(places, ["my.toml:1:", "my.toml:2:", "my.toml:3:"], "{told:?}");
}

#[test]
fn what_is_right_beside_a_mistake_is_still_read() {
    let (given, problems) = read("lease.auto = true\nsessions.max = 0", Path::new("my.toml"));
    assert_eq!((given.len(), problems.len()), (1, 1));
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    for text in ["[lease]\nauto = true\nttl_ms == 5", "[lease]\nauto = true\nauto = true"] {
        let told = problems(text);
        assert!(told[0].starts_with("my.toml:3:"), "{told:?}");
    }
}

#[test]
fn columns_are_counted_in_characters() {
    let told = problems("\"ä\" = 1 # x\nlease = { \"ö\" = 1, auto = 1 }");
    assert!(told[1].starts_with("my.toml:2:11: lease.ö"), "{told:?}");
    assert!(told[2].starts_with("my.toml:2:27: lease.auto"), "{told:?}");
}

#[test]
fn a_file_that_is_not_there_or_without_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.toml");
    assert_eq!(text(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(&path, "lease.auto = true").unwrap();
    assert_eq!(text(&path).unwrap(), "lease.auto = true");
    assert_eq!(text(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_told_what_is_wrong_with_it(
        text in r#"([a-z_.]{1,8}|[\[\]{}=\n"',#]|[0-9]{1,3}|lease|auto|allow_write|true|ä| ){0,40}"#
    ) {
        let (_, problems) = read(&text, Path::new("my.toml"));
        for problem in problems {
            assert!(problem.to_string().starts_with("my.toml:"));
        }
    }
}
