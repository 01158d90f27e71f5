//! A source file as the rules see it: its tokens, the paths it names and which of them are tests.
//!
//! It knows no rule. Tokens and not syntax trees, so that what stands inside macros counts as well.

use std::fmt;
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// One file below `src/`.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path below `src/`, such as `core/lease.rs`.
    pub(crate) file: String,
    pub(crate) text: String,
    /// Whether all of it is compiled for tests only.
    pub(crate) test: bool,
    pub(crate) tokens: Vec<Token>,
}

/// One token, with groups taken apart into their brackets and what is between them.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Whether it is part of an item that is compiled for tests only.
    pub(crate) test: bool,
}

/// A path with all its segments, as in `use` trees taken apart; a glob ends in `*`.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) test: bool,
}

/// What breaks a rule, and where.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) problem: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// Fails with every complaint, one a line.
pub(crate) fn assert_none(complaints: &[Complaint]) {
    let list: Vec<String> = complaints.iter().map(Complaint::to_string).collect();
    assert!(list.is_empty(), "\n{}\n", list.join("\n"));
}

/// Every file below `src/`, with those marked that are compiled for tests only.
pub(crate) fn all() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    collect(&root, &root, &mut sources);
    assert!(sources.len() > 1, "there is hardly a source below {}", root.display());
    mark_tests(&mut sources);
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(root).expect("it is below the root");
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            sources.push(Source::parse(file.to_str().expect("names are UTF-8"), &text));
        }
    }
}

