//! Putting in and taking out, back to the bytes that were there.

use proptest::prelude::{Strategy, any, prop};
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::cli::install::client::CLIENTS;
use crate::cli::install::entry_format::{AgentRights, MCP_SERVERS, TOML_SERVERS};
use crate::cli::install::format::FileFormat;

fn server() -> ServerEntry {
    ServerEntry::bridge(
        "termgate".to_owned(),
        "/bin/termgate".to_owned(),
        AgentRights::AsConfigured,
    )
}

fn added(entry_format: &EntryFormat, text: Option<&str>) -> String {
    match install(entry_format, text, &server()).unwrap() {
        TextChange::Added(text) => text,
        other @ (TextChange::Unchanged
        | TextChange::Updated(_)
        | TextChange::Removed(_)
        | TextChange::RemovedFile) => panic!("{other:?}"),
    }
}

/// Texts of this format as they are found, with and without a container.
fn samples(entry_format: &EntryFormat) -> Vec<String> {
    let container = entry_format.container;
    match entry_format.format {
        FileFormat::Json => vec![
            String::new(),
            "\n".to_owned(),
            "{}".to_owned(),
            "{ }\n".to_owned(),
            "{\"a\":[1,2]}".to_owned(),
            format!("{{\"{container}\":{{}}}}"),
            format!("{{\r\n\t\"{container}\": {{\r\n\t\t\"o\": {{}}\r\n\t}}\r\n}}\r\n"),
            format!("// c\n{{ \"{container}\": {{ \"o\": {{}}, }}, }} // d"),
        ],
        FileFormat::Toml => vec![
            String::new(),
            "# only a remark".to_owned(),
            "a = 1\r\n[b]\r\nc = 2\r\n".to_owned(),
            format!("[{container}]\n"),
            format!("[{container}.o]\ncommand='x'"),
            format!("{container} = {{}}\n"),
        ],
        FileFormat::Yaml => Vec::new(),
    }
}

#[test]
fn installing_twice_changes_nothing_the_second_time() {
    for client in &CLIENTS {
        for text in samples(&client.entry_format) {
            let once = added(&client.entry_format, Some(&text));
            let twice = install(&client.entry_format, Some(&once), &server()).unwrap();
            assert_eq!(twice, TextChange::Unchanged, "{}: {once}", client.name);
        }
    }
}

#[test]
fn uninstalling_gives_back_the_bytes_that_were_there() {
    for client in &CLIENTS {
        for text in samples(&client.entry_format) {
            let once = added(&client.entry_format, Some(&text));
            let earlier = [text.clone()];
            let left = uninstall(&client.entry_format, &once, "termgate", &earlier).unwrap();
            assert_eq!(left, TextChange::Removed(text), "{}", client.name);
        }
    }
}

#[test]
fn an_update_in_between_does_not_hide_what_was_there_first() {
    let entry_format = MCP_SERVERS;
    let first = "{\"a\":1}".to_owned();
    let second = added(&entry_format, Some(&first));
    let server =
        ServerEntry::bridge("termgate".to_owned(), "/new".to_owned(), AgentRights::ReadOnly);
    let TextChange::Updated(third) = install(&entry_format, Some(&second), &server).unwrap() else {
        panic!("it was there in another form");
    };
    let left = uninstall(&entry_format, &third, "termgate", &[second, first.clone()]).unwrap();
    assert_eq!(left, TextChange::Removed(first));
}

#[test]
fn a_file_that_held_nothing_but_our_entry_goes() {
    for client in CLIENTS.iter().filter(|client| client.entry_format.format != FileFormat::Yaml) {
        let text = added(&client.entry_format, None);
        let left = uninstall(&client.entry_format, &text, "termgate", &[]).unwrap();
        assert_eq!(left, TextChange::RemovedFile, "{}", client.name);
    }
}

#[test]
fn what_others_wrote_meanwhile_stays_and_our_empty_container_goes() {
    let before = "{\n  \"a\": 1\n}\n".to_owned();
    let now = added(&MCP_SERVERS, Some(&before)).replace("\"a\": 1", "\"a\": 2");
    let left = uninstall(&MCP_SERVERS, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, TextChange::Removed("{\n  \"a\": 2\n}\n".to_owned()));
    let before = "a = 1\n".to_owned();
    let now = added(&TOML_SERVERS, Some(&before)).replace("a = 1", "a = 2");
    let left = uninstall(&TOML_SERVERS, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, TextChange::Removed("a = 2\n".to_owned()));
}

