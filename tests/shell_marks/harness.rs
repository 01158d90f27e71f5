//! A shell in a terminal of its own, with a home of its own, and the marks that came out of it.
//!
//! It answers what fish asks of a terminal at its start, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use termgate::core::frame::{Exit, Size};
use termgate::core::ids::SessionId;
use termgate::session::pty::command::{Launch, SpawnSpec};
use termgate::session::pty::environment::{ClientEnvironment, Environment, clean_environment};
use termgate::session::pty::own::OwnPty;
use termgate::session::pty::shell::{Nonce, SCRIPTS, prepare};
use termgate::session::pty::{Pty, ReadOutput, Stamp};
use tokio::time::timeout;

use crate::harness::home::furnish;
use crate::harness::waiting::SAFETY;

const SIZE: Size = Size { rows: 24, cols: 80 };

/// What fish asks, and what a terminal answers.
const QUERY: &str = "\u{1b}[c";
const ANSWER: &[u8] = b"\x1b[?62;22c";

/// A file of the user: its path below the home, and its text.
pub(crate) type File = (&'static str, &'static str);

/// A shell that is at its prompt, or was told to do something.
pub(crate) struct Shell {
    pty: OwnPty,
    home: TempDir,
    nonce: Option<Nonce>,
    output: Vec<u8>,
    answered: usize,
    /// Up to where its output was looked at.
    seen: usize,
}

impl Shell {
    /// Starts a shell among these files, and waits until it reads a command.
    pub(crate) async fn start(program: &str, args: &[&str], files: &[File]) -> Self {
        let mut shell = Self::begin(program, args, files);
        assert!(shell.nonce.is_some(), "{program} {args:?} is known");
        let marks = shell.prompt().await;
        assert_eq!(marks, ["A", "B"], "{}", shell.text());
        shell
    }

