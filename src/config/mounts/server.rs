//! The keys by which a mounts file says where a server is, and what is wrong with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::core::mount::expansion;
use crate::core::mount::server::{
    HttpAddress, MountedServer, ServerCommand, check_header, check_url,
};

/// The keys of a server.
pub(super) const SERVER_KEYS: [&str; 8] =
    ["command", "args", "env", "pass_env", "cwd", "url", "headers", "socket"];

/// The most arguments, variables or headers.
const WORDS_MAX: usize = 256;

/// The longest path of a Unix socket, in bytes.
const SOCKET_PATH_MAX: usize = 107;

#[derive(Debug, Deserialize)]
pub(super) struct ServerKeys {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    cwd: Option<String>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    socket: Option<String>,
}

impl ServerKeys {
    /// The server, if it is clear which one; adds all that is wrong with it.
    pub(super) fn server(self, wrong: &mut Vec<String>) -> Option<MountedServer> {
        self.check_texts(wrong);
        let of_programs = [
            ("args", self.args.is_some()),
            ("env", self.env.is_some()),
            ("pass_env", self.pass_env.is_some()),
            ("cwd", self.cwd.is_some()),
        ];
        let mut only = |keys: &[(&str, bool)], with: &str| {
            for (key, _) in keys.iter().filter(|(_, is_given)| *is_given) {
                wrong.push(format!("{key}: only with {with}"));
            }
        };
        let of_http = [("headers", self.headers.is_some())];
        match (self.command, self.url, self.socket) {
            (Some(command), None, None) => {
                only(&of_http, "url");
                let program = ServerCommand {
                    command,
                    args: self.args.unwrap_or_default(),
                    env: self.env.unwrap_or_default(),
                    pass_env: self.pass_env.unwrap_or_default(),
                    cwd: self.cwd,
                };
                check_program(&program, wrong);
                Some(MountedServer::Program(program))
            }
            (None, Some(url), socket) => {
                only(&of_programs, "command");
                let headers = self.headers.unwrap_or_default();
                let http = HttpAddress { url, headers, socket };
                check_http(&http, wrong);
                Some(MountedServer::Http(http))
            }
            (None, None, Some(socket)) => {
                only(&of_programs, "command");
                only(&of_http, "url");
                check_socket(&socket, wrong);
                Some(MountedServer::Socket(socket))
            }
            (None, None, None) => {
                wrong.push("command, url or socket: missing".to_owned());
                None
            }
            (Some(_), _, _) => {
                wrong.push("command: not together with url or socket".to_owned());
                None
            }
        }
    }

    /// Checks what holds for all texts.
    fn check_texts(&self, wrong: &mut Vec<String>) {
        let (args, pass_env) = (self.args.iter().flatten(), self.pass_env.iter().flatten());
        let (env, headers) = (self.env.iter().flatten(), self.headers.iter().flatten());
        let counts =
            [args.clone().count(), pass_env.count(), env.clone().count(), headers.clone().count()];
        if counts.into_iter().any(|count| count > WORDS_MAX) {
            wrong.push(format!("more than {WORDS_MAX} arguments, variables or headers"));
        }
        let values = env.chain(headers).map(|(_, value)| value);
        let others = self.command.iter().chain(&self.cwd).chain(&self.url).chain(&self.socket);
        if args.chain(values).chain(others).any(|text| text.contains('\0')) {
            wrong.push("a text contains the character NUL".to_owned());
        }
    }
}

/// Checks the environment and the place of a process.
fn check_program(program: &ServerCommand, wrong: &mut Vec<String>) {
    if program.command.is_empty() {
        wrong.push("command: empty".to_owned());
    }
    for (name, value) in &program.env {
        if !is_variable(name) {
            wrong.push(format!("env: `{name}` is not the name of a variable"));
        }
        check_variables(&format!("env.{name}"), value, wrong);
    }
    check_variables("command", &program.command, wrong);
    program.args.iter().for_each(|it| check_variables("args", it, wrong));
    for name in program.pass_env.iter().filter(|name| !is_variable(name)) {
        wrong.push(format!("pass_env: `{name}` is not the name of a variable"));
    }
    if let Some(cwd) = &program.cwd {
        check_variables("cwd", cwd, wrong);
        if !cwd.starts_with('/') && !cwd.starts_with("${") {
            wrong.push("cwd: must be an absolute path".to_owned());
        }
    }
}

fn check_http(http: &HttpAddress, wrong: &mut Vec<String>) {
    let has_variables = http.url.contains("${");
    if let Err(error) = expansion::check(&http.url) {
        wrong.push(format!("url: {error}"));
    } else if let Err(problem) = check_url(&http.url)
        && !has_variables
    {
        wrong.push(format!("url: {problem}"));
    }
    for (name, value) in &http.headers {
        if let Err(problem) = check_header(name) {
            wrong.push(format!("headers: `{name}` is {problem}"));
        }
        check_variables(&format!("headers.{name}"), value, wrong);
    }
    if let Some(socket) = &http.socket {
        check_socket(socket, wrong);
        if http.url.starts_with("https:") {
            wrong.push("url: with socket it must begin with http://".to_owned());
        }
    }
}

fn check_variables(key: &str, text: &str, wrong: &mut Vec<String>) {
    if let Err(error) = expansion::check(text) {
        wrong.push(format!("{key}: {error}"));
    }
}

fn check_socket(socket: &str, wrong: &mut Vec<String>) {
    if !socket.starts_with('/') || socket.len() > SOCKET_PATH_MAX {
        wrong.push(format!("socket: must be an absolute path of {SOCKET_PATH_MAX} bytes at most"));
    }
}

fn is_variable(name: &str) -> bool {
    let fine = |it: char| it.is_ascii_alphanumeric() || it == '_';
    !name.is_empty() && name.chars().all(fine) && !name.starts_with(|it: char| it.is_ascii_digit())
}
