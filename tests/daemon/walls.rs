//! The walls between tenants hold at every door: for each principal, each tool and each resource that there is.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tokio::net::UnixListener;

use crate::daemon::harness::{Era, Wire};
use crate::daemon::program::{Piped, piped};
use crate::daemon::tenants::{
    House, RIGHTS, SCOPES, SESSIONS, TENANTS, named_session, needs, outcome, owner_at, sessions_of,
};
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::line_client::Answer;
use crate::harness::waiting::soon;

/// The rights of somebody at each session.
type Letters = [(&'static str, &'static str); 5];

/// What a way to the daemon leaves of somebody's rights.
#[derive(Clone, Copy, Debug, Default)]
struct Way<'a> {
    /// The one session that it shows.
    only: Option<&'a str>,
    /// Nobody writes there.
    watches: bool,
    /// It is that of a program inside of a session, which has no rights.
    inside: bool,
}

impl Way<'_> {
    /// What is left at a session.
    fn at(self, name: &str, letters: &str) -> String {
        if self.only.is_some_and(|only| only != name) {
            return String::new();
        }
        self.anywhere(letters)
    }

    /// What is left of rights, whichever session they are about.
    fn anywhere(self, letters: &str) -> String {
        let is_left = |letter: &char| !self.inside && (*letter == 'v' || !self.watches);
        letters.chars().filter(is_left).collect()
    }

    /// What is to become of the call of a tool about a session.
    fn outcome(self, tool: &str, need: char, name: &str, rights: &Letters) -> &'static str {
        let everywhere: String = rights.iter().map(|(_, letters)| self.anywhere(letters)).collect();
        let letters = rights.iter().find(|(it, _)| *it == name).map_or("", |(_, letters)| letters);
        let here = self.at(name, letters);
        let creates = everywhere.contains('w') && self.only.is_none();
        match need {
            '-' if tool == "create_session" && !creates => "denied",
            '-' => "may",
            'A' if everywhere.contains('a') => "may",
            'D' if everywhere.contains('D') => "may",
            'A' | 'D' => "no such tool",
            'o' if !everywhere.contains('o') => "no such tool",
            _ if here.is_empty() => "unseen",
            need if here.contains(need) => "may",
            _ => "denied",
        }
    }
}

/// Everything that is listed to an operator, and the sessions by name.
struct Matrix {
    tools: Vec<String>,
    /// Of the resources that are about one session.
    templates: Vec<String>,
    /// Those that are about no session.
    resources: Vec<String>,
    sessions: BTreeMap<&'static str, String>,
}

impl Matrix {
    async fn new(operator: &mut Wire, sessions: BTreeMap<&'static str, String>) -> Self {
        let tools = operator.tools().await;
        let templates = operator.request("resources/templates/list", json!({})).await.unwrap();
        let mut templates = texts(&templates["resourceTemplates"], "uriTemplate");
        templates.retain(|it| it.contains("{session}"));
        let resources = operator.request("resources/list", json!({})).await.unwrap();
        let mut resources = texts(&resources["resources"], "uri");
        resources.retain(|it| !it.contains("/session/"));
        assert!(tools.len() > 20 && templates.len() > 5, "{tools:?} {templates:?}");
        Self { tools, templates, resources, sessions }
    }

    /// Everything that becomes something else than the rights of a principal say.
    async fn wrong(&self, wire: &mut Wire, way: Way<'_>, rights: &Letters) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, letters) in rights {
            let id = &*self.sessions[name];
            let is_seen = !way.at(name, letters).is_empty();
            for tool in &self.tools {
                let (need, mut arguments) =
                    needs(tool).unwrap_or_else(|| panic!("{tool} has no entry"));
                if !matches!(need, '-' | 'A') && tool != "explain_decision" {
                    arguments["session"] = json!(id);
                }
                let params = json!({"name": tool, "arguments": arguments});
                let answer = wire.request("tools/call", params).await;
                let told = format!("{answer:?}");
                let (became, meant) = (outcome(answer), way.outcome(tool, need, name, rights));
                if became != meant {
                    wrong.push(format!("{tool} {name}: {became}, not {meant}: {told}"));
                }
            }
            for template in &self.templates {
                let plain = template.split("{?").next().unwrap().replace("{id}", "1");
                let read = read(wire, &plain.replace("{session}", id)).await;
                let unseen = read.err().filter(is_not_found).map(|error| error.to_string());
                if unseen.is_some() == is_seen {
                    wrong.push(format!("{template} {name}: {unseen:?}"));
                }
                if let Some(unseen) = unseen {
                    let none = text_of_none(wire, &plain).await;
                    if unseen.replace(id, NOWHERE) != none {
                        wrong.push(format!("{template} {name}: {unseen}, of no session {none}"));
                    }
                }
            }
        }
        for uri in &self.resources {
            let told = format!("{:?}", read(wire, uri).await);
            let mut unseen = rights.iter().filter(|(name, it)| way.at(name, it).is_empty());
            if let Some((name, _)) = unseen.find(|(name, _)| told.contains(&self.sessions[name])) {
                wrong.push(format!("{uri} tells of {name}: {told}"));
            }
        }
        wrong
    }
}

