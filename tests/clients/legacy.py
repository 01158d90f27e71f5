"""The story over the SDK of the `initialize` era (`mcp` 1.x, protocol 2025-11-25)."""

import contextlib
import json
from dataclasses import dataclass
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from harness import run
from scenario import alone, scenario

CALL_SECONDS = 40


@dataclass
class Result:
    failed: bool
    data: dict


class Updates:
    """The URIs of updates, in the order in which they came."""

    def __init__(self, uris) -> None:
        self.uris = uris

    async def next(self) -> str:
        return await self.uris.receive()


class Connection:
    name = "legacy-client"

    def __init__(self, session: ClientSession, uris, protocol: str) -> None:
        self.session = session
        self.uris = uris
        self.protocol = protocol

    async def tools(self) -> dict[str, bool]:
        listed = await self.session.list_tools()
        return {tool.name: bool(tool.annotations and tool.annotations.readOnlyHint) for tool in listed.tools}

    async def call(self, tool: str, **arguments) -> Result:
        result = await self.session.call_tool(tool, arguments)
        return Result(result.isError, result.structuredContent or {})

    async def rejects(self, tool: str) -> bool:
        try:
            await self.session.call_tool(tool, {})
        except McpError:
            return True
        return False

    async def read(self, uri: str) -> dict:
        return json.loads(await self.text(uri))

    async def text(self, uri: str) -> str:
        result = await self.session.read_resource(uri)
        return result.contents[0].text

    async def prompts(self) -> list[str]:
        listed = await self.session.list_prompts()
        return [prompt.name for prompt in listed.prompts]

    async def prompt(self, name: str, **arguments: str) -> str:
        told = await self.session.get_prompt(name, arguments)
        return "\n".join(message.content.text for message in told.messages)

    async def templates(self) -> list[str]:
        listed = await self.session.list_resource_templates()
        return [template.uriTemplate for template in listed.resourceTemplates]

    async def complete(self, template: str, name: str, value: str) -> list[str]:
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
        result = await self.session.complete(reference, {"name": name, "value": value})
        return result.completion.values

    @contextlib.asynccontextmanager
    async def updates(self, uri: str):
        await self.session.subscribe_resource(uri)
        try:
            yield Updates(self.uris)
        finally:
            await self.session.unsubscribe_resource(uri)


@contextlib.asynccontextmanager
async def connect(command: list[str]):
    # Room for far more updates than one story has, so that the reader never waits for us.
    uris_in, uris_out = anyio.create_memory_object_stream(10_000)

    async def on_message(message) -> None:
        if isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ResourceUpdatedNotification):
                await uris_in.send(str(message.root.params.uri))

    server = StdioServerParameters(command=command[0], args=command[1:])
    info = types.Implementation(name=Connection.name, version="1")
    left = False
    try:
        async with (
            stdio_client(server) as (reader, writer),
            ClientSession(
                reader,
                writer,
                read_timeout_seconds=timedelta(seconds=CALL_SECONDS),
                message_handler=on_message,
                client_info=info,
            ) as session,
        ):
            answer = await session.initialize()
            yield Connection(session, uris_out, answer.protocolVersion)
            left = True
    except* anyio.BrokenResourceError:
        # The SDK's reader fails when the server still notifies while the client leaves
        # (github.com/modelcontextprotocol/python-sdk/issues/1960).
        if not left:
            raise


async def story(doors, connect, checks) -> None:
    async with connect(doors.gateway) as connection:
        checks.equal("the era is the one before", connection.protocol, "2025-11-25")
    await scenario(doors, connect, checks)


if __name__ == "__main__":
    run("legacy", connect, story, alone)
