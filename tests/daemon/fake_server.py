"""An MCP server that misbehaves as its tools are told to."""
import json, os, subprocess, sys, threading, time

mode = os.environ.get("MODE", "")
if mode == "die":
    sys.stderr.buffer.write("cannot begin \u200b\n\n".encode())
    sys.exit(3)
if mode == "silent":
    time.sleep(600)
with open(os.environ["STARTS"], "a") as starts:
    starts.write(f"{os.getpid()}\n")


def say(message):
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def note(text):
    with open(os.environ["STARTS"] + ".heard", "a") as heard:
        heard.write(text + "\n")


def tools():
    with open(os.environ["TOOLS"]) as file:
        return json.load(file)


def wind_down(id):
    time.sleep(0.3)
    note("stopped")
    say({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "cancelled"}})


CONTENT = {"resources": {}, "prompts": {}, "completions": {}}
NEWS = {"resources": {"subscribe": True, "listChanged": True}, "prompts": {"listChanged": True}}
OFFERED = {"content": CONTENT, "news": CONTENT | NEWS}.get(mode, {})


def tell(arguments):
    for _ in range(arguments.get("times", 1)):
        say({"jsonrpc": "2.0", "method": "notifications/" + arguments["what"],
             "params": {"uri": arguments.get("uri")}})


def content(method, params):
    """What it answers in the modes `content` and `news` to what is no tool."""
    if method in ("resources/subscribe", "resources/unsubscribe"):
        note(method.removeprefix("resources/") + " " + params["uri"])
        return None if params["uri"] == "missing" else {}
    if method == "resources/list" and "cursor" not in params:
        return {"resources": [{"uri": "file:///a b?c#d", "name": "one", "description": "h\u200bi"}],
                "nextCursor": "2"}
    if method == "resources/list":
        return {"resources": [{"uri": "two", "name": "two"}, {"name": "no address"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "files"}]}
    if method == "resources/read":
        note("read " + params["uri"])
        return {"contents": [{"uri": params["uri"], "text": "read\u200b " + params["uri"]}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet.me", "arguments": [{"name": "who"}]}, {"name": "twice"},
                            {"name": "twice"}]}
    if method == "prompts/get":
        text = params["name"] + " " + params["arguments"].get("who", "")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "completion/complete":
        return {"completion": {"values": [json.dumps(params["ref"], sort_keys=True)]}}


# The calls that go on until they are cancelled, and a moment longer.
slow = set()
if mode == "chatty":
    print("Server started!", flush=True)
    say({"jsonrpc": "2.0", "id": "mine", "method": "ping"})
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    params = message.get("params", {})
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "logging": {}} | OFFERED,
            "instructions": "Be\u200b kind.",
            "serverInfo": {"name": "fake", "version": "1"}}})
    elif method == "tools/list":
        listed, at = tools(), int(params.get("cursor", "0"))
        page = {"tools": listed[at:at + 3]}
        if at + 3 < len(listed):
            page["nextCursor"] = str(at + 3)
        say({"jsonrpc": "2.0", "id": id, "result": page})
    elif method == "notifications/cancelled":
        note("cancelled")
        if params["requestId"] in slow:
            slow.remove(params["requestId"])
            threading.Thread(target=wind_down, args=(params["requestId"],)).start()
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments", {})
        note(name)
        if name == "crash":
            os.abort()
        elif name == "exit":
            sys.exit(0)
        elif name == "hang":
            continue
        elif name == "slow":
            slow.add(id)
        elif name == "held":
            while not os.path.exists(os.environ["STARTS"] + ".go"):
                time.sleep(0.01)
            say({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
        elif name == "garbage":
            print("\x00{]", flush=True)
        elif name == "endless":
            try:
                while True:
                    sys.stdout.write("x" * 65536)
            except BrokenPipeError:
                os._exit(1)
        elif name == "refuse":
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "not today\x1b"}})
        elif name == "ask":
            say({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}})
            answer = json.loads(sys.stdin.readline())
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [{"type": "text", "text": str(answer["error"]["code"])}]}})
        elif name == "progress":
            token = params["_meta"]["progressToken"]
            say({"jsonrpc": "2.0", "method": "notifications/progress",
                 "params": {"progressToken": token, "progress": 1, "total": 2,
                            "message": arguments.get("message", "half")}})
            say({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
        elif name == "log":
            say({"jsonrpc": "2.0", "method": "notifications/message",
                 "params": {"level": "error", "logger": "disk", "data": {"full": True}}})
            say({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
        elif name == "changed":
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            say({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
        elif name == "tell":
            if "after" in arguments:
                threading.Timer(arguments["after"], tell, [arguments]).start()
            else:
                tell(arguments)
            say({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
        elif name == "grandchild":
            child = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [{"type": "text", "text": str(child.pid)}]}})
        elif name == "pid":
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [], "structuredContent": {"pid": os.getpid()}}})
        elif name == "long":
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [{"type": "text", "text": "x" * arguments["bytes"]}]}})
        elif name == "sees":
            try:
                seen = os.listdir(arguments["path"])
            except OSError as error:
                seen = [str(error)]
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [], "structuredContent": {"seen": seen}}})
        elif name == "environment":
            say({"jsonrpc": "2.0", "id": id, "result": {
                "content": [], "structuredContent": dict(os.environ)}})
        else:
            # Written by hand, so that its form is known.
            sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"content":[ {"type":"text",'
                             '"text":"a\u200bb"} ],"structuredContent":{"z":1.0,"a":1e2,"got":%s}}}\n'
                             % (id, json.dumps(arguments)))
            sys.stdout.flush()
    elif OFFERED and (result := content(method, params)) is not None:
        say({"jsonrpc": "2.0", "id": id, "result": result})
    elif id is not None and method:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
