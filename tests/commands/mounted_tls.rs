//! Servers behind TLS: a certificate counts if the system's authorities, or those of the user, signed it for that name.

use std::fs;
use std::process::Command;

use crate::commands::blocking::{ready, until};
use crate::harness::home::Home;

/// Answers behind each certificate, and writes the ports into a file.
const SERVER: &str = r#"
import json, ssl, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Http(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass
    def do_GET(self):
        self.send_error(405)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "tools": [{"name": "ask", "inputSchema": {"type": "object"}}],
                  "content": [{"type": "text", "text": "behind TLS"}]}
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
        body = json.dumps(answer).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ports = []
for name in sys.argv[2:]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(name + ".pem", name + ".key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    ports.append(str(server.server_port))
    threading.Thread(target=server.serve_forever).start()
with open(sys.argv[1], "w") as file:
    file.write(" ".join(ports) + "\n")
"#;

/// Makes an authority and certificates: of it for this machine, of it for another name, and of another authority.
const CERTIFICATES: &str = r#"
set -e
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() { key "$1"; openssl req -x509 -new -key "$1.key" -days 2 -subj "/CN=$1" -out "$1.pem"; }
certificate() {
    key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    echo "subjectAltName=$2" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem"
}
authority known
authority unknown
certificate good IP:127.0.0.1 known
certificate other DNS:other.example known
certificate forged IP:127.0.0.1 unknown
"#;

#[test]
fn a_server_is_reached_only_behind_a_certificate_of_its_name_by_a_known_authority() {
    let home = Home::new();
    home.configure("allow_write = true\n");
    let made = Command::new("sh").args(["-c", CERTIFICATES]).current_dir(home.ground()).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (script, ports) = (home.path("server.py"), home.path("ports"));
    fs::write(&script, SERVER).unwrap();
    let mut server = home.command("python3");
    server.arg(&script).arg(&ports).args(["good", "other", "forged"]).current_dir(home.ground());
    let mut server = server.spawn().unwrap();
    let read = || fs::read_to_string(&ports).unwrap_or_default();
    until("the ports", || read().ends_with('\n'));
    for (mount, port) in ["good", "other", "forged"].iter().zip(read().split_whitespace()) {
        let added = home.run(&format!("mounts add {mount} --url https://127.0.0.1:{port}/mcp"));
        assert!(added.status.success(), "{added:?}");
    }
    let mut serve = home.termgate("serve");
    serve.env("SSL_CERT_FILE", home.path("known.pem"));
    let _daemon = ready(home.start(serve));
    until("its tools to be known", || home.printed("mounts tools good").contains("ask"));
    assert_eq!(home.printed("call good__ask"), "behind TLS\n");
    for (mount, why) in [("other", "not valid for name"), ("forged", "UnknownIssuer")] {
        let problem = || {
            let mounts = home.envelope("mounts")["data"]["mounts"].take();
            let of_mount = mounts.as_array().unwrap().iter().find(|it| it["name"] == mount);
            of_mount.unwrap()["problem"].to_string()
        };
        until(&format!("{mount} to fail"), || problem() != "null");
        assert!(problem().contains(why), "{}", problem());
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
