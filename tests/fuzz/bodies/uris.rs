//! URIs of resources, names of sessions and ids: what is read can be written, and reads back as the same.

use std::fmt::{Debug, Display, Write};
use std::str::FromStr;

use termgate::core::address::normal_address;
use termgate::core::caller::PrincipalName;
use termgate::core::ids::{PrincipalId, SessionId, TenantId};
use termgate::mcp::resource::work::Work;
use termgate::mcp::resource::{Resource, uri_of, uri_of_skill};
use termgate::session::error::{NAME_MAX, check_name};
use termgate::surface::terminal::read_history::HistoryFormat;
use termgate::wire::line::Format;

/// The longest error, however long the URI is.
const ERROR_MAX: usize = 400;

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match Resource::parse(text) {
        Ok(Some(resource)) => {
            let uri = uri(&resource);
            let again = Resource::parse(&uri).ok().flatten();
            assert_eq!(again.as_ref(), Some(&resource), "{uri}");
        }
        Ok(None) => {}
        Err(error) => {
            let told = error.to_string();
            assert!(told.len() <= ERROR_MAX, "an error of {} bytes", told.len());
        }
    }
    // A `//` behind the scheme, and a `/` behind the host. Letters may have longer small ones.
    assert!(normal_address(text).len() <= 2 * text.len() + 3, "{text}");
    check_session(text);
    check_id::<SessionId>(text);
    check_id::<TenantId>(text);
    check_id::<PrincipalId>(text);
    if let Some(name) = PrincipalName::parse(text) {
        assert_eq!(PrincipalName::parse(&name.to_string()).as_ref(), Some(&name));
    }
}

fn check_session(name: &str) {
    if check_name(name).is_ok() {
        assert!((1..=NAME_MAX).contains(&name.len()) && name.parse::<SessionId>().is_err());
        // A name stands in a path and in a URI as it is.
        assert!(!name.contains('/') && name != "." && name != "..");
        let resource = Resource::parse(&format!("termgate://session/{name}/cursor"));
        assert_eq!(resource.ok().flatten(), Some(Resource::Cursor { session: name.to_owned() }));
    }
    if let Ok(id) = name.parse::<SessionId>() {
        let resource = Resource::parse(&uri_of(id, "lease"));
        assert_eq!(resource.ok().flatten(), Some(Resource::Lease { session: name.to_owned() }));
    }
}

/// Checks that an id reads back as the same, and has one spelling only.
fn check_id<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    let Ok(id) = text.parse::<T>() else { return };
    let written = id.to_string();
    assert!(written.parse().ok().as_ref() == Some(&id), "{id:?}");
    assert!(written == text, "{text} is {id:?} as well");
}

/// The URI of a resource.
fn uri(resource: &Resource) -> String {
    let of = |session: &str, part: &str| format!("termgate://session/{session}/{part}");
    match resource {
        Resource::Daemon => "termgate://daemon".to_owned(),
        Resource::Approvals => "termgate://approvals".to_owned(),
        Resource::Mounts => "termgate://mounts".to_owned(),
        Resource::Sessions { after } => with("termgate://sessions", [("after", text(after))]),
        Resource::Leases { after } => with("termgate://leases", [("after", text(after))]),
        Resource::Events(query) => with(
            "termgate://events",
            [
                ("since", text(&query.since)),
                ("session", text(&query.session)),
                ("kind", text(&query.kind)),
                ("limit", Some(query.limit.to_string())),
            ],
        ),
        Resource::Grid { session, query } => with(
            &of(session, "grid"),
            [
                ("since", text(&query.since)),
                ("top", Some(query.top.to_string())),
                ("rows", text(&query.rows)),
                ("format", Some(format(query.format).to_owned())),
            ],
        ),
        Resource::History { session, query } => with(
            &of(session, "history"),
            [
                ("start_row", text(&query.start_row)),
                ("count", text(&query.count)),
                ("mode", Some(mode(query.format).to_owned())),
            ],
        ),
        Resource::Cursor { session } => of(session, "cursor"),
        Resource::Lease { session } => of(session, "lease"),
        Resource::Recording { session, offset } => {
            with(&of(session, "recording"), [("offset", text(offset))])
        }
        Resource::Work { session, work } => match work {
            Work::Commands => of(session, "commands"),
            Work::Directory => of(session, "cwd"),
            Work::Git => of(session, "git"),
            Work::Log { before } => with(&of(session, "log"), [("before", text(before))]),
            Work::Output { id, from_line } => with(
                &of(session, &format!("command/{}/output", id.0)),
                [("from_line", text(from_line))],
            ),
        },
        Resource::Skill(prompt) => uri_of_skill(prompt),
    }
}

fn text(value: &Option<impl ToString>) -> Option<String> {
    value.as_ref().map(ToString::to_string)
}

/// A URI with those parameters that have a value.
fn with<const N: usize>(uri: &str, parameters: [(&str, Option<String>); N]) -> String {
    let mut whole = format!("{uri}?");
    for (name, value) in parameters {
        if let Some(value) = value {
            write!(whole, "{name}={value}&").expect("a text takes any text");
        }
    }
    whole
}

fn format(format: Format) -> &'static str {
    match format {
        Format::Plain => "plain",
        Format::Styled => "styled",
        Format::Ansi => "ansi",
        Format::Cells => "cells",
    }
}

fn mode(format: HistoryFormat) -> &'static str {
    match format {
        HistoryFormat::Plain => "plain",
        HistoryFormat::Ansi => "ansi",
        HistoryFormat::Cells => "cells",
    }
}
