//! What the text before the cursor looks like. It decides only where neither marks nor the kernel do.

/// What a POSIX shell shows where a command goes on (`PS2`).
const CONTINUATION: &str = ">";

const QUESTION_ENDS: [char; 4] = ['?', ':', ']', ')'];
const PROMPT_ENDS: [char; 7] = ['$', '#', '%', '>', '❯', '»', 'λ'];

pub(super) fn is_question(text: &str) -> bool {
    text.trim_end().ends_with(QUESTION_ENDS)
}

pub(super) fn is_prompt(text: &str) -> bool {
    text.trim_end().ends_with(PROMPT_ENDS)
}

pub(super) fn is_continuation(text: &str) -> bool {
    text.trim() == CONTINUATION
}
