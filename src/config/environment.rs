//! Reads keys from environment variables: `TERMGATE_LEASE__TTL_MS` sets `lease.ttl_ms`.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::config::file::Given;
use crate::config::key::{ConfigKey, KEYS, Value, ValueKind};
use crate::config::problem::{Fault, Problem, ValueOrigin};
use crate::core::event::EventKinds;
use crate::core::nearest::nearest_of;

/// The prefix of our variables.
const PREFIX: &str = "TERMGATE_";
/// The names, without prefix, of our variables that set no key. `BIN` holds the program for our scripts;
/// other modules read the rest.
const KEYLESS: [&str; 18] = [
    "AUTOSTART",
    "BIN",
    "COMPLETE",
    "EVENT",
    "EVENTS_LEFT_OUT",
    "EVENT_NAME",
    "EVENT_SESSION",
    "EVENT_TEXT",
    "LEASE",
    "NESTED_BASH",
    "NESTED_ENV",
    "NESTED_NONCE",
    "RUNTIME_DIR",
    "SESSION",
    "SHELL_ENV",
    "SHELL_NONCE",
    "SHELL_ZDOTDIR",
    "SOCKET",
];

/// The variable that sets a key.
pub fn variable_of(key: &ConfigKey) -> String {
    format!("{PREFIX}{}", key.name.replace('.', "__").to_ascii_uppercase())
}

/// Whether this variable has our prefix.
pub fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Whether this variable is one of ours.
pub fn is_known(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|rest| KEYLESS.contains(&rest)) || key_of(name).is_some()
}

/// Reads the keys that an environment sets, and the problems in it.
///
/// An empty value counts as unset. An unknown name is a problem, because the user expects a limit or a right
/// that does not apply.
pub fn read(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> (Vec<Given>, Vec<Problem>) {
    let (mut given, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in variables {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let Some(rest) = name.strip_prefix(PREFIX).filter(|_| !value.is_empty()) else { continue };
        let origin = ValueOrigin::Variable(name.to_string());
        let Some(key) = key_of(&name) else {
            if !is_known(&name) {
                let fault = Fault::NoVariable(nearest(rest));
                problems.push(Problem { origin, key: None, fault });
            }
            continue;
        };
        match value_of(key.kind, &value).filter(|value| key.kind.takes(value)) {
            Some(value) => given.push(Given { key, value, origin }),
            None => {
                let fault = Fault::Unfit { found: value.to_string(), expected: key.kind };
                problems.push(Problem { origin, key: Some(key.name.to_owned()), fault });
            }
        }
    }
    (given, problems)
}

fn key_of(name: &str) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| variable_of(key) == name)
}

/// The variable with the most similar name. `rest` is the name without prefix.
fn nearest(rest: &str) -> Option<String> {
    let meant = rest.replace("__", ".");
    let names = KEYS.iter().map(|key| key.name).chain(KEYLESS);
    let near = nearest_of(&meant, names, 1).first().copied()?;
    Some(ConfigKey::find(near).map_or_else(|| format!("{PREFIX}{near}"), variable_of))
}

fn value_of(kind: ValueKind, text: &str) -> Option<Value> {
    match kind {
        ValueKind::Switch => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(Value::Switch(true)),
            "false" | "0" | "no" | "off" => Some(Value::Switch(false)),
            _ => None,
        },
        ValueKind::Number { .. } => text.parse().ok().map(Value::Number),
        ValueKind::Key => Value::of_name(text),
        ValueKind::Text { .. } => Some(Value::Text(Arc::from(text))),
        ValueKind::EventKinds => {
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            EventKinds::of(words).map(Value::EventKinds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_pairs(pairs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let (given, problems) =
            read(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let given = given.iter().map(|it| format!("{} = {}", it.key.name, it.value));
        (given.collect(), problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_key_is_a_variable_in_capitals_with_two_underscores_for_the_dot() {
        let (given, problems) = read_pairs(&[
            ("TERMGATE_ALLOW_WRITE", "1"),
            ("TERMGATE_LEASE__TTL_MS", "5000"),
            ("TERMGATE_LEASE__AUTO", "Off"),
        ]);
        assert_eq!(given, ["allow_write = true", "lease.ttl_ms = 5000", "lease.auto = false"]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn no_two_keys_have_the_same_variable() {
        let mut names: Vec<String> = KEYS.iter().map(variable_of).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }

    #[test]
    fn a_variable_that_is_empty_or_sets_no_key_or_is_somebody_elses_sets_nothing() {
        let (given, problems) = read_pairs(&[
            ("TERMGATE_ALLOW_WRITE", ""),
            ("TERMGATE_ALOW_WRITE", ""),
            ("TERMGATE_SOCKET", "/run/x"),
            ("TERMGATE_SESSION", "0123456789ab"),
            ("LEASE__TTL_MS", "5"),
        ]);
        assert!(given.is_empty() && problems.is_empty(), "{given:?} {problems:?}");
    }

    #[test]
    fn a_mistake_is_told_with_the_name_of_its_variable() {
        let (given, problems) = read_pairs(&[
            ("TERMGATE_LEASE__TTL", "5000"),
            ("TERMGATE_LEASE__TTL_MS", "999"),
            ("TERMGATE_ALLOW_WRITE", "maybe"),
            ("TERMGATE_ALOW_WRITE", "1"),
            ("TERMGATE_SOKET", "/run/x"),
            ("TERMGATE_ELEPHANTS", "7"),
        ]);
        assert!(given.is_empty(), "{given:?}");
        let expected = [
            "TERMGATE_LEASE__TTL: unknown variable; did you mean TERMGATE_LEASE__TTL_MS?",
            "TERMGATE_LEASE__TTL_MS: lease.ttl_ms: 999 is not a whole number from 1000 to 600000",
            "TERMGATE_ALLOW_WRITE: allow_write: maybe is not true or false",
            "TERMGATE_ALOW_WRITE: unknown variable; did you mean TERMGATE_ALLOW_WRITE?",
            "TERMGATE_SOKET: unknown variable; did you mean TERMGATE_SOCKET?",
            "TERMGATE_ELEPHANTS: unknown variable",
        ];
        assert_eq!(problems, expected);
    }
}
