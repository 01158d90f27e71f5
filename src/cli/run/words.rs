//! Joins the words of a command into one shell line.
//!
//! It quotes in a way that sh, bash, zsh and fish read alike.

/// The line for these words: a single word is a line already, several are quoted where necessary.
pub(super) fn line_of(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(word: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        line_of(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn one_word_is_a_line_as_it_stands() {
        assert_eq!(line(&["make && echo $?"]), "make && echo $?");
    }

    #[test]
    fn several_words_reach_a_program_as_they_are() {
        assert_eq!(line(&["make", "-j4", "CC=gcc"]), "make -j4 CC=gcc");
        assert_eq!(line(&["echo", "a b", "", "$x;*"]), "echo 'a b' '' '$x;*'");
        assert_eq!(line(&["echo", "it's"]), r"echo 'it'\''s'");
        assert_eq!(line(&["echo", r"a\n"]), r"echo 'a'\\'n'");
        assert_eq!(line(&["echo", "=ls", "~"]), "echo '=ls' '~'");
    }
}
