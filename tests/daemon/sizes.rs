//! How long answers are: whatever a program writes, they stay small, and say what they leave out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::shells::Shell;
use crate::harness::waiting::soon;

/// How many bytes a result has at most, for programs and models together.
const RESULT_BYTES_MAX: usize = 30_000;

/// What needs an escape in JSON, and what is wide or takes more bytes than columns.
const AWKWARD: &str = r#""\"\\"漢字"é̂́"\u{7f}"\""#;

/// A command that prints 2,000 lines of it.
const PRINTING: &str = "yes \"$(cat line)\" | head -n 2000";

/// Calls a tool that must succeed, and gives back its result once it was found to be small enough.
async fn small(shell: &mut Shell, tool: &str, mut arguments: Value) -> Value {
    arguments["session"] = json!(shell.session);
    let result = shell.client.call(tool, arguments.clone()).await;
    let bytes = result.to_string().len();
    assert!(bytes <= RESULT_BYTES_MAX, "{tool} {arguments}: {bytes} bytes");
    structured(&result)
}

/// A shell with a file `line` in its directory, whose name is long and has quotes.
async fn in_a_deep_directory(daemon: &TestDaemon) -> Shell {
    let mut shell = Shell::start(daemon, "bash").await;
    let deep = daemon.file("home").join(vec!["a\"deep\"directory"; 60].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("line"), format!("{AWKWARD}{AWKWARD}\n")).unwrap();
    shell.must(&format!("cd '{}'", deep.display()), 0, "").await;
    shell
}

/// Runs so many commands of 1 KB, most of it quotes.
async fn run_long_ones(shell: &mut Shell, count: usize) {
    for _ in 0..count {
        shell.must(&format!("true '{}'", "\"\\".repeat(500)), 0, "").await;
    }
}

