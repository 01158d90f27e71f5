//! `record export`: what it writes, what it says of it, and what it refuses.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::commands::blocking::until;
use crate::commands::run::text;
use crate::harness::home::Home;

/// A recording that was made elsewhere: a word each second, the last one in Chinese.
fn recording(home: &Home) -> PathBuf {
    let file = home.path("made.cast");
    let lines = [
        r#"{"version": 2, "width": 20, "height": 3}"#,
        r#"[0.0, "o", "\u001b[?25lone"]"#,
        r#"[1.0, "o", "\r\ntwo"]"#,
        r#"[60.0, "o", "\r\n\u6f22"]"#,
    ];
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    file
}

fn export(home: &Home, words: &str) -> Output {
    home.run(&format!("record export {} {words}", recording(home).display()))
}

#[test]
fn a_gif_is_written_once_and_what_its_font_lacks_is_told() {
    let home = Home::new();
    let image = home.path("made.gif");
    let words = format!("--gif {}", image.display());
    let output = export(&home, &words);
    assert_eq!(text(&output.stdout), format!("wrote {}\n", image.display()), "{output:?}");
    let told = text(&output.stderr);
    assert_eq!(told, "the font lacks 1 character, shown as boxes: 漢\n");
    let bytes = fs::read(&image).unwrap();
    assert!(bytes.starts_with(b"GIF89a"));
    let side = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    assert_eq!((side(6), side(8)), (20 * 10 + 20, 3 * 20 + 20));
    let again = export(&home, &words);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(text(&again.stderr).contains("made.gif exists already; name another"), "{again:?}");
    for words in ["--gif /nowhere/x.gif", "--svg -o /nowhere/x.svg"] {
        let nowhere = export(&home, words);
        assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
        assert!(text(&nowhere.stderr).contains("a directory that does not exist"), "{nowhere:?}");
    }
    assert_eq!(fs::read(&image).unwrap(), bytes);
    let other = home.path("other.gif");
    let facts = export(&home, &format!("--json --idle-limit 2s --gif {}", other.display()));
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    // One second, a pause that is cut to two, and three at the end.
    let expected = json!({
        "format": "gif", "path": other, "pictures": 3, "length_ms": 6_000,
        "missing_characters": 1,
    });
    assert_eq!(facts["data"], expected);
}

#[test]
fn an_svg_moves_unless_one_picture_is_asked_for() {
    let home = Home::new();
    let printed = |words: &str| {
        let output = export(&home, words);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout).to_owned()
    };
    let moving = printed("--svg");
    assert!(moving.contains("@keyframes") && moving.contains(">one<") && moving.contains(">漢<"));
    let part = printed("--svg --to 30s");
    assert!(part.contains(">two<") && !part.contains(">漢<"), "{part}");
    let still = printed("--svg --at 500ms");
    assert!(!still.contains("@keyframes") && still.contains(">one<") && !still.contains(">two<"));
    assert!(printed("--svg --at end").contains(">漢<"));
    assert_eq!(printed("--at 2s"), "one\ntwo\n");
    assert_eq!(printed(""), "one\ntwo\n漢\n");
}

#[test]
fn times_that_make_no_picture_are_refused() {
    let home = Home::new();
    for (words, told) in [
        ("--from 2s", "--svg"),
        ("--speed 2", "--svg"),
        ("--svg --at 1s --to 2s", "--at"),
        ("--svg --at later", "`end`"),
        ("--svg --from 2s --to 1s", "--from: it is after --to"),
        ("--svg --from 2m", "--from: the recording ends at 1m0s"),
        ("--svg --txt", "--txt"),
    ] {
        let output = export(&home, words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{words}: {output:?}");
    }
}

#[test]
fn a_recording_that_does_not_exist_is_not_found_and_the_hint_says_how_to_have_one() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.run("new --name work -- cat");
    for (command, why, hint) in [
        ("replay work", "session `work` has no recording", "`termgate record start work`"),
        ("record export ./none.cast", "./none.cast: ", "`termgate record ls`"),
    ] {
        let output = home.run(command);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let told = text(&output.stderr);
        assert!(told.contains(why) && told.contains(hint), "{told}");
    }
}

#[test]
fn who_has_a_new_session_recorded_is_told_where() {
    let home = Home::new();
    let _daemon = home.daemon();
    let created = home.run("new --name work --record -- echo first");
    let (_, path) = text(&created.stderr).trim_end().split_once("recording to ").unwrap();
    until("all to be recorded", || fs::read_to_string(path).unwrap().contains(r#""x", "0""#));
    assert_eq!(home.printed(&format!("record export {path}")), "first\n");
    assert!(home.printed("record ls work").contains(path));
}
