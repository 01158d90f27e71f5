//! Variables in the configuration of a mount: `${VAR}` and `${VAR:-default}`.

/// Why a text cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionError {
    #[error("the variable {0} is not set")]
    Unset(String),
    #[error("`${{` without a name and `}}` behind it")]
    Syntax,
}

/// The parts of a text: plain ones, and variables with their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Plain(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, ExpansionError> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((plain, after)) = rest.split_once("${") {
        let (inside, behind) = after.split_once('}').ok_or(ExpansionError::Syntax)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let fine = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if name.is_empty() || !name.chars().all(fine) {
            return Err(ExpansionError::Syntax);
        }
        parts.extend([Part::Plain(plain), Part::Variable { name, default }]);
        rest = behind;
    }
    parts.push(Part::Plain(rest));
    Ok(parts)
}

/// Checks a text without looking up its variables.
///
/// # Errors
/// [`ExpansionError::Syntax`].
pub fn check(text: &str) -> Result<(), ExpansionError> {
    parts(text).map(drop)
}

/// The text with its variables replaced by what `lookup` says. A default stands for a variable that is unset or empty.
/// What is put in is not expanded again.
///
/// # Errors
/// [`ExpansionError::Unset`] for a variable without value and default.
pub fn expand(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, ExpansionError> {
    let mut expanded = String::new();
    for part in parts(text)? {
        match part {
            Part::Plain(plain) => expanded.push_str(plain),
            Part::Variable { name, default } => match (lookup(name), default) {
                (Some(value), Some(default)) if value.is_empty() => expanded.push_str(default),
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => return Err(ExpansionError::Unset(name.to_owned())),
            },
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpansionError> {
        expand(text, |name| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "AGAIN" => Some("${A}".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn variables_and_their_defaults_are_put_in() {
        for (text, expected) in [
            ("x${A}y", "x1y"),
            ("${B:-2}", "2"),
            ("${EMPTY:-2}${EMPTY}", "2"),
            ("${B:-}", ""),
            ("$A {A} $", "$A {A} $"),
            ("${AGAIN}", "${A}"),
            ("${0:-$}{A}", "${A}"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_expanded_is_refused() {
        assert_eq!(expanded("${B}"), Err(ExpansionError::Unset("B".to_owned())));
        for text in ["${", "${}", "${A", "${a b}", "${:-x}"] {
            assert_eq!(expanded(text), Err(ExpansionError::Syntax), "{text}");
            assert_eq!(check(text), Err(ExpansionError::Syntax), "{text}");
        }
        assert_eq!(check("${B}"), Ok(()));
    }
}
