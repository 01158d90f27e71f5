"""An MCP server whose answers have addresses of resources."""
import json, sys

OWN = "file:///a b?c#d"
LINK = '{"type": "resource_link", "uri": "%s", "name": "n", "size": 7}' % OWN
EMBEDDED = '{"type": "resource", "resource": {"uri": "%s", "text": "t\u200b"}}' % OWN
TEXT = '{"type": "text", "text": "%s"}' % OWN
STRUCTURED = '{"content": [%s], "n": 123456789012345678901234567890}' % LINK


def result(method, params):
    """What it answers, written by hand, so that its form is known."""
    if method == "initialize":
        return json.dumps({"protocolVersion": "2025-11-25", "serverInfo": {"name": "l", "version": "1"},
                           "capabilities": {"tools": {}, "resources": {}, "prompts": {}}})
    if method == "tools/list":
        return json.dumps({"tools": [{"name": "links", "inputSchema": {"type": "object"}}]})
    if method == "tools/call":
        content = ", ".join([TEXT, LINK, EMBEDDED])
        return '{"structuredContent": %s, "content": [%s]}' % (STRUCTURED, content)
    if method == "prompts/list":
        return json.dumps({"prompts": [{"name": "links"}]})
    if method == "prompts/get":
        messages = ['{"role": "user", "content": %s}' % part for part in [TEXT, LINK, EMBEDDED]]
        return '{"messages": [%s]}' % ", ".join(messages)
    if method == "resources/read":
        read = json.dumps({"uri": params["uri"], "text": "read " + params["uri"]})
        return '{"contents": [%s]}' % read


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = result(message["method"], message.get("params", {}))
    kind, answer = ("result", answer) if answer else ("error", '{"code": -32601, "message": "?"}')
    print('{"jsonrpc": "2.0", "id": %d, "%s": %s}' % (message["id"], kind, answer), flush=True)
