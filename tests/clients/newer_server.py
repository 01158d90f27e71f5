"""A server of the SDK of the newer era: python newer_server.py stdio | http PORT"""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("newer", instructions="Be kind.")
counts = {"count": 0}


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def step(context: Context) -> str:
    """Changes the resource, and tells so."""
    counts["count"] += 1
    await context.notify_resource_updated("count://now")
    return "done"


@server.tool()
async def tell(context: Context) -> str:
    await context.notify_prompts_changed()
    return "done"


@server.resource("count://now")
def count() -> str:
    return str(counts["count"])


@server.prompt()
def greet(who: str) -> str:
    return f"Hello, {who}"


if sys.argv[1] == "stdio":
    server.run()
else:
    server.run("streamable-http", port=int(sys.argv[2]))
