//! Putting in and taking out, back to the bytes that were there.

use super::*;
use crate::cli::install::client::CLIENTS;
use crate::cli::install::family::{extensions, mcp_servers, toml_servers};
use crate::cli::install::format::Format;
use crate::cli::install::server::Rights;

fn server() -> Server {
    Server::bridge("termgate".to_owned(), "/bin/termgate".to_owned(), Rights::AsConfigured)
}

fn added(family: &Family, text: Option<&str>) -> String {
    match install(family, text, &server()).unwrap() {
        Installed::Added(text) => text,
        other @ (Installed::AlreadyThere | Installed::Updated(_)) => panic!("{other:?}"),
    }
}

/// Texts of this format as they are found, with and without a container.
fn samples(family: &Family) -> Vec<String> {
    let container = family.container;
    match family.format {
        Format::Json => vec![
            String::new(),
            "\n".to_owned(),
            "{}".to_owned(),
            "{ }\n".to_owned(),
            "{\"a\":[1,2]}".to_owned(),
            format!("{{\"{container}\":{{}}}}"),
            format!("{{\r\n\t\"{container}\": {{\r\n\t\t\"o\": {{}}\r\n\t}}\r\n}}\r\n"),
            format!("// c\n{{ \"{container}\": {{ \"o\": {{}}, }}, }} // d"),
        ],
        Format::Toml => vec![
            String::new(),
            "# only a remark".to_owned(),
            "a = 1\r\n[b]\r\nc = 2\r\n".to_owned(),
            format!("[{container}]\n"),
            format!("[{container}.o]\ncommand='x'"),
            format!("{container} = {{}}\n"),
        ],
        Format::Yaml => vec![
            String::new(),
            "# only a remark\n".to_owned(),
            "a: 1".to_owned(),
            "a: 1\r\nb:\r\n  - 2\r\n".to_owned(),
            format!("{container}:\n"),
            format!("{container}: {{}}"),
            format!("{container}:\n    o:\n        enabled: true # c\n\n\nz: 1\n"),
        ],
    }
}

#[test]
fn installing_twice_changes_nothing_the_second_time() {
    for client in &CLIENTS {
        for text in samples(&client.family) {
            let once = added(&client.family, Some(&text));
            let twice = install(&client.family, Some(&once), &server()).unwrap();
            assert_eq!(twice, Installed::AlreadyThere, "{}: {once}", client.name);
        }
    }
}

#[test]
fn uninstalling_gives_back_the_bytes_that_were_there() {
    for client in &CLIENTS {
        for text in samples(&client.family) {
            let once = added(&client.family, Some(&text));
            let earlier = [text.clone()];
            let left = uninstall(&client.family, &once, "termgate", &earlier).unwrap();
            assert_eq!(left, Uninstalled::Left(text), "{}", client.name);
        }
    }
}

#[test]
fn an_update_in_between_does_not_hide_what_was_there_first() {
    let family = mcp_servers::PLAIN;
    let first = "{\"a\":1}".to_owned();
    let second = added(&family, Some(&first));
    let server = Server::bridge("termgate".to_owned(), "/new".to_owned(), Rights::ReadOnly);
    let Installed::Updated(third) = install(&family, Some(&second), &server).unwrap() else {
        panic!("it was there in another form");
    };
    let left = uninstall(&family, &third, "termgate", &[second, first.clone()]).unwrap();
    assert_eq!(left, Uninstalled::Left(first));
}

#[test]
fn a_file_that_held_nothing_but_our_entry_goes() {
    for client in &CLIENTS {
        let text = added(&client.family, None);
        let left = uninstall(&client.family, &text, "termgate", &[]).unwrap();
        assert_eq!(left, Uninstalled::Nothing, "{}", client.name);
    }
}

#[test]
fn what_others_wrote_meanwhile_stays_and_our_empty_container_goes() {
    let before = "{\n  \"a\": 1\n}\n".to_owned();
    let now = added(&mcp_servers::PLAIN, Some(&before)).replace("\"a\": 1", "\"a\": 2");
    let left = uninstall(&mcp_servers::PLAIN, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, Uninstalled::Left("{\n  \"a\": 2\n}\n".to_owned()));
    let before = "a = 1\n".to_owned();
    let now = added(&toml_servers::FAMILY, Some(&before)).replace("a = 1", "a = 2");
    let left = uninstall(&toml_servers::FAMILY, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, Uninstalled::Left("a = 2\n".to_owned()));
}

#[test]
fn an_empty_container_of_somebody_else_stays() {
    let before = "extensions: {}\na: 1\n".to_owned();
    let now = added(&extensions::FAMILY, Some(&before)).replace("a: 1", "a: 2");
    let left = uninstall(&extensions::FAMILY, &now, "termgate", &[before]).unwrap();
    assert_eq!(left, Uninstalled::Left("extensions: {}\na: 2\n".to_owned()));
    let now = added(&mcp_servers::PLAIN, Some("{\"a\":1}"));
    let left = uninstall(&mcp_servers::PLAIN, &now, "termgate", &[]).unwrap();
    let Uninstalled::Left(left) = left else { panic!("{left:?}") };
    assert!(left.contains("\"mcpServers\": {}"), "nobody knows whose it is: {left}");
}

#[test]
fn nothing_is_taken_out_that_is_not_there() {
    for client in &CLIENTS {
        for text in samples(&client.family) {
            let left = uninstall(&client.family, &text, "termgate", &[]).unwrap();
            assert_eq!(left, Uninstalled::NotThere, "{}", client.name);
        }
    }
}

#[test]
fn line_ends_of_windows_stay_throughout() {
    let text = "a: 1\r\nextensions:\r\n  o:\r\n    b: 1\r\n";
    let now = added(&extensions::FAMILY, Some(text));
    assert_eq!(now.matches('\n').count(), now.matches("\r\n").count(), "{now:?}");
}
