"""An MCP server that speaks 2026-07-28, and older ones that do not know what to make of it.

python3 fake_newer_server.py DIRECTORY lines KIND | http

KIND is what it does with the greetings: newer, late, deaf or dying.
"""
import json, os, queue, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

directory, way = sys.argv[1], sys.argv[2]
kind = sys.argv[3] if way == "lines" else "newer"
P = "io.modelcontextprotocol/"
TOOLS = ["echo", "hang", "tell", "drop", "ask", "changed", "params", "task", "maybe", "log", "headers"]
# The subscriptions by the ids of their requests: what each wants to be told, and where.
open_subscriptions, lock = {}, threading.RLock()
# What is left of each task: its states, one after the other.
tasks = {}


def note(text):
    with lock, open(os.path.join(directory, "heard"), "a") as heard:
        heard.write(text + "\n")


def result(id, result):
    return {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"} | result}


def error(id, code, message):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def tell(method, params, wants):
    with lock:
        for id, (filter, say) in open_subscriptions.items():
            if wants(filter):
                meta = {"_meta": {P + "subscriptionId": id}}
                say({"jsonrpc": "2.0", "method": "notifications/" + method, "params": params | meta})


def tell_list(what):
    tell(what + "/list_changed", {}, lambda filter: filter.get(what + "ListChanged"))


def listen(id, filter, say):
    note("listen " + json.dumps(filter, sort_keys=True))
    with lock:
        open_subscriptions[id] = (filter, say)
        uris = [uri for uri in filter.get("resourceSubscriptions", []) if uri != "unknown"]
        told = filter | ({"resourceSubscriptions": uris} if "resourceSubscriptions" in filter else {})
        say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
             "params": {"notifications": told, "_meta": {P + "subscriptionId": id}}})


def leave(id):
    with lock:
        if open_subscriptions.pop(id, None):
            note("left")


def ask(id, params, how):
    """Asks the questions of one round after the other. All that it knows of the call is in the state."""
    before = params.get("requestState")
    state = json.loads(before or '{"round": 0, "answers": []}')
    responses = params.get("inputResponses")
    if responses is not None:
        note("answers " + json.dumps(responses, sort_keys=True))
        state["answers"].append(responses)
    rounds, at = how["rounds"], state["round"]
    if how.get("for ever"):
        rounds = rounds * (at + 1)
    if how.get("stateless"):
        at = 0 if responses is None else len(rounds)
    if at < len(rounds):
        asked = {"resultType": "input_required"} | rounds[at]
        if not how.get("stateless"):
            asked["requestState"] = json.dumps(state | {"round": at + 1})
        return result(id, asked)
    meta = {"token": params["_meta"].get("progressToken"), "state": before is not None}
    return result(id, {"content": [], "structuredContent": {"answers": state["answers"]} | meta})


def state(task, step):
    """A task as it is in this state."""
    time = {"createdAt": "2026-07-28T10:00:00Z", "lastUpdatedAt": "2026-07-28T10:00:00Z"}
    return {"taskId": task, "ttlMs": None, "pollIntervalMs": 100} | time | step


def begin_task(id, steps):
    task = f"task {len(tasks)}"
    tasks[task] = steps
    return result(id, {"resultType": "task"} | state(task, {"status": "working"}))


def of_task(method, id, params):
    """The answer to a request about a task; None if there is none, and an empty one if it gets lost."""
    note(method)
    steps = tasks[params["taskId"]]
    if method == "tasks/cancel":
        return result(id, {})
    step = steps[0]
    if method == "tasks/update":
        note("answers " + json.dumps(params["inputResponses"], sort_keys=True))
        steps.pop(0)
        return result(id, {})
    if step.get("die"):
        os._exit(1)
    if step.get("silent"):
        return None
    if len(steps) > 1 and (step["status"] != "input_required" or step.get("moves")):
        steps.pop(0)
    return "" if step.get("lose") else result(id, state(params["taskId"], step))


def questions_of(method):
    """What resources and prompts ask before they are answered."""
    return {"rounds": [{"inputRequests": {"who": {"method": "elicitation/create", "params": {
        "message": method, "requestedSchema": {"type": "object", "properties": {}}}}}}]}


def call(id, params):
    """The answer of a tool; None if there is none."""
    name, arguments = params["name"], params.get("arguments", {})
    note(name)
    if name == "hang":
        return None
    if name == "tell":
        uri = arguments.get("uri")
        if uri:
            tell("resources/updated", {"uri": uri},
                 lambda filter: uri in filter.get("resourceSubscriptions", []))
        else:
            tell_list(arguments["what"])
    elif name == "changed":
        TOOLS.append("new")
        tell_list("tools")
    elif name == "drop":
        with lock:
            for id_of, (_, say) in list(open_subscriptions.items()):
                del open_subscriptions[id_of]
                say(result(id_of, {}))
    elif name == "ask":
        return ask(id, params, arguments)
    elif name == "task":
        return begin_task(id, arguments["steps"])
    elif name == "params":
        return result(id, {"content": [], "structuredContent": {"params": params}})
    return result(id, {"content": [{"type": "text", "text": "done"}]})


