//! Flags by one name, however they are written.

use std::collections::BTreeSet;

use crate::core::command_line::KnownWord;

/// Names of one flag of a program: the shortest one, then the others.
type FlagNames = &'static [&'static str];

/// Programs whose flags have several names, and are dangerous enough for rules to name them.
const PROGRAMS: &[(&[&str], &[FlagNames])] = &[
    (
        &["rm"],
        &[
            &["r", "R", "recursive"],
            &["f", "force"],
            &["d", "dir"],
            &["i", "interactive"],
            &["v", "verbose"],
        ],
    ),
    (
        &["cp"],
        &[
            &["r", "R", "recursive"],
            &["f", "force"],
            &["a", "archive"],
            &["i", "interactive"],
            &["n", "no-clobber"],
            &["v", "verbose"],
        ],
    ),
    (
        &["mv", "ln"],
        &[
            &["f", "force"],
            &["i", "interactive"],
            &["n", "no-clobber"],
            &["s", "symbolic"],
            &["v", "verbose"],
        ],
    ),
    (
        &["chmod", "chown", "chgrp"],
        &[&["R", "recursive"], &["f", "silent", "quiet"], &["v", "verbose"]],
    ),
    (
        &["git"],
        &[
            &["f", "force"],
            &["d", "delete"],
            &["a", "all"],
            &["m", "message"],
            &["q", "quiet"],
            &["n", "dry-run"],
        ],
    ),
    (
        &["sed"],
        &[&["i", "in-place"], &["n", "quiet", "silent"], &["e", "expression"], &["f", "file"]],
    ),
    (
        &["tar"],
        &[
            &["x", "extract", "get"],
            &["c", "create"],
            &["f", "file"],
            &["C", "directory"],
            &["t", "list"],
        ],
    ),
    (
        &["curl"],
        &[
            &["o", "output"],
            &["O", "remote-name"],
            &["X", "request"],
            &["d", "data"],
            &["T", "upload-file"],
        ],
    ),
    (&["wget"], &[&["O", "output-document"], &["q", "quiet"]]),
    (&["docker", "podman"], &[&["f", "force"], &["a", "all"]]),
    (&["kill", "pkill", "killall"], &[&["s", "signal"]]),
    (&["kubectl"], &[&["f", "filename"], &["n", "namespace"], &["A", "all-namespaces"]]),
];

/// Programs whose flags are words behind one dash, such as `find -delete`.
const LONG_BEHIND_ONE_DASH: [&str; 8] =
    ["find", "go", "java", "terraform", "openssl", "ffmpeg", "gcc", "xset"];

/// The name of a flag of a program by which rules know it. Long names may be cut where they stay clear, as GNU's
/// programs take them.
pub(super) fn canonical(program: &str, flag: &str) -> String {
    let known = PROGRAMS.iter().find(|(programs, _)| programs.contains(&program));
    let Some((_, all)) = known else {
        return flag.to_owned();
    };
    if let Some(names) = all.iter().find(|names| names.contains(&flag)) {
        return names[0].to_owned();
    }
    let is_cut = |names: &&FlagNames| {
        flag.len() > 1 && names.iter().any(|name| name.len() > 1 && name.starts_with(flag))
    };
    let mut meant = all.iter().filter(is_cut);
    match (meant.next(), meant.next()) {
        (Some(names), None) => names[0].to_owned(),
        _ => flag.to_owned(),
    }
}

/// The flags among the arguments, and the arguments that are none.
pub(super) fn split(program: &str, arguments: &[KnownWord]) -> (BTreeSet<String>, Vec<KnownWord>) {
    let (mut flags, mut operands) = (BTreeSet::new(), Vec::new());
    let mut rest = arguments.iter();
    for word in rest.by_ref() {
        match word.as_deref() {
            Some("--") => break,
            Some(long) if long.starts_with("--") => {
                let name = long[2..].split('=').next().unwrap_or_default();
                flags.insert(canonical(program, name));
            }
            Some(short) if short.len() > 1 && short.starts_with('-') => {
                let letters = short[1..].chars().map(|it| canonical(program, &it.to_string()));
                match LONG_BEHIND_ONE_DASH.contains(&program) {
                    true => _ = flags.insert(short[1..].to_owned()),
                    false => flags.extend(letters),
                }
            }
            Some(_) | None => operands.push(word.clone()),
        }
    }
    operands.extend(rest.cloned());
    (flags, operands)
}