    /// Starts a program among these files.
    pub(crate) fn begin(program: &str, args: &[&str], files: &[File]) -> Self {
        let home = tempfile::tempdir().unwrap();
        furnish(home.path());
        for (path, text) in files {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let scripts = home.path().join("scripts of '$ours\\`");
        for (path, text) in SCRIPTS {
            let path = scripts.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut spec = spec(program, args, home.path());
        let nonce = prepare(&mut spec, &scripts).own;
        let pty = OwnPty::open(&spec).unwrap();
        Self { pty, home, nonce, output: Vec::new(), answered: 0, seen: 0 }
    }

    /// Whether this has the nonce that no program is to find.
    pub(crate) fn is_secret_in(&self, text: &str) -> bool {
        self.nonce.as_ref().is_some_and(|nonce| text.contains(nonce.as_str()))
    }

    /// A path below the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Types a line, and gives back the marks up to where the next line can be typed.
    pub(crate) async fn run(&mut self, line: &str) -> Vec<String> {
        self.type_in(line).await;
        self.prompt().await
    }

    /// Runs a line, and gives back what it printed between its beginning and its end.
    pub(crate) async fn output_of(&mut self, line: &str) -> String {
        let from = self.output.len();
        let marks = self.run(line).await;
        assert_eq!(marks[0], "C", "{}", self.text());
        let new = String::from_utf8_lossy(&self.output[from..]).into_owned();
        let nonce = self.nonce.as_ref().unwrap().as_str();
        let after = |text: &str, mark: &str| {
            let start = text.find(mark).unwrap() + mark.len();
            start + text[start..].find("\u{1b}\\").unwrap() + 2
        };
        let begin = after(&new, &format!("\u{1b}]133;C;nonce={nonce}"));
        let ends = ["\u{1b}]133;E;", "\u{1b}]133;D;"].map(|mark| new[begin..].find(mark));
        let end = begin + ends.into_iter().flatten().min().unwrap();
        new[begin..end].to_owned()
    }

    /// Types what a person would, and a line end.
    pub(crate) async fn type_in(&mut self, line: &str) {
        self.press(format!("{line}\r").as_bytes()).await;
    }

    pub(crate) async fn press(&mut self, keys: &[u8]) {
        let mut rest = keys;
        while !rest.is_empty() {
            let taken = self.pty.try_write(rest, Stamp::default()).unwrap();
            rest = &rest[taken..];
            if taken == 0 {
                timeout(SAFETY, self.pty.writable()).await.expect("room for keys").unwrap();
            }
        }
    }

    /// Waits until a prompt is written, and gives back the marks since the last one.
    pub(crate) async fn prompt(&mut self) -> Vec<String> {
        loop {
            let marks = self.new_marks();
            let begun = marks.iter().position(|mark| mark == "A" || mark.starts_with("A "));
            if begun.is_some_and(|at| marks[at..].iter().any(|mark| mark == "B")) {
                self.seen = self.output.len();
                return marks;
            }
            self.read().await.expect("a prompt comes");
        }
    }

    /// Waits until the output since the last prompt has this text.
    pub(crate) async fn shows(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.output[self.seen..]).contains(text) {
            self.read().await.expect(text);
        }
    }

    /// Waits for the end of the shell, and gives back how it ended and the marks since the last prompt.
    pub(crate) async fn end(mut self) -> (Exit, Vec<String>) {
        while self.read().await.is_some() {}
        let exit = timeout(SAFETY, self.pty.exited()).await.expect("an end");
        (exit, self.new_marks())
    }

    /// The directories that were told, percent-encoded, the newest last.
    pub(crate) fn directories(&self) -> Vec<String> {
        let all = commands(&self.output).into_iter();
        all.filter_map(|text| text.strip_prefix("7;file://").map(str::to_owned)).collect()
    }

    /// The percent-encoded texts that came with marks, the newest last.
    pub(crate) fn command_texts(&self) -> Vec<String> {
        let of = |text: String| text.split_once(";cmdline_url=").map(|(_, text)| text.to_owned());
        commands(&self.output).into_iter().filter_map(of).collect()
    }

    /// All that came out, as people would read it in a failure.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The marks since the last prompt. What is drawn again tells no more than before: a prompt's end
    /// counts once.
    fn new_marks(&self) -> Vec<String> {
        let nonce = self.nonce.as_ref().map_or("none", Nonce::as_str);
        let all = commands(&self.output[self.seen..]).into_iter();
        let ours = all.filter_map(|text| {
            let text = text.strip_prefix("133;")?;
            let (mark, rest) = text.split_once(&format!(";nonce={nonce}"))?;
            assert!(rest.is_empty() || rest.starts_with(";cmdline_url="), "{text:?}");
            // Every prompt says that the line editor knows our key.
            let mark = match mark.strip_prefix("A;bound=1") {
                Some(rest) => format!("A{rest}"),
                None => mark.to_owned(),
            };
            assert!(mark != "A" || text.contains(";bound=1;"), "{text:?}");
            Some(mark.replace(';', " "))
        });
        // The end of output is told by zsh alone, and has a test there.
        let ours = ours.filter(|mark| mark != "E");
        let mut marks: Vec<String> = ours.skip_while(|mark| mark == "B").collect();
        marks.dedup_by(|next, mark| next == "B" && mark == "B");
        marks
    }

    /// Reads what there is next; none at the end.
    async fn read(&mut self) -> Option<()> {
        let offset = self.output.len() as u64;
        let read = timeout(SAFETY, self.pty.read(offset, &mut self.output)).await;
        let Ok(read) = read else { panic!("waited in vain after {}", self.text()) };
        match read.unwrap() {
            ReadOutput::Bytes(_) => {}
            ReadOutput::End => return None,
        }
        let asked = String::from_utf8_lossy(&self.output).matches(QUERY).count();
        for _ in self.answered..asked {
            self.press(ANSWER).await;
        }
        self.answered = asked;
        Some(())
    }
}

fn spec(program: &str, args: &[&str], home: &Path) -> SpawnSpec {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let base = Environment::from([
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("HOME".into(), home.into()),
    ]);
    let environment =
        clean_environment(&base, &ClientEnvironment::default(), &BTreeMap::new()).unwrap();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let launch = Launch::Program { name: program.to_owned(), args };
    SpawnSpec::resolve(launch, session, home.to_owned(), environment, SIZE).unwrap()
}

/// The operating system commands in an output, each without its beginning and end.
fn commands(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let begun = text.split("\u{1b}]").skip(1);
    begun.filter_map(|rest| Some(rest.split_once("\u{1b}\\")?.0.to_owned())).collect()
}
