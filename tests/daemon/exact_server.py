"""An MCP server that keeps each line that it gets, and says what its files say, byte by byte.

python3 exact_server.py DIRECTORY [newer]

The file `tools.call` is the rest of its answer to `tools/call`, and so on: `"result":{}` or `"error":{}`. With
`tools.call.asks` it asks that before it answers: in the older era, the parameters of an elicitation. With
`tools.call.tells` it writes these lines before, with the token of the call for TOKEN.
"""
import json, os, sys

directory, newer = sys.argv[1], "newer" in sys.argv
KNOWN = {
    "initialize": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "exact", "version": "1"},
                   "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}},
    "server/discover": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}},
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"resultType": "complete", "content": []},
    "prompts/list": {"prompts": [{"name": "greet"}]},
    "prompts/get": {"messages": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "completion/complete": {"completion": {"values": ["done"]}},
}


def said(name):
    try:
        with open(os.path.join(directory, name), newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(id, rest):
    sys.stdout.write('{"jsonrpc":"2.0","id":%s,%s}\n' % (id, rest))
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with open(os.path.join(directory, "heard"), "a") as heard:
        heard.write(line)
    return json.loads(line)


while True:
    message = read()
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method not in KNOWN or (newer and method == "initialize"):
        write(id, '"error":{"code":-32601,"message":"unknown"}')
        continue
    name = method.replace("/", ".")
    tells = said(name + ".tells")
    if tells:
        token = message["params"].get("_meta", {}).get("progressToken")
        sys.stdout.write(tells.replace("TOKEN", json.dumps(token)))
    asks = said(name + ".asks")
    if asks and newer and "inputResponses" not in message["params"]:
        write(id, '"result":{"resultType":"input_required","inputRequests":{"q":'
                  '{"method":"elicitation/create","params":%s}}}' % asks)
        continue
    if asks and not newer:
        write('"mine"', '"method":"elicitation/create","params":%s' % asks)
        read()
    write(id, said(name) or '"result":' + json.dumps(KNOWN[method]))
