//! What is known of a word before it runs is what bash makes of it.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use termgate::core::command_line::{LineWord, ParsedCommandLine, ShapePiece};

/// How many lines are tried.
const LINES: u64 = 3_000;

/// What comes before a word, and behind it.
const AROUND: [(&str, &str); 14] = [
    ("", ""),
    ("f=src; ", ""),
    ("f='a b'; ", ""),
    ("f=../up; ", ""),
    ("f='*'; ", ""),
    ("f={a,b}; ", ""),
    ("f=$V; ", ""),
    ("export f=src; ", ""),
    ("f=src; f+=/d; ", ""),
    ("false && f=src; ", ""),
    ("for f in a src/*.c; do ", "; done"),
    ("for f in a b; do ", "; f=src/x; done"),
    ("for f in $(seq 2); do ", "; done"),
    ("f=$(mktemp -u); ", ""),
];

const PIECES: [&str; 52] = [
    "a",
    "b",
    "src/",
    "d/",
    "/",
    ".",
    "..",
    "../",
    "-",
    "x",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "*.c",
    "{a,b}",
    "{a,../b}",
    "{1..3}",
    "{a,b",
    "{}",
    "}",
    "]",
    "'a b'",
    "\"x\"",
    "'*'",
    "\\*",
    "\"{a,b}\"",
    "{'a',b}",
    "$f",
    "\"$f\"",
    "${f}",
    "\"${f}/\"",
    "$V",
    "\"$V\"",
    "$#",
    "${f%c}",
    "\"${f%.c}\"",
    "${f%%b}",
    "$(date +%Y-%m)",
    "\"$(date +%s)\"",
    "$((2 - 1))",
    "\"$(echo a)\"",
    "$(seq 3)",
    "\"$(seq 2 3)\"",
    "\"$(nproc)\"",
    "$(mktemp -u)",
    "\"$(mktemp -ut a.XXXX.b)\"",
    "$(mktemp -u a/XXXX)",
    "$(dirname src/x.c)",
    "$(git rev-parse HEAD)",
    "$(git branch --show-current)",
];

/// Reads lines that end with NUL, and prints each argument that their program gets, behind each line its end.
const PRINTING: &str = r#"
show() { printf '%s\0' "$@"; }
while IFS= read -r -d '' line; do
    (eval "$line") 2> /dev/null
    printf '\1\0'
done
"#;

/// Numbers that follow each other as by chance, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn lines() -> Vec<String> {
    let mut numbers = Numbers(7);
    let line = |_| {
        let (before, behind) = AROUND[numbers.below(AROUND.len())];
        let count = 1 + numbers.below(4);
        let word: String = (0..count).map(|_| PIECES[numbers.below(PIECES.len())]).collect();
        format!("{before}show {word}{behind}")
    };
    (0..LINES).map(line).collect()
}

/// Whether a text consists of these pieces.
fn is_of(text: &str, pieces: &[ShapePiece]) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return text.is_empty() };
    let after = |is_such: fn(char) -> bool| {
        let taken = text.find(|it| !is_such(it)).unwrap_or(text.len());
        let ends = (0..=taken).filter(|end| text.is_char_boundary(*end));
        ends.into_iter().any(|end| is_of(&text[end..], rest))
    };
    let behind =
        |begin: &String| text.strip_prefix(begin.as_str()).is_some_and(|it| is_of(it, rest));
    match first {
        ShapePiece::Text(begin) => behind(begin),
        ShapePiece::OneOf(begins) => begins.iter().any(behind),
        ShapePiece::Digits => after(|it| it.is_ascii_digit()),
        ShapePiece::Numbers => after(|it| it.is_ascii_digit() || matches!(it, ' ' | '\n')),
        ShapePiece::Letters => after(|it| it.is_ascii_alphanumeric()),
        ShapePiece::Name => after(|it| it != '/'),
        ShapePiece::Branch if text.starts_with(['-', '+', ':', '/']) => is_of(text, rest),
        ShapePiece::Branch | ShapePiece::Path | ShapePiece::Any | ShapePiece::Words => {
            after(|_| true)
        }
    }
}

/// What bash gives to `show` in each line, in a directory with some files.
fn printed(lines: &[String]) -> Vec<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    for name in
        ["a", "b.c", "ab", "a b", "-x", "src/x.c", "src/y.c", "src/.h", "d/e/f.c", ".hidden", "x.c"]
    {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let mut bash = Command::new("bash")
        .args(["--norc", "-c", PRINTING])
        .current_dir(directory.path())
        .env("V", "../up and down")
        .env_remove("f")
        .env_remove("TMPDIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = bash.stdin.take().unwrap();
    let all = lines.join("\0") + "\0";
    let writing = thread::spawn(move || input.write_all(all.as_bytes()).unwrap());
    let output = bash.wait_with_output().unwrap();
    writing.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| line.split_terminator('\0').map(str::to_owned).collect();
    text.split_terminator("\u{1}\0").map(line).collect()
}

#[test]
fn bash_makes_of_a_word_what_is_known_of_it() {
    let lines = lines();
    let printed = printed(&lines);
    assert_eq!(printed.len(), lines.len());
    let (mut wrong, mut known, mut shaped) = (Vec::new(), 0, 0);
    for (line, arguments) in lines.iter().zip(&printed) {
        let parsed = ParsedCommandLine::parse(line);
        if parsed.unknown.iter().any(|part| part.hides_commands()) {
            continue;
        }
        let call = parsed.calls.iter().find(|call| call.name.as_deref() == Some("show")).unwrap();
        let [word] = call.arguments.as_slice() else { panic!("{line}: {call:?}") };
        let is_right = |argument: &String| match word {
            LineWord::Known(text) => argument == text,
            LineWord::Computed(shape) => is_of(argument, shape.pieces()),
        };
        let is_flag = |argument: &String| argument.starts_with('-') && !word.may_be_flag();
        if !arguments.iter().all(is_right) || arguments.iter().any(is_flag) {
            wrong.push(format!("{line}: {word:?}, but {arguments:?}"));
        }
        known += usize::from(word.is_known());
        shaped += usize::from(!word.is_known() && *word != LineWord::unknown());
    }
    assert!(wrong.is_empty(), "{} of {LINES}:\n{}", wrong.len(), wrong.join("\n"));
    // Else nothing was tried.
    assert!(known > 300 && shaped > 300, "{known} {shaped}");
}
