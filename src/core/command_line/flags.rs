//! Flags by one name, however they are written.

use std::collections::BTreeSet;

use crate::core::command_line::arguments::lists;
use crate::core::command_line::{LineWord, ShapePiece};

/// Programs that rules are likely to name, with the names of each flag, the shortest first.
const PROGRAMS: [(&str, &str); 13] = [
    ("rm", "r=R=recursive f=force d=dir i=interactive v=verbose"),
    ("cp", "r=R=recursive f=force a=archive i=interactive n=no-clobber v=verbose"),
    ("mv ln", "f=force i=interactive n=no-clobber s=symbolic v=verbose"),
    ("chmod chown chgrp", "R=recursive f=silent=quiet v=verbose"),
    (
        "git",
        "f=force d=delete a=all q=quiet C=force-create W=worktree staged hard merge mirror prune discard-changes force-with-lease",
    ),
    ("sed", "i=in-place n=quiet=silent e=expression f=file"),
    ("tar", "x=extract=get c=create f=file C=directory t=list"),
    ("curl", "o=output O=remote-name X=request d=data T=upload-file"),
    ("wget", "O=output-document q=quiet"),
    ("docker podman docker-compose podman-compose", "f=force a=all v=volumes"),
    ("kill pkill killall", "s=signal"),
    ("kubectl", "f=filename n=namespace A=all-namespaces"),
    ("rsync", "delete=del=delete-before=delete-during=delete-delay=delete-after=delete-excluded"),
];

/// Programs whose flags are words behind one dash, such as `find -delete`.
const LONG_BEHIND_ONE_DASH: &str = "find go java terraform tofu terragrunt openssl ffmpeg gcc xset";

/// Programs none of whose letters takes a value.
const WITHOUT_VALUES: &str = "rm rmdir chmod chown chgrp";

/// The shortest name of a flag of a program.
pub(crate) fn canonical(program: &str, flag: &str) -> String {
    let mut meanings = meanings(program, flag);
    if meanings.len() == 1 { meanings.remove(0) } else { flag.to_owned() }
}

/// The shortest names of the flags that this may be. Long names may be cut, as GNU's programs and git take them.
fn meanings(program: &str, flag: &str) -> Vec<String> {
    let known = PROGRAMS.iter().find(|(programs, _)| lists(programs, program));
    let flags: Vec<Vec<&str>> = known.map_or_else(Vec::new, |(_, flags)| {
        flags.split(' ').map(|names| names.split('=').collect()).collect()
    });
    let is_cut = |name: &&str| flag.len() > 1 && name.starts_with(flag);
    if let Some(exact) = flags.iter().find(|names| names.contains(&flag)) {
        return vec![exact[0].to_owned()];
    }
    let meant = flags.iter().filter(|names| names.iter().any(is_cut));
    let meant: Vec<String> = meant.map(|names| names[0].to_owned()).collect();
    if meant.is_empty() { vec![flag.to_owned()] } else { meant }
}

/// The flags among the arguments, and the arguments that are none.
pub(super) fn split(program: &str, arguments: &[LineWord]) -> (BTreeSet<String>, Vec<LineWord>) {
    let (mut flags, mut operands) = (BTreeSet::new(), Vec::new());
    let mut rest = arguments.iter();
    for (at, word) in rest.by_ref().enumerate() {
        match word.text() {
            Some("--") => break,
            Some(long) if long.starts_with("--") => {
                let name = long[2..].split('=').next().unwrap_or_default();
                flags.extend(meanings(program, name));
            }
            // The first word of `kill` with a dash is the signal, and a later one a group of processes.
            Some(group) if program == "kill" && at > 0 && is_negative(group) => {
                operands.push(word.clone());
            }
            Some(short) if short.len() > 1 && short.starts_with('-') => {
                let letters = short[1..].chars().map(|it| canonical(program, &it.to_string()));
                match lists(LONG_BEHIND_ONE_DASH, program) {
                    true => flags.extend(short[1..].split('=').next().map(str::to_owned)),
                    false => flags.extend(letters),
                }
            }
            Some(_) | None => operands.push(word.clone()),
        }
    }
    operands.extend(rest.cloned());
    (flags, operands)
}

/// Whether a word is a flag of a program, or may be one.
pub(crate) fn may_be_flags(program: &str, word: &LineWord) -> bool {
    // Such a program fails at a word that has another sign.
    let is_refused = |piece: &ShapePiece| match piece {
        ShapePiece::Text(text) => {
            text.contains(|it: char| !it.is_ascii_alphanumeric() && it != '-')
        }
        ShapePiece::OneOf(_)
        | ShapePiece::Digits
        | ShapePiece::Numbers
        | ShapePiece::Letters
        | ShapePiece::Name
        | ShapePiece::Path
        | ShapePiece::Branch
        | ShapePiece::Any
        | ShapePiece::Words => false,
    };
    word.may_be_flag() && !(lists(WITHOUT_VALUES, program) && word.pieces().iter().any(is_refused))
}

/// The values that stand in one word with a name, as in `--method=x`.
pub(crate) fn named_values(arguments: &[LineWord]) -> impl Iterator<Item = LineWord> {
    arguments.iter().filter_map(|word| {
        let at = word.beginning().find('=').filter(|_| word.beginning().starts_with('-'))?;
        Some(word.behind(at + 1))
    })
}

/// What may be the value of the first letter of a word, as in `-Xx`.
pub(crate) fn lettered_values<'a>(
    program: &str,
    arguments: &'a [LineWord],
) -> impl Iterator<Item = LineWord> + 'a {
    let has_letters = !lists(LONG_BEHIND_ONE_DASH, program);
    arguments.iter().filter(move |_| has_letters).filter_map(|word| {
        let mut letters = word.beginning().strip_prefix('-')?.chars();
        let first = letters.next().filter(|it| *it != '-')?;
        let is_longer = !letters.as_str().is_empty() || !word.is_known();
        is_longer.then(|| word.behind(1 + first.len_utf8()))
    })
}

fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|it| it.parse::<u32>().is_ok())
}
