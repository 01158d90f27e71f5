//! The emulator's own reference recordings, replayed through our screen.
//!
//! The crate ships each as recorded bytes with the grid they must end in, so nothing expected here
//! was made by the code under test. However a recording is cut, the frame must be the same.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use termgate::core::frame::history::HistoryLimits;
use termgate::core::frame::line::Line;
use termgate::core::frame::{Frame, Size};
use termgate::core::moment::Moment;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};

/// Every recording that the crate ships.
const NAMES: [&str; 45] = [
    "alt_reset",
    "clear_underline",
    "colored_reset",
    "colored_underline",
    "csi_rep",
    "decaln_reset",
    "deccolm_reset",
    "delete_chars_reset",
    "delete_lines",
    "erase_chars_reset",
    "erase_in_line",
    "fish_cc",
    "grid_reset",
    "history",
    "hyperlinks",
    "indexed_256_colors",
    "insert_blank_reset",
    "issue_855",
    "ll",
    "newline_with_cursor_beyond_scroll_region",
    "origin_goto",
    "region_scroll_down",
    "row_reset",
    "saved_cursor",
    "saved_cursor_alt",
    "scroll_in_region_up_preserves_history",
    "scroll_up_reset",
    "selective_erasure",
    "sgr",
    "tab_rendering",
    "tmux_git_log",
    "tmux_htop",
    "underline",
    "vim_24bitcolors_bce",
    "vim_large_window_scroll",
    "vim_simple_edit",
    "vttest_cursor_movement_1",
    "vttest_insert",
    "vttest_origin_mode_1",
    "vttest_origin_mode_2",
    "vttest_scroll",
    "vttest_tab_clear_set",
    "wrapline_alt_toggle",
    "zerowidth",
    "zsh_tab_completion",
];

#[test]
fn every_recording_of_the_crate_is_named_here() {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut shipped: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    shipped.sort();
    assert_eq!(shipped, NAMES);
}

#[test]
fn every_recording_ends_in_its_grid() {
    for name in NAMES {
        let recording = Recording::load(name);
        let expected = Expected::load(name, recording.size);
        let frame = recording.replay(recording.bytes.len());
        assert_eq!(screen_texts(&frame), expected.screen(), "{name}");
        let (history, above) = (history_texts(&frame), expected.history());
        assert!(history.ends_with(&above), "{name}: {history:#?} does not end in {above:#?}");
    }
}

#[test]
fn every_recording_gives_the_same_frame_byte_by_byte() {
    check_pieces_of(1);
}

#[test]
fn every_recording_gives_the_same_frame_in_odd_pieces() {
    check_pieces_of(7);
}

#[test]
fn every_recording_gives_the_same_frame_in_large_pieces() {
    check_pieces_of(4096);
}

#[test]
fn every_recording_gives_the_same_frame_when_the_screen_is_made_anew_along_the_way() {
    for name in NAMES {
        let recording = Recording::load(name);
        let whole = recording.replay(recording.bytes.len());
        for breaks in [1, 7] {
            let piece = recording.bytes.len() / (breaks + 1) + 1;
            assert_same(&recording.replay_broken(piece), &whole, name);
        }
    }
}

#[track_caller]
fn check_pieces_of(length: usize) {
    for name in NAMES {
        let recording = Recording::load(name);
        let whole = recording.replay(recording.bytes.len());
        assert_same(&recording.replay(length), &whole, name);
    }
}

#[track_caller]
fn assert_same(cut: &Frame, whole: &Frame, name: &str) {
    assert_eq!(lines(cut), lines(whole), "{name}");
    assert_eq!(cut.base_row, whole.base_row, "{name}");
    assert_eq!(cut.cursor.value, whole.cursor.value, "{name}");
    assert_eq!(cut.mode.value, whole.mode.value, "{name}");
    assert_eq!(cut.title.value, whole.title.value, "{name}");
    assert_eq!(cut.input_modes.value, whole.input_modes.value, "{name}");
    assert_eq!(cut.bell.value, whole.bell.value, "{name}");
    assert_eq!(history_texts(cut), history_texts(whole), "{name}");
}

fn lines(frame: &Frame) -> Vec<&Line> {
    frame.lines.iter().map(|line| &*line.value).collect()
}

fn screen_texts(frame: &Frame) -> Vec<String> {
    frame.lines.iter().map(|line| line.value.text.trim_end().to_owned()).collect()
}

