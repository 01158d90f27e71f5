"""A server of the SDK that speaks both eras: python newer_server.py stdio | http PORT"""

import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("newer", instructions="Be kind.")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


class Name(BaseModel):
    name: str


@server.tool()
async def who(context: Context) -> str:
    """Asks in the way of the older era."""
    answer = await context.elicit("Who are you?", Name)
    return answer.data.name


@server.resource("count://now")
def count() -> str:
    return "42"


@server.prompt()
def greet(who: str) -> str:
    return f"Hello, {who}"


if sys.argv[1] == "stdio":
    server.run()
else:
    server.run("streamable-http", port=int(sys.argv[2]))
