//! What the text before the cursor looks like: a question, a prompt, or the rest of a command that is asked for.

/// What shells and interpreters show where a command goes on.
const CONTINUATIONS: [&str; 9] = [">", "...", "...>", "...:", "->", ">>", "|", "dquote>", "quote>"];

const QUESTION_ENDS: [char; 4] = ['?', ':', ']', ')'];
const PROMPT_ENDS: [char; 7] = ['$', '#', '%', '>', '❯', '»', 'λ'];

/// Interpreters that show no prompt, by the names that the kernel has.
const WITHOUT_PROMPT: [&str; 3] = ["bc", "dc", "ed"];

/// Whether this looks like a question, or like a pager that waits: `--More--`.
pub(super) fn is_question(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with(QUESTION_ENDS) || text.ends_with("--")
}

/// Whether one of these lines looks like a question.
pub fn is_asked(lines: &str) -> bool {
    lines.lines().any(is_question)
}

/// Whether this looks like the prompt of a shell, an interpreter or a debugger: `(gdb)`, `In [1]:`.
pub(super) fn is_prompt(text: &str) -> bool {
    let text = text.trim();
    let named = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let is_name = |name: &str| {
        let fine = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
        !name.is_empty() && name.chars().all(fine)
    };
    text.ends_with(PROMPT_ENDS)
        || named.is_some_and(is_name)
        || text.starts_with("In [") && text.ends_with("]:")
}

pub(super) fn is_continuation(text: &str) -> bool {
    CONTINUATIONS.contains(&text.trim())
}

/// Whether this text ends as a prompt does that was shown before. Prompts count: `In [2]:` is the one after `In [1]:`. What
/// asks for the rest of a command may end like the prompt.
pub(super) fn ends_with_prompt(text: &str, prompt: &str) -> bool {
    if is_continuation(text) && text.trim() != prompt.trim() {
        return false;
    }
    let counts = prompt.contains(|c: char| c.is_ascii_digit());
    text.ends_with(prompt) || counts && without_numbers(text).ends_with(&without_numbers(prompt))
}

fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        match character {
            '0'..='9' if plain.ends_with('0') => {}
            '0'..='9' => plain.push('0'),
            other => plain.push(other),
        }
    }
    plain
}

/// Whether the program of this name takes commands where it shows nothing.
pub(super) fn is_without_prompt(program: Option<&str>) -> bool {
    program.is_some_and(|program| WITHOUT_PROMPT.contains(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_debuggers_and_interpreters_are_prompts() {
        for prompt in [
            "$ ",
            "(gdb) ",
            "(Pdb) ",
            "(rdb:1)",
            "In [12]: ",
            ">>> ",
            "  DB<3> ",
            "irb(main):001:0> ",
        ] {
            assert!(is_prompt(prompt), "{prompt}");
        }
        for question in ["(y/n) ", "Choice [1]: ", "Proceed (default: yes)", "()", "Password: "] {
            assert!(!is_prompt(question), "{question}");
        }
    }

    #[test]
    fn a_prompt_that_counts_is_known_again() {
        assert!(ends_with_prompt("  DB<12> ", "  DB<9> "));
        assert!(ends_with_prompt("out In [10]: ", "In [9]: "));
        assert!(!ends_with_prompt("In [10] ", "In [9]: "));
        assert!(ends_with_prompt("a$ ", "$ ") && !ends_with_prompt("a> ", "$ "));
        assert!(ends_with_prompt("> ", "> ") && !ends_with_prompt(">> ", "> "));
    }
}