#[test]
fn an_empty_container_of_somebody_else_stays() {
    let before = "a = 1\n\n[mcp_servers]\n".to_owned();
    let now = added(&TOML_SERVERS, Some(&before)).replace("a = 1", "a = 2");
    let left = uninstall(&TOML_SERVERS, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, TextChange::Removed("a = 2\n\n[mcp_servers]\n".to_owned()));
    let now = added(&MCP_SERVERS, Some("{\"a\":1}"));
    let left = uninstall(&MCP_SERVERS, &now, "termgate", &[]).unwrap();
    let TextChange::Removed(left) = left else { panic!("{left:?}") };
    assert!(left.contains("\"mcpServers\": {}"), "nobody knows whose it is: {left}");
}

#[test]
fn nothing_is_taken_out_that_is_not_there() {
    for client in &CLIENTS {
        for text in samples(&client.entry_format) {
            let left = uninstall(&client.entry_format, &text, "termgate", &[]).unwrap();
            assert_eq!(left, TextChange::Unchanged, "{}", client.name);
        }
    }
}

#[test]
fn line_ends_of_windows_stay_throughout() {
    let text = "a = 1\r\n[mcp_servers.o]\r\ncommand = 'x'\r\n";
    let now = added(&TOML_SERVERS, Some(text));
    assert_eq!(now.matches('\n').count(), now.matches("\r\n").count(), "{now:?}");
}

/// Pieces of which files are made, each with marks that can be looked for.
const TOML: [&str; 16] = [
    "# m1\n",
    "a = \"m2\" # m3\n",
    "\n",
    "[mcp_servers]\n",
    "[mcp_servers.o]\n",
    "[mcp_servers.o.env] # m4\n",
    "[b]\n",
    "[c.d] # m5\n",
    "[[e]]\n",
    "k = [ 'm6', # m7\n 'm8' ]\n",
    "mcp_servers.p.command = 'm9'\n",
    "mcp_servers = { q = { command = \"m10\" } } # m11\n",
    "t = \"\"\"\nm12\n\"\"\"\n",
    "[f.mcp_servers]\n",
    "d = 2020-01-01 # m13\n",
    "z = 'm14'",
];
const JSON: [&str; 16] = [
    "{",
    "}",
    "}",
    "\"mcpServers\": {",
    "\"o\": {",
    "\"a\": [\"m1\", 2]",
    ",",
    ", ",
    "// m2\n",
    "/* m3 */",
    "\n",
    "\t",
    "\"b\": \"m4\"",
    "\"c\": {}",
    "\r\n",
    "\"d\": 1.50e+2",
];

fn pieces(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(select(of), 0..9).prop_map(|pieces| pieces.concat())
}

fn marks(text: &str) -> Vec<&str> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric());
    let is_mark = |word: &&str| {
        let number = word.strip_prefix('m').unwrap_or_default();
        !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit())
    };
    let mut marks: Vec<_> = words.filter(is_mark).collect();
    marks.sort();
    marks
}

/// Whatever the text is, it is refused, or nothing is lost and everything comes back.
fn nothing_is_lost(
    entry_format: &EntryFormat,
    text: &str,
) -> Result<(), proptest::test_runner::TestCaseError> {
    let Ok(TextChange::Added(after)) = install(entry_format, Some(text), &server()) else {
        return Ok(());
    };
    prop_assert_eq!(marks(&after), marks(text), "{}", after);
    let again = install(entry_format, Some(&after), &server());
    prop_assert_eq!(again, Ok(TextChange::Unchanged), "{}", after);
    let undone = uninstall(entry_format, &after, "termgate", &[text.to_owned()]);
    prop_assert_eq!(undone, Ok(TextChange::Removed(text.to_owned())), "{}", after);
    if let Ok(left) = entry_format.take(&after, "termgate", Emptied::Stays) {
        prop_assert_eq!(marks(&left), marks(text), "{}", left);
        prop_assert!(entry_format.find(&left, "termgate") == Ok(None), "{}", left);
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_toml_loses_anything(text in pieces(&TOML)) {
        nothing_is_lost(&TOML_SERVERS, &text)?;
    }

    #[test]
    fn no_json_loses_anything(text in pieces(&JSON), braces in any::<bool>()) {
        let text = if braces { format!("{{{text}}}") } else { text };
        nothing_is_lost(&MCP_SERVERS, &text)?;
    }
}
