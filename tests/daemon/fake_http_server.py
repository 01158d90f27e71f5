"""An MCP server behind a socket that misbehaves as its tools are told to.

python3 fake_http_server.py DIRECTORY http PORT | http-unix | lines
"""
import json, os, queue, socket, socketserver, sys, threading, time, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

directory, kind = sys.argv[1], sys.argv[2]
sessions, own_messages = set(), queue.Queue()
TOOLS = ["echo", "progress", "hang", "garbage", "endless", "refuse", "unavailable", "forget",
         "crash", "drop", "polled", "changed", "headers", "moved", "long"]
# How many long answers were read half way, and not to their end, at the same time; and the most that were.
halves, most_halves, halves_lock = 0, 0, threading.Lock()


def note(text):
    with open(os.path.join(directory, "heard"), "a") as heard:
        heard.write(text + "\n")


def ready(text):
    with open(os.path.join(directory, "ready.new"), "w") as file:
        file.write(text)
    os.rename(os.path.join(directory, "ready.new"), os.path.join(directory, "ready"))


def result(id, result):
    return {"jsonrpc": "2.0", "id": id, "result": result}


def text(id, text):
    return result(id, {"content": [{"type": "text", "text": text}]})


def answer(message):
    """What every kind answers alike; None for a tool of its own."""
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        return result(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "fake", "version": "1"}})
    if method == "tools/list":
        return result(id, {"tools": [{"name": name, "inputSchema": {"type": "object"}}
                                     for name in TOOLS]})
    if method == "tools/call" and message["params"]["name"] == "echo":
        return text(id, json.dumps(message["params"]["arguments"]))
    return None


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def address_string(self):
        return "somebody"

    def plain(self, status, body=b"", type="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answered(self, message, headers=()):
        self.plain(200, json.dumps(message, indent=1).encode(), headers=headers)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, part):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.flush()

    def event(self, message, id=None):
        head = f"id: {id}\n" if id else ""
        self.chunk(f"{head}data: {json.dumps(message)}\n\n".encode())

    def end(self):
        self.chunk(b"")

    def until_closed(self):
        """Waits until the client closes the connection."""
        try:
            if self.connection.recv(1) == b"":
                note("closed")
        except OSError:
            note("closed")
        self.close_connection = True

    def knows_session(self):
        if self.headers.get("Mcp-Session-Id") in sessions:
            return True
        self.plain(404)
        return False

    def do_DELETE(self):
        if self.knows_session():
            sessions.discard(self.headers["Mcp-Session-Id"])
            note("delete")
            self.plain(204)

    def do_GET(self):
        if not self.knows_session():
            return
        last = self.headers.get("Last-Event-ID")
        if last and last.startswith("polled-"):
            self.stream()
            self.event(text(int(last.removeprefix("polled-")), "polled"))
            return self.end()
        if kind == "http-unix":
            return self.plain(405)
        note("listening")
        self.stream()
        self.event(own_messages.get())
        self.end()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        method, id = message.get("method"), message.get("id")
        if os.path.exists(os.path.join(directory, "closed")):
            return self.plain(401, b"no")
        if self.path == "/old":
            return self.plain(307, headers=[("Location", "/mcp")])
        if self.path == "/away":
            return self.plain(307, headers=[("Location", "http://127.0.0.2:1/mcp")])
        if method == "initialize":
            note("initialize")
            session = str(uuid.uuid4())
            sessions.add(session)
            return self.answered(answer(message), [("Mcp-Session-Id", session)])
        if not self.knows_session():
            return
        if self.headers.get("MCP-Protocol-Version") != "2025-06-18":
            return self.plain(400)
        if id is None or method is None:
            note(method or "answer")
            return self.plain(202)
        known = answer(message)
        if known:
            return self.answered(known)
        self.call(id, message["params"])

    def long(self, id, is_stream):
        """Answers 4 MiB, half of which is more than all buffers on the way have."""
        global halves, most_halves
        whole = json.dumps(text(id, "x" * 4 * 1024 * 1024)).encode()
        if is_stream:
            self.stream()
            write, whole = self.chunk, b"data: %s\n\n" % whole
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            write = self.wfile.write
        half = len(whole) // 2
        write(whole[:half])
        with halves_lock:
            halves += 1
            most_halves = max(most_halves, halves)
            note(f"most halves {most_halves}")
        time.sleep(0.3)
        write(whole[half:])
        with halves_lock:
            halves -= 1
        if is_stream:
            self.end()

    def call(self, id, params):
        name = params["name"]
        note(name)
        if name == "progress":
            self.stream()
            self.chunk(b": hello\r\n\r\n")
            token = params["_meta"]["progressToken"]
            self.event({"jsonrpc": "2.0", "id": "mine", "method": "ping"})
            self.event({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": 1, "message": "half"}})
            self.event(text(id, "done"))
            # A client does not wait for the end of the stream.
            self.until_closed()
        elif name == "hang":
            self.until_closed()
        elif name == "garbage":
            self.plain(200, b"\0{]")
        elif name == "endless":
            self.stream()
            try:
                while True:
                    self.chunk(b"x" * 65536)
            except OSError:
                self.close_connection = True
        elif name == "refuse":
            self.plain(401, b"no")
        elif name == "unavailable":
            self.plain(503)
        elif name == "forget":
            sessions.clear()
            self.plain(404)
        elif name == "crash":
            os._exit(1)
        elif name == "drop":
            self.stream()
            self.end()
        elif name == "polled":
            self.stream()
            self.chunk(f"retry: 100\nid: polled-{id}\ndata:\n\n".encode())
            self.end()
        elif name == "changed":
            TOOLS.append("new")
            own_messages.put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            self.answered(result(id, {"content": []}))
        elif name == "headers":
            self.answered(result(id, {"content": [], "structuredContent": dict(self.headers)}))
        elif name == "long":
            self.long(id, params["arguments"].get("stream"))
        else:
            self.plain(307, headers=[("Location", "http://127.0.0.2:1/mcp")])


class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        note("connected")
        for line in self.rfile:
            message = json.loads(line)
            known = answer(message)
            if known:
                self.wfile.write(json.dumps(known).encode() + b"\n")
            elif message.get("method") == "tools/call":
                note(message["params"]["name"])
                return
            elif message.get("id") is not None:
                error = {"code": -32601, "message": "unknown"}
                refused = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                self.wfile.write(json.dumps(refused).encode() + b"\n")


class UnixHttp(ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    # How many may connect before they are let in: fewer than call at a time.
    request_queue_size = 5

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)


class UnixLines(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


if kind == "http":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Http)
    ready(str(server.server_address[1]))
else:
    path = os.path.join(directory, "socket")
    if os.path.exists(path):
        os.unlink(path)
    server = UnixHttp(path, Http) if kind == "http-unix" else UnixLines(path, Lines)
    ready(path)
server.serve_forever()
