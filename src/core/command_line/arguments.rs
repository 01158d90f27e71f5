//! How arguments fall into options, their values, and other words.

use crate::core::command_line::LineWord;

/// Whether a word is in a list that is separated by blanks.
pub(super) fn lists(words: &str, word: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

/// The same of a word that may not be known.
pub(super) fn lists_word(words: &str, word: &LineWord) -> bool {
    word.text().is_some_and(|it| lists(words, it))
}

/// The words after the options, and whether all options are in these lists: those without a value, and those with one.
pub(super) fn after_options<'a>(
    arguments: &'a [LineWord],
    [plain, valued]: [&str; 2],
) -> (&'a [LineWord], bool) {
    let mut rest = arguments;
    while let Some((LineWord::Known(word), after)) = rest.split_first() {
        let takes_next = match word.strip_prefix('-') {
            None | Some("") => break,
            Some("-") => return (after, true),
            Some(long) if long.starts_with('-') => {
                let name = long[1..].split('=').next().unwrap_or_default();
                match (lists(plain, name), lists(valued, name)) {
                    (true, _) => false,
                    (false, true) => !long.contains('='),
                    (false, false) => return (rest, false),
                }
            }
            // `nice -10`.
            Some(digits) if lists(valued, "adjustment") && digits.parse::<u8>().is_ok() => false,
            Some(letters) => match first_valued(letters, plain, valued) {
                // The value is the rest of the word, or the next word.
                Ok(at) => at.is_some_and(|at| at + 1 == letters.len()),
                Err(()) => return (rest, false),
            },
        };
        rest = after;
        if takes_next {
            match rest.split_first() {
                Some((LineWord::Computed(_), _)) => return (rest, false),
                Some((LineWord::Known(_), after)) => rest = after,
                None => {}
            }
        }
    }
    (rest, true)
}

/// The words between options and behind them, if all options are in these lists.
pub(super) fn between_options<'a>(
    arguments: &'a [LineWord],
    options: [&str; 2],
) -> Option<Vec<&'a LineWord>> {
    let (mut words, mut rest) = (Vec::new(), arguments);
    loop {
        let (after, is_known) = after_options(rest, options);
        if !is_known {
            return None;
        }
        let Some((word, behind)) = after.split_first() else { return Some(words) };
        words.push(word);
        rest = behind;
    }
}

/// The values of those options, each as the rest of its word or the next word. Long names may be cut, and stand behind
/// one dash too.
pub(super) fn values(arguments: &[LineWord], options: &str) -> Vec<LineWord> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let Some(option) = word.beginning().strip_prefix('-') else { continue };
        if option == "-" {
            break;
        }
        // What follows its beginning is not known, where the word is not.
        let attached = |value: &str| match word.is_known() {
            true => LineWord::from(value),
            false => LineWord::unknown(),
        };
        let next = || arguments.get(at + 1).cloned().unwrap_or_else(LineWord::unknown);
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let long = name.trim_start_matches('-');
        let is_long = |it: &str| it.len() > 1 && long.len() > 1 && it.starts_with(long);
        if options.split(' ').any(is_long) {
            found.push(value.map_or_else(next, attached));
        } else if !option.starts_with('-') {
            let is_short = |letter: char| lists(options, &letter.to_string());
            if let Some((at, letter)) = option.char_indices().find(|(_, it)| is_short(*it)) {
                let rest = &option[at + letter.len_utf8()..];
                let is_attached = !rest.is_empty() || !word.is_known();
                found.push(if is_attached { attached(rest) } else { next() });
            }
        }
    }
    found
}

/// Where the first letter with a value is, unless a letter before it is in no list.
fn first_valued(letters: &str, plain: &str, valued: &str) -> Result<Option<usize>, ()> {
    for (at, letter) in letters.char_indices() {
        let letter = letter.to_string();
        if lists(valued, &letter) {
            return Ok(Some(at));
        }
        if !lists(plain, &letter) {
            return Err(());
        }
    }
    Ok(None)
}
