//! Flags by one name, however they are written.

use std::collections::BTreeSet;

use crate::core::command_line::LineWord;
use crate::core::command_line::arguments::lists;

/// Programs that rules are likely to name, with the names of each flag, the shortest first.
const PROGRAMS: [(&str, &str); 13] = [
    ("rm", "r=R=recursive f=force d=dir i=interactive v=verbose"),
    ("cp", "r=R=recursive f=force a=archive i=interactive n=no-clobber v=verbose"),
    ("mv ln", "f=force i=interactive n=no-clobber s=symbolic v=verbose"),
    ("chmod chown chgrp", "R=recursive f=silent=quiet v=verbose"),
    (
        "git",
        "f=force d=delete a=all q=quiet C=force-create W=worktree staged hard merge mirror prune discard-changes",
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

/// The shortest name of a flag of a program. Long names may be cut where they stay clear, as GNU's programs take them.
pub(crate) fn canonical(program: &str, flag: &str) -> String {
    let known = PROGRAMS.iter().find(|(programs, _)| lists(programs, program));
    let flags: Vec<Vec<&str>> = known.map_or_else(Vec::new, |(_, flags)| {
        flags.split(' ').map(|names| names.split('=').collect()).collect()
    });
    let is_cut = |name: &&str| flag.len() > 1 && name.starts_with(flag);
    let mut meant = flags.iter().filter(|names| names.iter().any(is_cut));
    let exact = flags.iter().find(|names| names.contains(&flag));
    match (exact, meant.next(), meant.next()) {
        (Some(names), _, _) | (None, Some(names), None) => names[0].to_owned(),
        (None, _, _) => flag.to_owned(),
    }
}

/// The flags among the arguments, and the arguments that are none.
pub(super) fn split(program: &str, arguments: &[LineWord]) -> (BTreeSet<String>, Vec<LineWord>) {
    let (mut flags, mut operands) = (BTreeSet::new(), Vec::new());
    let mut rest = arguments.iter();
    for word in rest.by_ref() {
        match word.text() {
            Some("--") => break,
            Some(long) if long.starts_with("--") => {
                let name = long[2..].split('=').next().unwrap_or_default();
                flags.insert(canonical(program, name));
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