fn history_texts(frame: &Frame) -> Vec<String> {
    let rows = frame.history.range(frame.history.first(), frame.history.end());
    rows.map(|(_, row)| row.text.trim_end().to_owned()).collect()
}

/// The bytes of a program, and the size of the terminal that it ran in.
struct Recording {
    bytes: Vec<u8>,
    size: Size,
}

impl Recording {
    fn load(name: &str) -> Self {
        let size = json(name, "size.json");
        let side = |name: &str| size[name].as_u64().expect("a size is a number") as u16;
        Self {
            bytes: read(name, "alacritty.recording"),
            size: Size { rows: side("screen_lines"), cols: side("columns") },
        }
    }

    /// The frame after the recording was fed in pieces of this length.
    fn replay(&self, piece: usize) -> Arc<Frame> {
        let mut screen = Screen::new(self.size, limits(), Origin::default());
        for bytes in self.bytes.chunks(piece) {
            screen.feed(Moment::default(), bytes);
        }
        screen.first_frame(Moment::default(), &Facts::default())
    }

    /// The same, with the screen kept and made anew behind every piece.
    fn replay_broken(&self, piece: usize) -> Arc<Frame> {
        let mut screen = Screen::new(self.size, limits(), Origin::default());
        let mut blocks: Vec<Vec<u8>> = Vec::new();
        for bytes in self.bytes.chunks(piece) {
            let kept = screen.history_end();
            screen.feed(Moment::default(), bytes);
            let checkpoint = screen.checkpoint(kept);
            blocks.push(checkpoint.rows);
            screen = Screen::restore(&checkpoint.snapshot, &blocks, limits()).unwrap();
        }
        screen.first_frame(Moment::default(), &Facts::default())
    }
}

/// Room for all rows of any recording.
fn limits() -> ScreenLimits {
    let history = HistoryLimits { rows_max: 100_000, bytes_max: usize::MAX };
    ScreenLimits { history, ..ScreenLimits::default() }
}

/// The grid that a recording must end in. Its rows are kept bottom first, from `zero` on.
struct Expected {
    rows: Vec<Value>,
    zero: usize,
    size: Size,
}

impl Expected {
    fn load(name: &str, size: Size) -> Self {
        let mut grid = json(name, "grid.json");
        let Value::Array(rows) = grid["raw"]["inner"].take() else { panic!("rows are a list") };
        let zero = grid["raw"]["zero"].as_u64().expect("the first row has an index");
        Self { rows, zero: zero as usize, size }
    }

    /// The rows of the screen, top first.
    fn screen(&self) -> Vec<String> {
        (0..usize::from(self.size.rows)).rev().map(|up| self.row(up)).collect()
    }

    /// The rows above the screen, oldest first. The grid is filled up with empty rows at its old
    /// end, which never were on a screen.
    fn history(&self) -> Vec<String> {
        let above = usize::from(self.size.rows)..self.rows.len();
        above.rev().map(|up| self.row(up)).skip_while(String::is_empty).collect()
    }

    /// The text of the row that lies so far above the bottom one.
    fn row(&self, up: usize) -> String {
        let row = &self.rows[(self.zero + up) % self.rows.len()];
        let mut text = String::new();
        for cell in row["inner"].as_array().into_iter().flatten() {
            if cell["flags"].as_str().is_some_and(|flags| flags.contains("SPACER")) {
                continue;
            }
            let character = cell["c"].as_str().expect("a cell has a character");
            text.push_str(if character == "\t" { " " } else { character });
            for mark in cell["extra"]["zerowidth"].as_array().into_iter().flatten() {
                text.push_str(mark.as_str().expect("a mark is a character"));
            }
        }
        text.trim_end().to_owned()
    }
}

fn read(name: &str, file: &str) -> Vec<u8> {
    std::fs::read(folder().join(name).join(file)).expect("the crate ships its recordings")
}

fn json(name: &str, file: &str) -> Value {
    serde_json::from_slice(&read(name, file)).expect("the file is JSON")
}

/// Where the recordings lie in the source of the emulator crate.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        // Crates for other systems were never fetched where only this one was built for.
        let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--offline", "--manifest-path"])
            .arg(manifest)
            .args(["--filter-platform", &platform])
            .output()
            .expect("cargo runs");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo answers JSON");
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let emulator = packages.find(|package| package["name"] == "alacritty_terminal");
        let manifest = emulator.and_then(|emulator| emulator["manifest_path"].as_str());
        let manifest = Path::new(manifest.expect("the emulator is a dependency"));
        manifest.with_file_name("tests").join("ref")
    })
}