/// Marks the files, and all below them, that their parent declares as `#[cfg(test)] mod name;`.
fn mark_tests(sources: &mut [Source]) {
    let declared = sources.iter().flat_map(Source::test_modules).collect::<Vec<_>>();
    for source in sources {
        source.test = declared.iter().any(|module| {
            let rest = source.file.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
}

impl Source {
    /// Reads a file's text.
    pub(crate) fn parse(file: &str, text: &str) -> Self {
        let stream: TokenStream =
            text.parse().unwrap_or_else(|error| panic!("src/{file}: not Rust: {error}"));
        let mut tokens = Vec::new();
        flatten(stream, false, &mut tokens);
        Self { file: file.to_owned(), text: text.to_owned(), test: false, tokens }
    }

    /// The module at the top that the file belongs to.
    pub(crate) fn top(&self) -> &str {
        let first = self.file.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// A complaint about this file.
    pub(crate) fn complaint(&self, line: usize, problem: impl Into<String>) -> Complaint {
        Complaint { file: self.file.clone(), line, problem: problem.into() }
    }

    /// Every path that the file names, also by parts of a `use` tree.
    pub(crate) fn names(&self) -> Vec<Named> {
        let mut names = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let starts = is_name(&self.tokens[at].text) && !self.continues(at);
            at = if starts { self.path(at, &[], &mut names) } else { at + 1 };
        }
        names
    }

    /// Whether the token goes on with a path or a chain that began earlier.
    fn continues(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map(|at| self.tokens[at].text.as_str());
        match before(1) {
            Some(".") => true,
            Some("::") => before(2).is_some_and(|text| is_name(text) || text == ">"),
            Some(_) | None => false,
        }
    }

    /// Reads the path or `use` tree that begins here, and says where it ends.
    fn path(&self, mut at: usize, prefix: &[String], names: &mut Vec<Named>) -> usize {
        let mut segments = prefix.to_vec();
        let Token { line, test, .. } = self.tokens[at].clone();
        loop {
            match self.text_at(at) {
                "{" => return self.tree(at, &segments, names),
                segment => segments.push(segment.to_owned()),
            }
            let goes_on =
                self.text_at(at + 1) == "::" && !matches!(self.text_at(at + 2), "<" | "(");
            if !goes_on {
                break;
            }
            at += 2;
        }
        names.push(Named { segments, line, test });
        at + 1
    }

    fn tree(&self, open: usize, prefix: &[String], names: &mut Vec<Named>) -> usize {
        let mut at = open + 1;
        while self.text_at(at) != "}" {
            let leaf = is_name(self.text_at(at)) || matches!(self.text_at(at), "*" | "{");
            at = if self.text_at(at) == "as" {
                at + 2
            } else if leaf {
                self.path(at, prefix, names)
            } else {
                at + 1
            };
        }
        at + 1
    }

    fn text_at(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("}", |token| token.text.as_str())
    }

    /// The paths, without `.rs`, of the modules that are declared here for tests only.
    fn test_modules(&self) -> Vec<String> {
        let stem = self.file.strip_suffix(".rs").unwrap_or(&self.file);
        let folder = if stem == "lib" { String::new() } else { format!("{stem}/") };
        let declaration = |three: &[Token]| {
            let declares = three[0].test && three[0].text == "mod" && three[2].text == ";";
            declares.then(|| format!("{folder}{}", three[1].text))
        };
        self.tokens.windows(3).filter_map(declaration).collect()
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Takes groups apart, joins `::`, and marks what `#[cfg(test)]` stands before.
fn flatten(stream: TokenStream, test: bool, tokens: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut of_item = false;
    let mut at = 0;
    while at < trees.len() {
        let line = trees[at].span().start().line;
        of_item |= is_test_attribute(&trees[at..]);
        let mut push = |text: &str, line| {
            tokens.push(Token { text: text.to_owned(), line, test: test || of_item });
        };
        let mut ends_item = false;
        match &trees[at] {
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                push(open, line);
                flatten(group.stream(), test || of_item, tokens);
                let last = group.span_close().end().line;
                tokens.push(Token { text: close.to_owned(), line: last, test: test || of_item });
                ends_item = open == "{";
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && is_joint_colon(&trees[at..]) => {
                push("::", line);
                at += 1;
            }
            TokenTree::Punct(punct) => {
                push(&punct.as_char().to_string(), line);
                ends_item = punct.as_char() == ';';
            }
            TokenTree::Ident(ident) => push(&ident.to_string(), line),
            TokenTree::Literal(_) => push("\"", line),
        }
        of_item &= !ends_item;
        at += 1;
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::None => ("", ""),
    }
}

fn is_joint_colon(trees: &[TokenTree]) -> bool {
    let [TokenTree::Punct(first), TokenTree::Punct(second), ..] = trees else { return false };
    first.spacing() == Spacing::Joint && second.as_char() == ':'
}

fn is_test_attribute(trees: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = trees else { return false };
    hash.as_char() == '#' && group.stream().to_string().replace(' ', "") == "cfg(test)"
}

#[test]
fn a_use_tree_is_taken_apart() {
    let source = Source::parse("a.rs", "use crate::{core::{ids, frame::*}, session as s};");
    let names: Vec<String> = source.names().iter().map(|name| name.segments.join("::")).collect();
    assert_eq!(names, ["use", "crate::core::ids", "crate::core::frame::*", "crate::session"]);
}

#[test]
fn a_path_inside_a_macro_counts() {
    let source = Source::parse("a.rs", "fn a() { select! { x = ::nix::poll::poll() => {} } }");
    let names = source.names();
    assert!(names.iter().any(|name| name.segments == ["nix", "poll", "poll"]), "{names:?}");
}

#[test]
fn what_stands_behind_cfg_test_is_marked_to_its_end() {
    let source = Source::parse("a.rs", "#[cfg(test)]\nmod tests { use a::b; }\nfn c() {}");
    let marked: Vec<bool> = source.names().iter().map(|name| name.test).collect();
    let texts: Vec<String> = source.names().iter().map(|name| name.segments.join("::")).collect();
    let expected = ["cfg", "test", "mod", "tests", "use", "a::b", "fn", "c"];
    assert_eq!(texts, expected);
    assert_eq!(marked, [true, true, true, true, true, true, false, false]);
}

#[test]
fn a_file_that_is_declared_for_tests_is_a_test() {
    let mut sources = vec![
        Source::parse("core/wait.rs", "#[cfg(test)]\nmod model;\nmod pattern;"),
        Source::parse("core/wait/model.rs", "mod reference;"),
        Source::parse("core/wait/model/reference.rs", ""),
        Source::parse("core/wait/pattern.rs", ""),
    ];
    mark_tests(&mut sources);
    let marked: Vec<bool> = sources.iter().map(|source| source.test).collect();
    assert_eq!(marked, [false, true, true, false]);
}
