//! The server that a client starts: a name, a program and its arguments.

/// The default name of the entry.
pub const NAME: &str = "termgate";

/// The longest name of an entry, in characters.
const NAME_MAX: usize = 64;

/// How a client starts a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The absolute path of the program: graphical clients start with a short `PATH`.
    pub program: String,
    pub arguments: Vec<String>,
}

/// A server and its name in the client's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub launch: Launch,
}

/// What the client's agents may do, besides the daemon's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    AsConfigured,
    ReadOnly,
    Write,
}

impl Server {
    /// This program as a server over standard input and output.
    pub fn bridge(name: String, program: String, rights: Rights) -> Self {
        let mut arguments = vec!["mcp".to_owned()];
        match rights {
            Rights::AsConfigured => {}
            Rights::ReadOnly => arguments.push("--read-only".to_owned()),
            Rights::Write => arguments.push("--allow-write".to_owned()),
        }
        Self { name, launch: Launch { program, arguments } }
    }
}

/// Parses a name that is valid for every client and safe in shells and commands.
///
/// # Errors
/// The rule for names.
pub fn parse_name(text: &str) -> Result<String, String> {
    let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let of_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if begins_well && text.len() <= NAME_MAX && text.chars().all(of_name) {
        return Ok(text.to_owned());
    }
    Err(format!("a name is 1 to {NAME_MAX} letters, digits, `-` and `_`, a letter or digit first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_word() {
        assert_eq!(parse_name("termgate-2"), Ok("termgate-2".to_owned()));
        for text in ["", "-x", "a b", "a.b", "a\"b", "é", &"a".repeat(NAME_MAX + 1)] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_bridge_is_started_with_the_rights_asked_for() {
        let arguments = |rights| {
            Server::bridge("t".to_owned(), "/bin/termgate".to_owned(), rights).launch.arguments
        };
        assert_eq!(arguments(Rights::AsConfigured), ["mcp"]);
        assert_eq!(arguments(Rights::ReadOnly), ["mcp", "--read-only"]);
        assert_eq!(arguments(Rights::Write), ["mcp", "--allow-write"]);
    }
}
