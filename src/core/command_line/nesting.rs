//! Refuses lines that may be nested so deeply that the parser, which recurses, takes too much stack or time for them.

/// How many openings a line may have, closed or not: the parser takes twice as long for each further `(`.
const OPENINGS_MAX: usize = 20;

/// The same where there may be an index: the parser tries each way to expand what is in it, and for each of them all that
/// this contains, so that each further `${a[` takes 18 times as long.
const OPENINGS_WITH_INDEX_MAX: usize = 6;

/// Words after which a shell reads a list of commands, up to another word.
const OPENING_WORDS: [&str; 9] =
    ["if", "elif", "while", "until", "for", "select", "case", "function", "coproc"];

/// Whether a line may be nested more deeply than is read. Openings count wherever they are, since what is quoted
/// depends on what is nested, but for lines that have no other quotes than single ones.
pub(super) fn is_too_deep(text: &str) -> bool {
    let has_single_only = !text.contains(['"', '\\', '`']) && !text.contains("$'");
    let step = if has_single_only { 2 } else { 1 };
    let is_named =
        |(at, _): (usize, _)| text[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
    let has_index = text.match_indices('[').any(is_named);
    let most = if has_index { OPENINGS_WITH_INDEX_MAX } else { OPENINGS_MAX };
    text.split('\'').step_by(step).map(openings).sum::<usize>() > most
}

/// Whether a here-document may begin inside of a substitution, or a substitution behind a here-document that begins on
/// the same line: the parser may then go on without end.
pub(super) fn has_inner_here_document(text: &str) -> bool {
    const OPENINGS: [&str; 6] = ["$(", "${", "$[", "`", "<(", ">("];
    let first = OPENINGS.iter().filter_map(|opening| text.find(opening)).min();
    first.is_some_and(|at| text[at..].contains("<<"))
        // What follows `<<<` is a word.
        || text.replace("<<<", "").split("<<").skip(1).any(|rest| {
            let line = rest.lines().next().unwrap_or_default();
            let goes_on = |quote| line.matches(quote).count() % 2 != 0;
            line.ends_with('\\')
                || goes_on('\'')
                || goes_on('"')
                || OPENINGS.iter().any(|opening| line.contains(opening))
        })
}

fn openings(text: &str) -> usize {
    let signs = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'`' | b'[')).count();
    let is_opening = |word: &&str| OPENING_WORDS.contains(word);
    let words = text.split(|it: char| !it.is_ascii_lowercase()).filter(is_opening).count();
    // Each `!` before a pipeline is one more level.
    let negations = text.split_whitespace().filter(|word| *word == "!").count();
    signs + words + negations
}
