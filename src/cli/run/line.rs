//! The line that a shell reads for the words of a command.

/// The line for these words: a single word is a line already, several are quoted where necessary.
pub(super) fn line_of(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@".contains(&byte);
    // At the start of a word, zsh expands `=` to a program's path.
    if !word.is_empty() && !word.starts_with('=') && word.bytes().all(plain) {
        return word.to_owned();
    }
    let escape = |character: char| match character {
        '\'' => r"'\''".to_owned(),
        // Inside single quotes, only fish treats a backslash as an escape.
        '\\' => r"'\\'".to_owned(),
        other => other.to_string(),
    };
    let escaped: String = word.chars().map(escape).collect();
    format!("'{escaped}'")
}

/// The line for these words with this file as standard input.
pub(super) fn line_with_input(words: &[String], input: &str) -> String {
    let line = match words {
        // A line may have several commands.
        [line] if quoted(line) != *line => format!("eval {}", quoted(line)),
        words => line_of(words),
    };
    format!("{line} < {}", quoted(input))
}