/// How many lines of the output an answer shows, besides the one that stands for the others.
fn shown(told: &Value) -> u64 {
    let lines = told["output"].as_str().unwrap().lines();
    lines.filter(|line| !line.starts_with("[… ")).count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_printed_is_told_as_far_as_there_is_room_and_the_rest_is_counted() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    let command = json!({"command": PRINTING, "max_lines": 2_000});
    let ran = small(&mut shell, "run", command).await;
    let id = ran["command_id"].clone();
    let mut all = vec![ran];
    for ends in [json!({}), json!({"head": 2_000}), json!({"tail": 2_000})] {
        let mut one = ends;
        one["id"] = id.clone();
        all.push(small(&mut shell, "read_commands", one).await);
    }
    for told in all {
        let left_out = told["lines_left_out"].as_u64().unwrap();
        assert_eq!(told["lines_total"], 2_000, "{told}");
        assert_eq!(shown(&told) + left_out, 2_000, "{told}");
        assert!(shown(&told) > 40, "{}: room is made use of", shown(&told));
        assert!(told["rest"].as_str().unwrap().ends_with(&format!("/command/{id}/output")));
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_long_commands_in_a_deep_directory_are_listed_in_one_answer() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 20).await;
    let list = small(&mut shell, "read_commands", json!({})).await;
    let commands = list["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 20);
    for command in commands {
        assert_eq!(command["cut"], true, "{command}");
        assert!(command["command"].as_str().unwrap().ends_with('…'), "{command}");
        assert!(command["cwd"].as_str().unwrap().ends_with('…'), "{command}");
    }
    let last = commands[19]["command_id"].clone();
    let one = small(&mut shell, "read_commands", json!({"id": last})).await;
    let one = &one["commands"][0];
    assert_eq!(one["cut"], Value::Null, "{one}");
    assert!(one["command"].as_str().unwrap().len() > 1_000, "{one}");
    assert!(one["cwd"].as_str().unwrap().ends_with("directory"), "{one}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_commands_are_found_by_going_on_before_the_oldest_one_told() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 59).await;
    let mut found = BTreeSet::new();
    let mut page = json!({"limit": 100});
    loop {
        let list = small(&mut shell, "read_commands", page.clone()).await;
        let commands = list["commands"].as_array().unwrap();
        let ids = commands.iter().map(|command| command["command_id"].as_u64().unwrap());
        let told = ids.clone().count();
        assert!(told > 0, "{list}");
        let before = found.len();
        found.extend(ids);
        assert_eq!(found.len(), before + told, "none is told twice");
        let left = list["older"].as_u64().unwrap_or_default();
        assert_eq!(left, 60 - found.len() as u64, "{list}");
        if left == 0 {
            break;
        }
        page["before"] = commands[0]["command_id"].clone();
    }
    assert_eq!(found, (1..=60).collect());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_as_a_resource_is_bounded_and_says_how_many_it_leaves_out() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 39).await;
    let uri = format!("termgate://session/{}/commands", shell.session);
    let read = shell.client.request("resources/read", json!({"uri": uri})).await.unwrap();
    assert!(read.to_string().len() <= RESULT_BYTES_MAX, "{}", read.to_string().len());
    let list: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let commands = list["commands"].as_array().unwrap();
    assert!(commands.len() >= 10, "{}", commands.len());
    assert_eq!(commands.last().unwrap()["command_id"], 40);
    assert_eq!(list["older"], 40 - commands.len());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_bounded_and_says_where_the_older_commands_are() {
    let daemon = TestDaemon::writable().await;
    let mut shell = in_a_deep_directory(&daemon).await;
    run_long_ones(&mut shell, 20).await;
    for _ in 0..19 {
        shell.run_with(PRINTING, json!({"max_lines": 1})).await;
    }
    let log = format!("termgate://session/{}/log", shell.session);
    let (mut uri, mut told, mut pages) = (Some(log.clone()), BTreeSet::new(), 0);
    while let Some(page) = uri.take() {
        let read = shell.client.request("resources/read", json!({"uri": page})).await.unwrap();
        assert!(read.to_string().len() <= RESULT_BYTES_MAX, "{}", read.to_string().len());
        let text = read["contents"][0]["text"].as_str().unwrap();
        let entries = text.split("\n## Command ").skip(1);
        let numbers = entries.map(|entry| entry.lines().next().unwrap().parse().unwrap());
        let numbers: Vec<u64> = numbers.collect();
        assert!(told.is_disjoint(&numbers.iter().copied().collect()), "{numbers:?}");
        let oldest = numbers[0];
        told.extend(numbers);
        if oldest > 1 {
            let next = format!("{log}?before={oldest}");
            let said = format!("\n{} older commands: <{next}>\n", oldest - 1);
            assert!(text.contains(&said), "{said}: {}", &text[..200]);
            uri = Some(next);
        }
        pages += 1;
    }
    assert_eq!(told, (1..=40).collect());
    assert!((3..30).contains(&pages), "{pages} pages");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_tells_no_more_of_wide_rows_than_there_is_room_for() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let line = format!(
        "for i in $(seq 30); do printf '%s\\n' '{}END'; done; printf '\\033]2;all\\007'; sleep 300",
        "\"\\".repeat(480)
    );
    let arguments = json!({"command": "sh", "args": ["-c", line], "cols": 1_000});
    let created = client.structured("create_session", arguments).await;
    let session = created["session"]["id"].clone();
    soon("all rows to be shown", async {
        let listed = json!({"session": session});
        while client.structured("list_sessions", listed.clone()).await["sessions"][0]["title"]
            != "all"
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for wanted in [json!({"text": "END"}), json!({"idle_ms": 50})] {
        let mut arguments = wanted;
        arguments["session"] = session.clone();
        arguments["since"] = json!(0);
        let result = client.call("wait_for", arguments).await;
        let bytes = result.to_string().len();
        assert!(bytes <= RESULT_BYTES_MAX, "{bytes}");
        let waited = structured(&result);
        let last = waited["last_rows"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(last.ends_with("[… 463 more bytes of this line]"), "{last}");
        if waited["outcome"] == "matched" {
            let others = waited["more_matches"].as_array().unwrap().len();
            assert_eq!(
                others as u64 + waited["matches_left_out"].as_u64().unwrap(),
                29,
                "{waited}"
            );
        }
    }
    daemon.stop().await;
}

/// Prints rows that are as wide as the screen: so many of which each column has a colour of its
/// own, then others of what needs an escape in JSON.
const FILLING: &str = r#"awk -v cols=$COLS -v all=$ROWS -v coloured=$COLOURED 'BEGIN {
    for (row = 0; row < all; row++) {
        for (col = 0; col < cols; col++) {
            if (row < coloured) printf "\033[1;38;2;255;200;%dm", 100 + col % 100
            printf "%s", col % 2 ? "\"" : "\\"
        }
        printf "\033[0m\r\n"
    }
}'; printf END; exec cat"#;

/// A session of this size whose program has printed so many rows, some of them coloured.
async fn filled(
    client: &mut Wire,
    (rows, cols): (u64, u64),
    (printed, coloured): (u64, u64),
) -> String {
    let create = json!({
        "command": "sh", "args": ["-c", FILLING], "rows": rows, "cols": cols,
        "env": {
            "COLS": cols.to_string(), "ROWS": printed.to_string(), "COLOURED": coloured.to_string(),
        },
    });
    let created = client.structured("create_session", create).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    client.wait_for(json!({"session": session, "text": "END", "since": 0})).await;
    session
}

/// Calls a tool whose result is small, and gives back what programs and what models read of it.
async fn bounded(client: &mut Wire, tool: &str, arguments: &Value) -> (Value, String) {
    let result = client.call(tool, arguments.clone()).await;
    let bytes = result.to_string().len();
    assert!(bytes <= RESULT_BYTES_MAX, "{tool} {arguments}: {bytes} bytes");
    (structured(&result), result["content"][0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_a_large_screen_is_read_in_small_answers() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = filled(&mut client, (400, 500), (399, 20)).await;
    for format in ["plain", "styled", "ansi", "cells"] {
        for since in [Value::Null, json!(1)] {
            let (mut top, mut pages) = (Some(0), 0);
            while let Some(from) = top {
                let asked =
                    json!({"session": session, "format": format, "since": since, "top": from});
                let (screen, text) = bounded(&mut client, "read_screen", &asked).await;
                top = screen["next_top"].as_u64();
                let next = top.unwrap_or(400);
                assert!(next > from, "{format} since {since} from {from}: {next}");
                let left = top.map(|top| 400 - top);
                assert_eq!(screen["rows_left_out"].as_u64(), left, "{format} since {since}");
                if let (Some(left), Some(next)) = (left, top) {
                    let rows = if since.is_null() { "rows" } else { "changed rows" };
                    let said = format!("[{left} {rows} are left out; continue with top={next}");
                    assert!(text.contains(&said), "{text}");
                }
                if let Some(lines) = screen["lines"].as_array() {
                    let rows: Vec<u64> =
                        lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
                    assert_eq!(rows, (from..next).collect::<Vec<_>>(), "{format} since {since}");
                }
                pages += 1;
            }
            assert!(pages > 20, "{format} since {since}: {pages} pages");
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_history_is_read_in_small_answers() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let session = filled(&mut client, (40, 250), (600, 60)).await;
    for format in ["plain", "ansi", "cells"] {
        let (mut next, mut pages) = (0, 0);
        while next < 601 {
            let asked =
                json!({"session": session, "start_row": next, "count": 500, "format": format});
            let (rows, text) = bounded(&mut client, "read_history", &asked).await;
            assert_eq!((&rows["first_row"], &rows["end_row"]), (&json!(next), &json!(601)));
            let after = rows["next_row"].as_u64().unwrap();
            assert!(after > next, "{format}: {after}");
            let told = match rows["lines"].as_array() {
                Some(lines) => lines.len(),
                None => rows["text"].as_str().unwrap().split('\n').count(),
            };
            assert_eq!(told as u64, after - next, "{format}");
            if after < 601 {
                let said = format!("[{} rows left; continue with start_row={after}]", 601 - after);
                assert!(text.ends_with(&said), "{text}");
            }
            (next, pages) = (after, pages + 1);
        }
        assert!(pages > 10, "{format}: {pages} pages");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_history_is_read_in_small_resources() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let session = filled(&mut client, (40, 250), (600, 60)).await;
    for mode in ["plain", "ansi", "cells"] {
        let (mut next, mut pages) = (0, 0);
        while next < 601 {
            let query = format!("start_row={next}&count=500&mode={mode}");
            let uri = format!("termgate://session/{session}/history?{query}");
            let read = client.request("resources/read", json!({"uri": uri})).await.unwrap();
            assert!(read.to_string().len() <= RESULT_BYTES_MAX, "{}", read.to_string().len());
            let text = read["contents"][0]["text"].as_str().unwrap();
            let rows: Value = serde_json::from_str(text).unwrap();
            assert_eq!((&rows["first_row"], &rows["end_row"]), (&json!(next), &json!(601)));
            let after = rows["next_row"].as_u64().unwrap();
            assert!(after > next, "{mode}: {after}");
            let told = match rows["lines"].as_array() {
                Some(lines) => lines.len(),
                None => rows["text"].as_str().unwrap().split('\n').count(),
            };
            assert_eq!(told as u64, after - next, "{mode}");
            (next, pages) = (after, pages + 1);
        }
        assert!((5..300).contains(&pages), "{mode}: {pages} pages");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_row_that_is_larger_than_an_answer_the_beginning_is_told_and_alone_it_is_whole() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let session = filled(&mut client, (60, 1_000), (100, 100)).await;
    // The last line of the program makes 101 rows, of which 41 have scrolled off.
    for (tool, whole, row) in
        [("read_screen", "top=0 count=1", 41), ("read_history", "start_row=3 count=1", 3)]
    {
        for format in ["ansi", "cells"] {
            let mut asked = json!({"session": session, "format": format});
            let start = if tool == "read_screen" { ("top", 0) } else { ("start_row", 3) };
            asked[start.0] = json!(start.1);
            let (told, text) = bounded(&mut client, tool, &asked).await;
            assert!(text.contains("more columns of this row]"), "{text}");
            assert!(text.contains(&format!("[row {row} is complete with {whole}]")), "{text}");
            asked["count"] = json!(1);
            let alone = client.structured(tool, asked).await;
            if format == "ansi" {
                let (part, all) = (told["text"].as_str().unwrap(), alone["text"].as_str().unwrap());
                let (part, left) = part.split_once("[… ").unwrap();
                // Behind it the style is plain again.
                let part = part.strip_suffix("\u{1b}[0m").unwrap();
                assert!(all.starts_with(part) && all.len() > part.len());
                let columns = part.matches('m').count();
                assert_eq!(left, format!("{} more columns of this row]", 1_000 - columns));
            } else {
                let (part, all) = (&told["lines"][0], &alone["lines"][0]);
                let (part_cells, all_cells) =
                    (part["cells"].as_array().unwrap(), all["cells"].as_array().unwrap());
                assert_eq!(all_cells.len(), 1_000);
                assert_eq!(part_cells[..], all_cells[..part_cells.len()]);
                assert_eq!(part["columns_left_out"], 1_000 - part_cells.len());
                assert!(part_cells.len() > 100 && all.get("columns_left_out").is_none());
                assert_eq!(told["lines"].as_array().unwrap().len(), 1);
            }
        }
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_tells_the_changed_rows_that_fit_and_where_the_others_are() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let program = format!("stty -echo; echo ready; read line; {FILLING}");
    let create = json!({
        "command": "sh", "args": ["-c", program], "rows": 200, "cols": 500,
        "env": {"COLS": "500", "ROWS": "150", "COLOURED": "0"},
    });
    let created = client.structured("create_session", create).await;
    let session = created["session"]["id"].clone();
    client.wait_for(json!({"session": session, "text": "ready", "since": 0})).await;
    let send = json!({
        "session": session, "text": "go", "enter": true, "until": {"text": "END"},
        "wait_ms": 60_000,
    });
    let (written, text) = bounded(&mut client, "send_text", &send).await;
    assert_eq!(written["wait"]["outcome"], "matched");
    let changed = &written["changed"];
    let rows_of = |updates: &Value| -> Vec<u64> {
        let rows = updates.as_array().unwrap().iter().filter(|update| update.get("text").is_some());
        rows.map(|update| update["row"].as_u64().unwrap()).collect()
    };
    let mut rows = rows_of(&changed["updates"]);
    let (mut left, mut top) = (changed["rows_left_out"].clone(), changed["next_top"].as_u64());
    assert!(rows.len() > 2 && left.as_u64().is_some_and(|left| left > 50), "{changed}");
    let (from, next) = (&changed["from"], top.unwrap());
    let said = format!(
        "[{left} changed rows are left out; continue with read_screen since={from} top={next}]"
    );
    assert!(text.ends_with(&said), "{text}");
    while let Some(next) = top {
        let asked = json!({"session": session, "since": from, "top": next});
        let (screen, _) = bounded(&mut client, "read_screen", &asked).await;
        let more = rows_of(&screen["lines"]);
        assert_eq!(more.len() as u64 + screen["rows_left_out"].as_u64().unwrap_or(0), left);
        rows.extend(more);
        (left, top) = (screen["rows_left_out"].clone(), screen["next_top"].as_u64());
    }
    // Row 0 says `ready`, the last one `END`.
    assert_eq!(rows, (1..=151).collect::<Vec<_>>());
    daemon.stop().await;
}

/// Creates sessions of which everything that is told is long and awkward.
async fn with_long_sessions(daemon: &TestDaemon, client: &mut Wire, count: usize) {
    let deep = daemon.file("home").join(vec!["a\"deep\"directory"; 60].join("/"));
    std::fs::create_dir_all(&deep).unwrap();
    let tags = vec!["\"".repeat(64); 16];
    let line = "printf '\\033]2;%s\\007%s' \"$LONG\" \"$LONG\"; printf END; exec cat";
    for number in 0..count {
        let create = json!({
            "name": format!("long{number:02}"), "command": "sh",
            "args": ["-c", line, "\"\\".repeat(1_500)], "cwd": deep, "tags": tags,
            "env": {"LONG": "\"\\".repeat(100)},
        });
        let created = client.structured("create_session", create).await;
        let session = &created["session"]["id"];
        client.wait_for(json!({"session": session, "text": "END", "since": 0})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lists_of_resources_are_bounded_and_say_where_the_others_are() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    with_long_sessions(&daemon, &mut client, 15).await;
    let names: Vec<String> = (0..15).map(|number| format!("long{number:02}")).collect();
    let (mut found, mut uri, mut pages) = (Vec::new(), json!("termgate://sessions"), 0);
    while let Some(page) = uri.as_str() {
        let read = client.request("resources/read", json!({"uri": page})).await.unwrap();
        assert!(read.to_string().len() <= RESULT_BYTES_MAX, "{page}: {}", read.to_string().len());
        let list = client.facts(page).await;
        let told = list["sessions"].as_array().unwrap();
        found.extend(told.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        let left = list["left_out"].as_u64().unwrap_or(0) as usize;
        assert_eq!(left, 15 - found.len(), "{list}");
        (uri, pages) = (list["next"].clone(), pages + 1);
    }
    assert!(pages > 1);
    assert_eq!(found, names);
    let all = daemon.operator().await.facts("termgate://sessions").await;
    assert_eq!((all["sessions"].as_array().unwrap().len(), all.get("left_out")), (15, None));
    for number in 0..15 {
        let name = format!("more{number:02}-{}", "x".repeat(40));
        client.structured("create_session", json!({"name": name, "command": "cat"})).await;
    }
    let (mut uris, mut asked, mut pages) = (BTreeSet::new(), json!({}), 0);
    loop {
        let page = client.request("resources/list", asked).await.unwrap();
        assert!(page.to_string().len() <= RESULT_BYTES_MAX, "{}", page.to_string().len());
        for resource in page["resources"].as_array().unwrap() {
            assert!(uris.insert(resource["uri"].to_string()), "{resource}");
        }
        pages += 1;
        let Some(cursor) = page.get("nextCursor") else { break };
        asked = json!({"cursor": cursor});
    }
    assert!(pages > 1);
    assert_eq!(uris.iter().filter(|uri| uri.contains("/session/")).count(), 30 * 9);
    assert!(uris.contains("\"termgate://leases\""));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_sessions_are_found_by_going_on_after_the_last_one_told() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    with_long_sessions(&daemon, &mut client, 15).await;
    let (mut found, mut page, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let (list, text) = bounded(&mut client, "list_sessions", &page).await;
        let sessions = list["sessions"].as_array().unwrap();
        for session in sessions {
            assert_eq!(session["cut"], true, "{session}");
            for cut in ["title", "command", "cwd"] {
                assert!(session[cut].as_str().unwrap().ends_with('…'), "{cut}: {session}");
            }
            found.push(session["name"].as_str().unwrap().to_owned());
        }
        pages += 1;
        let Some(left) = list["left_out"].as_u64() else { break };
        assert_eq!(left as usize, 15 - found.len(), "{list}");
        let last = found.last().unwrap();
        let plural = if left == 1 { "" } else { "s" };
        let said = format!("{left} more session{plural} left out; continue with after={last}");
        assert!(text.ends_with(&said), "{text}");
        page["after"] = json!(last);
    }
    assert!((2..=5).contains(&pages), "{pages} pages");
    assert_eq!(found, (0..15).map(|number| format!("long{number:02}")).collect::<Vec<_>>());
    let alone = json!({"session": "long07"});
    let (alone, _) = bounded(&mut client, "list_sessions", &alone).await;
    let alone = &alone["sessions"][0];
    assert!(alone["cwd"].as_str().unwrap().ends_with("directory"), "{alone}");
    assert!(alone["title"].as_str().unwrap().ends_with('\\'), "{alone}");
    let all = daemon.operator().await.structured("list_sessions", json!({})).await;
    assert_eq!((all["sessions"].as_array().unwrap().len(), all.get("left_out")), (15, None));
    assert_eq!(all["sessions"][0].get("cut"), None, "operators are told all");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_sessions_each_is_told_once_in_the_order_of_their_names() {
    const COUNT: usize = 120;
    let daemon = TestDaemon::configured(|config| {
        config.allow_write = true;
        config.sessions.own = COUNT + 1;
    })
    .await;
    let mut client = daemon.client(Era::Legacy).await;
    for number in 0..COUNT {
        // In no order.
        let name = format!("s{:03}", number * 37 % COUNT);
        client.structured("create_session", json!({"name": name, "command": "cat"})).await;
    }
    let (mut found, mut page) = (Vec::new(), json!({}));
    loop {
        let (list, _) = bounded(&mut client, "list_sessions", &page).await;
        let sessions = list["sessions"].as_array().unwrap();
        found.extend(sessions.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        assert_eq!(list["left_out"].as_u64().unwrap_or(0) as usize, COUNT - found.len());
        if list.get("left_out").is_none() {
            break;
        }
        page["after"] = json!(found.last());
    }
    assert_eq!(found, (0..COUNT).map(|number| format!("s{number:03}")).collect::<Vec<_>>());
    // A list that was sorted before knows of what comes, goes and is renamed.
    client.structured("create_session", json!({"command": "true", "args": [], "name": "z"})).await;
    client.wait_for_exit("z").await;
    let listed = client.structured("list_sessions", json!({"session": "s117"})).await;
    let rename = json!({"session": "s000", "action": "rename", "new_name": "s118a"});
    client.structured("manage_session", rename).await;
    let id = listed["sessions"][0]["id"].clone();
    for after in [json!("s117"), id] {
        let rest = client.structured("list_sessions", json!({"after": after})).await;
        let names = rest["sessions"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["s118", "s118a", "s119", "z"], "after {after}");
    }
    client.structured("manage_session", json!({"session": "z", "action": "kill"})).await;
    let rest = client.structured("list_sessions", json!({"after": "s119"})).await;
    assert_eq!(rest["sessions"], json!([]));
    let unknown = client.error_code("list_sessions", json!({"after": "0123456789ab"})).await;
    assert_eq!(unknown, "session_not_found");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_command_line_that_is_very_long_the_beginning_is_told_to_who_created_the_session() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Modern).await;
    let line = format!(": {}; exec cat", "\"\"".repeat(20_000));
    let create = json!({"command": "sh", "args": ["-c", line], "name": "long"});
    let (created, text) = bounded(&mut client, "create_session", &create).await;
    let command = created["session"]["command"].as_str().unwrap();
    assert!(command.starts_with("sh -c") && command.ends_with('…'), "{command}");
    assert_eq!(created["session"]["cut"], true);
    assert!(text.len() < 1_000, "{text}");
    for asked in [json!({}), json!({"session": "long"})] {
        let (listed, _) = bounded(&mut client, "list_sessions", &asked).await;
        assert_eq!(listed["sessions"][0]["cut"], true, "{listed}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_repeats_no_more_of_what_it_was_asked_than_there_is_room_for() {
    let daemon = TestDaemon::writable().await;
    let mut client = daemon.client(Era::Legacy).await;
    let created = client.structured("create_session", json!({"command": "exec cat"})).await;
    let session = &created["session"]["id"];
    let long = format!("{}END", "\"".repeat(50_000));
    for (tool, arguments, code) in [
        ("read_screen", json!({"session": long}), "session_not_found"),
        ("read_screen", json!({"session": session, &*long: 1}), "invalid_argument"),
        ("create_session", json!({"command": long, "args": []}), "invalid_argument"),
        ("create_session", json!({"cwd": format!("/{long}")}), "invalid_argument"),
        ("create_session", json!({"name": long}), "invalid_argument"),
        ("wait_for", json!({"session": session, "pattern": "(".repeat(4_000)}), "invalid_argument"),
        ("send_keys", json!({"session": session, "keys": long}), "invalid_argument"),
        ("release_lease", json!({"lease_id": long}), "invalid_argument"),
        ("why", json!({"code": long}), "invalid_argument"),
    ] {
        let result = client.call(tool, arguments).await;
        let bytes = result.to_string().len();
        assert!(bytes <= 10_000, "{tool}, {code}: {bytes} bytes");
        assert_eq!(result["structuredContent"]["error_code"], code, "{tool}");
    }
    let unknown = client.call("read_screen", json!({"session": long})).await;
    let said = unknown["structuredContent"]["message"].as_str().unwrap();
    assert!(said.starts_with("no session `\"") && said.ends_with("END`"), "{said}");
    assert!(said.contains("more bytes …]"), "{said}");
    for (method, params) in [
        ("tools/call", json!({"name": long, "arguments": {}})),
        ("resources/read", json!({"uri": format!("termgate://{long}")})),
        ("resources/read", json!({"uri": format!("termgate://session/{long}/grid")})),
    ] {
        let error = client.request(method, params).await.unwrap_err();
        let bytes = error.to_string().len();
        assert!(bytes <= 10_000, "{method}: {bytes} bytes");
    }
    daemon.stop().await;
}