def answer(message, say):
    method, id, params = message["method"], message.get("id"), message.get("params", {})
    meta = params.get("_meta", {})
    if method == "initialize":
        return error(id, -32022, "unsupported")
    if meta.get(P + "protocolVersion") != "2026-07-28" or P + "clientCapabilities" not in meta:
        return error(id, -32602, "not of the newer era")
    if method == "server/discover":
        note("discover")
        told = {"listChanged": True}
        return result(id, {"supportedVersions": ["2026-07-28"], "instructions": "Be kind.",
                           "capabilities": {"tools": told, "prompts": told,
                                            "resources": told | {"subscribe": True}}})
    if method == "tools/list":
        region = {"region": {"type": "string", "x-mcp-header": "Region"}}
        schemas = {"headers": {"type": "object", "properties": region}}
        return result(id, {"tools": [{"name": name, "inputSchema": schemas.get(name, {"type": "object"})}
                                     for name in TOOLS]})
    if method == "resources/list":
        return result(id, {"resources": [{"uri": "one", "name": "one"}]})
    if method in ("tasks/get", "tasks/update", "tasks/cancel"):
        return of_task(method, id, params)
    if params.get("uri") == "task":
        return begin_task(id, [{"status": "working"}])
    if params.get("uri") == "asks" or params.get("name") == "asks":
        said = ask(id, params, questions_of(method))
        if "structuredContent" not in said["result"]:
            return said
        text = json.dumps(said["result"]["structuredContent"])
        if method == "resources/read":
            return result(id, {"contents": [{"uri": params["uri"], "text": text}]})
        content = {"type": "text", "text": text}
        return result(id, {"messages": [{"role": "user", "content": content}]})
    if method == "resources/read":
        return result(id, {"contents": [{"uri": params["uri"], "text": "read"}]})
    if method == "prompts/list":
        return result(id, {"prompts": [{"name": "greet"}, {"name": "asks"}]})
    if method == "prompts/get":
        text = {"role": "user", "content": {"type": "text", "text": "hello"}}
        return result(id, {"messages": [text]})
    if method == "subscriptions/listen":
        return listen(id, params["notifications"], say)
    if method == "tools/call" and params["name"] == "echo":
        # Written by hand, so that its form is known.
        return ('{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[],'
                '"structuredContent":{"z":1.0,"a":1e2}}}' % id)
    if method == "tools/call" and params["name"] == "log" and meta.get(P + "logLevel") == "info":
        say({"jsonrpc": "2.0", "method": "notifications/message",
             "params": {"level": "warning", "logger": "db", "data": "full"}})
    if method == "tools/call":
        return call(id, params)
    return error(id, -32601, "unknown")


def text_of(message):
    return message if isinstance(message, str) else json.dumps(message)


def say_line(message):
    with lock:
        print(text_of(message), flush=True)


def older(message):
    """What a server of both eras answers once it got the older greeting."""
    method, id = message["method"], message.get("id")
    if method == "initialize":
        note("initialize")
        return {"jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"}}}
    if method == "tools/list":
        return {"jsonrpc": "2.0", "id": id, "result": {
            "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}
    if method == "tools/call":
        return {"jsonrpc": "2.0", "id": id, "result": {
            "content": [], "structuredContent": {"era": "older"}}}


def lines():
    is_older = False
    for line in sys.stdin:
        message = json.loads(line)
        method = message["method"]
        if kind == "both" and method == "initialize":
            is_older = True
        if is_older:
            said = older(message)
        elif method == "notifications/cancelled":
            id = message["params"]["requestId"]
            note("cancelled")
            leave(id)
            continue
        elif kind == "neither":
            if method == "server/discover":
                note("discover")
            said = error(message["id"], -1, "no " + method)
        else:
            said = answer(message, say_line)
        if said:
            say_line(said)


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def plain(self, status, message=None):
        body = text_of(message).encode() if message else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, message):
        part = f"data: {text_of(message)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.flush()

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def until_closed(self):
        try:
            self.connection.recv(1)
        except OSError:
            pass
        self.close_connection = True

    def do_GET(self):
        note("GET")
        self.plain(405)

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            note(method)
            return self.plain(202)
        wanted = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
                  "Mcp-Session-Id": None}
        if method in ("tools/call", "prompts/get", "resources/read"):
            wanted["Mcp-Name"] = params.get("name", params.get("uri"))
        if method.startswith("tasks/"):
            wanted["Mcp-Name"] = params["taskId"]
        if method == "initialize" or any(self.headers.get(k) != v for k, v in wanted.items()):
            return self.plain(400, error(message["id"], -32020, "the headers are wrong"))
        if method == "subscriptions/listen":
            self.stream()
            answer(message, self.event)
            self.until_closed()
            return leave(message["id"])
        if method == "tools/call" and params["name"] == "log":
            self.stream()
            self.event(answer(message, self.event))
            self.wfile.write(b"0\r\n\r\n")
            return
        if method == "tools/call":
            region = params.get("arguments", {}).get("region")
            if self.headers.get("Mcp-Param-Region") != region:
                return self.plain(400, error(message["id"], -32020, "the headers are wrong"))
        said = answer(message, None)
        if said == "":
            return self.plain(503)
        if said:
            return self.plain(200, said)
        self.until_closed()
        note("closed")


if way == "lines":
    lines()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    with open(os.path.join(directory, "ready.new"), "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(os.path.join(directory, "ready.new"), os.path.join(directory, "ready"))
    server.serve_forever()
