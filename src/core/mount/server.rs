//! Where the server of a mount is: a program to start, a Unix socket, or an address of HTTP.

use std::collections::BTreeMap;
use std::fmt;

/// Headers that the connection itself sets.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The server of a mount as the configuration has it. `${VAR}` is not expanded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountedServer {
    Program(ServerCommand),
    /// It listens on a Unix socket at this path, and writes one message per line.
    Socket(String),
    Http(HttpAddress),
}

/// A program that speaks on its standard input and output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCommand {
    /// A path, or a name that is looked up in `PATH`.
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The names of variables that it gets from the daemon, besides those that each server gets.
    pub pass_env: Vec<String>,
    /// Where it runs; in the daemon's default directory without.
    pub cwd: Option<String>,
}

/// A server that speaks Streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpAddress {
    pub url: String,
    /// Sent with each request. They may be secrets.
    pub headers: BTreeMap<String, String>,
    /// The Unix socket at which it listens, if it is not found by the host of its URL.
    pub socket: Option<String>,
}

impl fmt::Debug for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        let mut shown = f.debug_struct("HttpAddress");
        shown.field("url", &without_query(&self.url)).field("headers", &names);
        shown.field("socket", &self.socket).finish()
    }
}

/// For lists: without arguments, variables, headers and queries, which may be secrets.
impl fmt::Display for MountedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => f.write_str(&program.command),
            Self::Socket(path) => write!(f, "unix:{path}"),
            Self::Http(HttpAddress { url, socket: None, .. }) => f.write_str(without_query(url)),
            Self::Http(HttpAddress { url, socket: Some(path), .. }) => {
                write!(f, "{} at unix:{path}", without_query(url))
            }
        }
    }
}

fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(place, _)| place)
}

/// Checks the URL of a server, after expansion.
///
/// # Errors
/// What is wrong with it, without the URL.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("it must begin with http:// or https://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.is_empty() || authority.starts_with(':') {
        return Err("it names no host");
    }
    if authority.contains('@') {
        return Err("a user and a password belong into headers");
    }
    if url.contains('#') || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it contains `#` or a character that a URL cannot have");
    }
    Ok(())
}

/// Checks the name of a header.
///
/// # Errors
/// What is wrong with it.
pub fn check_header(name: &str) -> Result<(), &'static str> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(fine) {
        return Err("not the name of a header");
    }
    if OWN_HEADERS.contains(&&*name.to_ascii_lowercase()) {
        return Err("a header that the daemon sets itself");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host_and_no_password() {
        for url in ["http://localhost/mcp", "https://a.example:8443", "http://[::1]:80/mcp?a=b"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for (url, problem) in [
            ("ftp://a", "begin with"),
            ("https:///mcp", "no host"),
            ("http://:80", "no host"),
            ("https://a:b@c/", "password"),
            ("https://a/#b", "`#`"),
            ("https://a/b c", "character"),
            ("https://ä/", "character"),
        ] {
            assert!(check_url(url).unwrap_err().contains(problem), "{url}");
        }
    }

    #[test]
    fn headers_of_the_connection_cannot_be_set() {
        assert_eq!(check_header("Authorization"), Ok(()));
        for name in ["", "a b", "a:", "Host", "MCP-Session-Id", "ä"] {
            assert!(check_header(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let http = |socket: Option<&str>| {
            MountedServer::Http(HttpAddress {
                url: "http://localhost/mcp?key=secret".to_owned(),
                headers: BTreeMap::from([("Authorization".to_owned(), "secret".to_owned())]),
                socket: socket.map(str::to_owned),
            })
        };
        let program = MountedServer::Program(ServerCommand {
            command: "npx".to_owned(),
            args: vec!["secret".to_owned()],
            ..ServerCommand::default()
        });
        assert_eq!(http(None).to_string(), "http://localhost/mcp");
        assert_eq!(http(Some("/s")).to_string(), "http://localhost/mcp at unix:/s");
        assert_eq!(MountedServer::Socket("/s".to_owned()).to_string(), "unix:/s");
        assert_eq!(program.to_string(), "npx");
        assert!(!format!("{:?}", http(None)).contains("secret"));
    }
}