fn texts(list: &Value, member: &str) -> Vec<String> {
    let text = |it: &Value| it[member].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(text).collect()
}

/// A session that does not exist.
const NOWHERE: &str = "0123456789ab";

async fn read(wire: &mut Wire, uri: &str) -> Answer {
    wire.request("resources/read", json!({"uri": uri})).await
}

fn is_not_found(error: &Value) -> bool {
    error["data"]["error_code"] == "session_not_found"
}

/// What is answered about a session that does not exist.
async fn text_of_none(wire: &mut Wire, template: &str) -> String {
    let none = read(wire, &template.replace("{session}", NOWHERE)).await;
    none.expect_err("there is no such session").to_string()
}

#[tokio::test]
async fn each_tool_and_resource_gives_each_principal_at_each_socket_what_its_roles_say() {
    let house = House::new(TENANTS).await;
    let sessions = sessions_of(&house).await;
    let mut operator = house.enter("operator").await;
    let matrix = Matrix::new(&mut operator, sessions).await;
    let paths = &house.daemon.paths;
    let watching = Way { watches: true, ..Way::default() };
    let mut doors =
        vec![(paths.gateway().to_owned(), Way::default()), (paths.gateway_read_only(), watching)];
    for name in ["desk", "till"] {
        let id = matrix.sessions[name].parse().unwrap();
        let only = Some(name);
        doors.push((paths.session(id), Way { only, ..Way::default() }));
        doors.push((paths.session_read_only(id), Way { only, ..watching }));
    }
    let mut wrong = Vec::new();
    for (who, rights) in &RIGHTS {
        if *who == "operator" {
            let found = matrix.wrong(&mut operator, Way::default(), rights).await;
            wrong.extend(found.into_iter().map(|it| format!("operator.sock: {it}")));
            continue;
        }
        for (door, way) in &doors {
            let mut wire = house.enter_at(door, who).await;
            let found = matrix.wrong(&mut wire, *way, rights).await;
            wrong.extend(found.into_iter().map(|it| format!("{who} at {}: {it}", door.display())));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_token_makes_nobody_an_operator() {
    let house = House::new(TENANTS).await;
    for (who, secret) in &house.secrets {
        let mut wire = Wire::silent(&house.daemon.paths.operator(), Era::Modern).await;
        let id = wire.send("termgate/authenticate", json!({"token": secret})).await;
        let refused = wire.receiver.answer(id).await.unwrap_err();
        assert_eq!(refused["data"]["error_code"], "policy_denied", "{who}");
        wire.receiver.hears_the_end().await;
    }
    house.daemon.stop().await;
}

/// A daemon in a process of its own, so that programs of the test are not inside of its sessions.
struct Apart {
    matrix: Matrix,
    _daemon: Daemon,
    home: Home,
}

impl Apart {
    async fn new() -> Self {
        let home = Home::new();
        let tenants =
            home.configure("calls.others_per_second = 0\n").with_file_name("tenants.toml");
        fs::write(tenants, TENANTS).unwrap();
        for (name, scope) in SCOPES {
            let (scope, file) = (scope.as_str(), home.path(&format!("{name}.token")));
            home.printed(&format!("token new {name} --scope {scope} --out {}", file.display()));
        }
        let daemon = home.serve().await;
        let mut sessions = BTreeMap::new();
        for (who, name, visibility) in SESSIONS {
            let mut wire = match who {
                "self" => Wire::connect(&home.runtime("gateway.sock"), Era::Modern).await,
                token => owner_at(&home, token).await,
            };
            sessions.insert(name, named_session(&mut wire, name, visibility).await);
        }
        let mut operator = Wire::connect(&home.runtime("operator.sock"), Era::Legacy).await;
        let matrix = Matrix::new(&mut operator, sessions).await;
        Self { matrix, _daemon: daemon, home }
    }

    /// Everything that is wrong for a principal behind the bridge that this command starts.
    async fn wrong(&self, command: Command, way: Way<'_>, rights: &Letters) -> Vec<String> {
        let (child, stream) = piped(command);
        let mut bridge = Piped { child, wire: Wire::over(stream, Era::Legacy) };
        bridge.wire.greet().await;
        let wrong = self.matrix.wrong(&mut bridge.wire, way, rights).await;
        bridge.end().await;
        wrong
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_gives_each_principal_what_it_has_without() {
    let apart = Apart::new().await;
    let desk = &apart.matrix.sessions["desk"];
    let ways = [
        (String::new(), Way::default()),
        ("--read-only".to_owned(), Way { watches: true, ..Way::default() }),
        (format!("--session {desk}"), Way { only: Some("desk"), ..Way::default() }),
    ];
    let mut wrong = Vec::new();
    for (who, rights) in RIGHTS.iter().filter(|(who, _)| *who != "operator") {
        let token = match *who {
            "self" => String::new(),
            name => format!("--token-file {}", apart.home.path(&format!("{name}.token")).display()),
        };
        for (words, way) in &ways {
            let line = format!("mcp --no-spawn {words} {token}");
            let is_shown = rights.iter().any(|(name, it)| !way.at(name, it).is_empty());
            if way.only.is_some() && !is_shown {
                let (code, _, told) = apart.home.outcome(&line);
                assert!(code == 3 && told.contains("session_not_found"), "{who}: {told}");
                continue;
            }
            let bridge = apart.home.termgate(&line);
            let found = apart.wrong(bridge, *way, rights).await;
            wrong.extend(found.into_iter().map(|it| format!("{who} {words}: {it}")));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

/// Connects to a socket of the daemon from inside of a session, whose program passes on what both ends say.
const RELAY: &str = "
import socket, sys, threading
ends = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for end, path in zip(ends, sys.argv[1:]):
    end.connect(path)
def pass_on(source, to):
    while said := source.recv(65536):
        to.sendall(said)
    to.shutdown(socket.SHUT_WR)
threading.Thread(target=pass_on, args=ends, daemon=True).start()
pass_on(*reversed(ends))
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_inside_of_a_session_sees_and_does_nothing_at_any_socket() {
    let apart = Apart::new().await;
    let own = &apart.matrix.sessions["own"];
    let mut outside = Wire::connect(&apart.home.runtime("gateway.sock"), Era::Modern).await;
    let (script, meeting) = (apart.home.path("relay.py"), apart.home.path("meeting"));
    fs::write(&script, RELAY).unwrap();
    let listener = UnixListener::bind(&meeting).unwrap();
    let mut from_inside = async |socket: &str| {
        let (script, meeting) = (script.display(), meeting.display());
        let door = apart.home.runtime(socket);
        outside.start(&format!("exec python3 {script} {meeting} {}", door.display())).await;
        let (stream, _) = soon("a program inside to connect", listener.accept()).await.unwrap();
        Wire::over(stream, Era::Legacy)
    };
    let inside = Way { inside: true, ..Way::default() };
    let watching = Way { watches: true, ..inside };
    let only = Some("own");
    let mut wrong = Vec::new();
    for (socket, way) in [
        ("gateway.sock".to_owned(), inside),
        ("gateway.ro.sock".to_owned(), watching),
        (format!("s/{own}.sock"), Way { only, ..inside }),
        (format!("s/{own}.ro.sock"), Way { only, ..watching }),
    ] {
        let mut wire = from_inside(&socket).await;
        wire.greet().await;
        let found = apart.matrix.wrong(&mut wire, way, &RIGHTS[0].1).await;
        wrong.extend(found.into_iter().map(|it| format!("{socket}: {it}")));
    }
    assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    let mut operator = from_inside("operator.sock").await;
    assert_eq!(operator.receiver.rest().await, [Value::Null; 0]);
}

#[tokio::test]
async fn the_lease_of_somebody_else_is_not_ones_own_and_that_of_a_hidden_session_is_not_known() {
    let house = House::new(TENANTS).await;
    let sessions = sessions_of(&house).await;
    let (mut ci, mut clerk) = (house.enter("ci").await, house.enter("clerk").await);
    let seen = ci.acquire(&sessions["desk"]).await["lease_id"].clone();
    let hidden = clerk.acquire(&sessions["till"]).await["lease_id"].clone();
    let mut lead = house.enter("lead").await;
    for (lease_id, code) in [(&seen, "lease_held"), (&hidden, "lease_superseded")] {
        for tool in ["renew_lease", "release_lease"] {
            let told = lead.error_code(tool, json!({"lease_id": lease_id})).await;
            assert_eq!(told, code, "{tool}");
        }
        let write = json!({"session": sessions["desk"], "text": "x", "lease_id": lease_id});
        assert_eq!(lead.error_code("send_text", write).await, code);
    }
    house.daemon.stop().await;
}
