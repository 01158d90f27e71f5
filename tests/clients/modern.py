"""The story over the SDK of the era without `initialize` (`mcp` 2.x, protocol 2026-07-28)."""

import contextlib
import json
from dataclasses import dataclass

from mcp import Client, MCPError, StdioServerParameters
from mcp_types import Implementation, ResourceTemplateReference

from harness import run
from scenario import alone, scenario

CALL_SECONDS = 40


@dataclass
class Result:
    failed: bool
    data: dict


class Updates:
    """The URIs of updates, in the order in which they came."""

    def __init__(self, events) -> None:
        self.events = aiter(events)

    async def next(self) -> str:
        event = await anext(self.events)
        return event.uri


class Connection:
    name = "modern-client"

    def __init__(self, client: Client) -> None:
        self.client = client

    @property
    def protocol(self) -> str:
        return self.client.protocol_version

    async def tools(self) -> dict[str, bool]:
        listed = await self.client.list_tools()
        return {tool.name: bool(tool.annotations and tool.annotations.read_only_hint) for tool in listed.tools}

    async def call(self, tool: str, **arguments) -> Result:
        result = await self.client.call_tool(tool, arguments)
        return Result(result.is_error, result.structured_content or {})

    async def rejects(self, tool: str) -> bool:
        try:
            await self.client.call_tool(tool, {})
        except MCPError:
            return True
        return False

    async def read(self, uri: str) -> dict:
        return json.loads(await self.text(uri))

    async def text(self, uri: str) -> str:
        result = await self.client.read_resource(uri, cache_mode="bypass")
        return result.contents[0].text

    async def prompts(self) -> list[str]:
        listed = await self.client.list_prompts()
        return [prompt.name for prompt in listed.prompts]

    async def prompt(self, name: str, **arguments: str) -> str:
        told = await self.client.get_prompt(name, arguments)
        return "\n".join(message.content.text for message in told.messages)

    async def templates(self) -> list[str]:
        listed = await self.client.list_resource_templates()
        return [template.uri_template for template in listed.resource_templates]

    async def complete(self, template: str, name: str, value: str) -> list[str]:
        reference = ResourceTemplateReference(type="ref/resource", uri=template)
        result = await self.client.complete(reference, {"name": name, "value": value})
        return result.completion.values

    @contextlib.asynccontextmanager
    async def updates(self, uri: str):
        async with self.client.listen(resource_subscriptions=[uri]) as events:
            yield Updates(events)


@contextlib.asynccontextmanager
async def connect(command: list[str]):
    server = StdioServerParameters(command=command[0], args=command[1:])
    info = Implementation(name=Connection.name, version="1")
    async with Client(server, read_timeout_seconds=CALL_SECONDS, client_info=info) as client:
        yield Connection(client)


async def story(doors, connect, checks) -> None:
    async with connect(doors.gateway) as connection:
        checks.equal("the era is the newest", connection.protocol, "2026-07-28")
    await scenario(doors, connect, checks)


if __name__ == "__main__":
    run("modern", connect, story, alone)
