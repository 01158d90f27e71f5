"""An MCP server that asks its clients as its tools are told to.

python3 asking_server.py DIRECTORY lines | http
"""
import itertools, json, os, queue, sys, threading, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

directory, kind = sys.argv[1], sys.argv[2]
TOOLS = ["ask", "hang", "echo", "take_back", "tell", "refuse"]
numbers = itertools.count(1)
# Of each open question, what to do with its answer.
waiting, lock = {}, threading.RLock()
own_messages = queue.Queue()


def note(text):
    with lock, open(os.path.join(directory, "heard"), "a") as heard:
        heard.write(text + "\n")


def encoded(message, **how):
    """The bytes of a message: not of UTF-8 for LATIN1, and no JSON for NAN."""
    written = json.dumps(message, **how).encode()
    return written.replace(b"LATIN1", "\u00e9".encode("latin-1")).replace(b'"NAN"', b"NaN")


def result(id, result):
    return {"jsonrpc": "2.0", "id": id, "result": result}


def known(message):
    """What is answered at once; None for other messages."""
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        note("initialize " + json.dumps(params["capabilities"], sort_keys=True))
        return result(id, {"protocolVersion": "2025-11-25",
                           "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
                           "serverInfo": {"name": "asking", "version": "1"}})
    if method == "tools/list":
        return result(id, {"tools": [{"name": name, "inputSchema": {"type": "object"}}
                                     for name in TOOLS]})
    if method == "prompts/list":
        return result(id, {"prompts": [{"name": "asks"}]})
    if method == "tools/call" and params["name"] == "echo":
        return result(id, {"content": []})
    if method == "tools/call" and params["name"] == "refuse":
        error = params["arguments"]["error"]
        error["message"] *= params["arguments"].get("times", 1)
        return {"jsonrpc": "2.0", "id": id, "error": error}
    return None


def asked(message):
    """The questions of a request, if it asks."""
    method, params = message.get("method"), message.get("params", {})
    arguments = params.get("arguments", {})
    form = {"method": "elicitation/create", "params": {
        "message": method, "requestedSchema": {"type": "object", "properties": {}}}}
    if method == "tools/call" and params["name"] == "ask":
        return arguments["questions"]
    if method in ("resources/read", "prompts/get"):
        return [form]
    return None


def answered(message, answers):
    """The answer to a request whose questions were answered."""
    text = json.dumps(answers)
    if message["method"] == "resources/read":
        return result(message["id"], {"contents": [{"uri": message["params"]["uri"], "text": text}]})
    if message["method"] == "prompts/get":
        content = {"type": "text", "text": text}
        return result(message["id"], {"messages": [{"role": "user", "content": content}]})
    return result(message["id"], {"content": [], "structuredContent": {"answers": answers}})


def ask(message, questions, say, finish):
    """Asks all at once, and answers when all are answered."""
    answers, left = [None] * len(questions), len(questions)

    def on_answer(at, answer):
        nonlocal left
        answers[at] = answer
        left -= 1
        if left == 0:
            finish(answered(message, answers))

    for at, question in enumerate(questions):
        id = question.pop("id", None) or f"q{next(numbers)}"
        with lock:
            waiting[id] = lambda answer, at=at: on_answer(at, answer)
        note(f"asks {id}")
        say({"jsonrpc": "2.0", "id": id} | question)


def on_answer(message):
    note("answer " + json.dumps(message, sort_keys=True))
    with lock:
        answer = waiting.pop(message["id"], None)
        if answer:
            answer({name: message[name] for name in ("result", "error") if name in message})


def taken_back():
    """The message that takes back all questions."""
    with lock:
        ids = list(waiting)
        waiting.clear()
    return [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
            for id in ids]


def news():
    """The question that follows the news of roots at once."""
    return {"jsonrpc": "2.0", "id": f"news {next(numbers)}", "method": "roots/list"}


def told(arguments):
    """The notifications that the tool `tell` is called with."""
    message = {"jsonrpc": "2.0", "method": arguments["method"], "params": arguments["params"]}
    return [message] * arguments.get("times", 1)


def lines():
    def say(message):
        with lock:
            sys.stdout.buffer.write(encoded(message, ensure_ascii=False) + b"\n")
            sys.stdout.buffer.flush()

    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        answer, questions = known(message), asked(message)
        if answer:
            say(answer)
        elif questions is not None:
            ask(message, questions, say, say)
        elif method is None:
            on_answer(message)
        elif method == "notifications/initialized":
            say({"jsonrpc": "2.0", "id": "early", "method": "roots/list"})
        elif method == "notifications/cancelled":
            note(f"cancelled {message['params']['requestId']}")
        elif method == "notifications/roots/list_changed":
            note("roots changed")
            say(news())
        elif method == "tools/call" and message["params"]["name"] == "take_back":
            for cancel in taken_back():
                say(cancel)
            say(result(id, {"content": []}))
        elif method == "tools/call" and message["params"]["name"] == "tell":
            for notification in told(message["params"]["arguments"]):
                say(notification)
            say(result(id, {"content": []}))
        elif method == "tools/call":
            note(message["params"]["name"])
        elif id is not None:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def plain(self, status, message=None, headers=()):
        body = b"" if message is None else encoded(message)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, message):
        part = b"data: %s\n\n" % encoded(message)
        with lock:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()

    def do_GET(self):
        note("listening")
        self.stream()
        while True:
            self.event(own_messages.get())

    def do_DELETE(self):
        self.plain(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = message.get("method"), message.get("params", {})
        answer, questions = known(message), asked(message)
        if method == "initialize":
            return self.plain(200, answer, [("Mcp-Session-Id", str(uuid.uuid4()))])
        if answer:
            return self.plain(200, answer)
        if method is None:
            self.plain(202)
            return on_answer(message)
        if method == "notifications/cancelled":
            note(f"cancelled {params['requestId']}")
        if method == "notifications/roots/list_changed":
            note("roots changed")
            own_messages.put(news())
        if "id" not in message:
            return self.plain(202)
        if method not in ("tools/call", "resources/read", "prompts/get"):
            refused = {"code": -32601, "message": "unknown"}
            return self.plain(200, {"jsonrpc": "2.0", "id": message["id"], "error": refused})
        self.stream()
        done = queue.Queue()
        if questions is None and params["name"] == "take_back":
            for cancel in taken_back():
                self.event(cancel)
            done.put(result(message["id"], {"content": []}))
        elif questions is None and params["name"] == "tell":
            tell = self.event if params["arguments"].get("within") else own_messages.put
            for notification in told(params["arguments"]):
                tell(notification)
            done.put(result(message["id"], {"content": []}))
        elif questions is None:
            note(params["name"])
        else:
            is_own = params.get("arguments", {}).get("own", False)
            ask(message, questions, own_messages.put if is_own else self.event, done.put)
        self.event(done.get())
        self.wfile.write(b"0\r\n\r\n")


if kind == "lines":
    lines()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    with open(os.path.join(directory, "ready.new"), "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(os.path.join(directory, "ready.new"), os.path.join(directory, "ready"))
    server.serve_forever()
