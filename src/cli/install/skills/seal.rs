//! The seal of a skill's file: a digest in its front matter. It shows that the file is unchanged,
//! regardless of the version of termgate that wrote it.

use sha2::{Digest, Sha256};

/// The end of the front matter.
const END: &str = "\n---\n";
/// The text before the digest.
const BEFORE: &str = "\nmetadata:\n  termgate: sha256:";

pub(super) fn sealed(text: &str) -> String {
    let (head, body) = text.split_once(END).expect("a skill has front matter");
    format!("{head}{BEFORE}{}{END}{body}", digest(text))
}

/// Whether the text is unchanged since it was sealed.
pub(super) fn is_intact(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(BEFORE) else { return false };
    let Some((seal, body)) = rest.split_once(END) else { return false };
    seal == digest(&format!("{head}{END}{body}"))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::prompt::prompts;

    #[test]
    fn a_file_is_intact_until_anything_of_it_is_changed() {
        for prompt in prompts() {
            let text = sealed(&prompt.skill());
            assert!(is_intact(&text));
            assert!(text.starts_with(&format!("---\nname: {}\n", prompt.skill_name())));
            for changed in [
                text.replace("description: Use", "description: Never use"),
                text.replace("termgate: sha256:", "termgate: sha256:0"),
                text.replace('\n', "\r\n"),
                text.clone() + "\n",
                prompt.skill(),
            ] {
                assert!(!is_intact(&changed), "{changed}");
            }
        }
    }
}
