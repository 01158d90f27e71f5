"""What gateways make of a server that fails: a table of what its client is answered, and whether the server comes back.

It compares and judges nothing, so that `run` does not run it: `crashes.py GATEWAY…` with a Python that has the package
`mcp` of version 1. GATEWAY is `termgate`, or `python-proxy=COMMAND`, `rust-proxy=COMMAND` or `supergateway=COMMAND`.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from harness import Sockets, daemon, stop

SERVER = str(pathlib.Path(__file__).parents[1] / "daemon" / "fake_server.py")
# How long a client waits for an answer, and until the server is back.
CALL_SECONDS = 6
BACK_SECONDS = 10
START_SECONDS = 60
CASES = ["killed before", "killed during", "crash", "exit", "garbage", "endless", "hang"]
TOOLS = ["echo", "crash", "exit", "hang", "garbage", "endless"]


class Gateway:
    """A running gateway with the server behind it."""

    def __init__(self, connect, prefix: str, ground: pathlib.Path) -> None:
        self.connect = connect
        self.prefix = prefix
        self.ground = ground

    def server(self) -> int:
        return int((self.ground / "starts").read_text().split()[-1])

    def starts(self) -> int:
        return len((self.ground / "starts").read_text().split())


@contextlib.asynccontextmanager
async def over_pipes(words: list[str]):
    parameters = StdioServerParameters(command=words[0], args=words[1:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def over_http(url: str):
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        yield session


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def ground():
    """The server's files."""
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        place = pathlib.Path(folder)
        listed = [{"name": it, "inputSchema": {"type": "object"}} for it in TOOLS]
        (place / "tools.json").write_text(json.dumps(listed))
        yield place


@contextlib.contextmanager
def termgate(place: pathlib.Path, environment: dict[str, str]):
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        config = pathlib.Path(folder) / "config.toml"
        config.write_text("")
        env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        settings = f"trust = \"trusted\"\ncall_timeout_ms = {CALL_SECONDS * 500}\nenv = {{ {env} }}"
        command = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(SERVER)}]"
        config.with_name("mounts.toml").write_text(f"[mount.fake]\n{command}\n{settings}\n")
        with daemon("--allow-write", "--config", str(config)) as running:
            door = Sockets(running).gateway
            yield Gateway(lambda: over_pipes(door), "fake__", place)


@contextlib.contextmanager
def bridge(kind: str, command: str, place: pathlib.Path, environment: dict[str, str]):
    port = free_port()
    path, prefix = "/mcp", ""
    match kind:
        case "python-proxy":
            words = ["--pass-environment", "--port", str(port), "--", sys.executable, SERVER]
        case "supergateway":
            words = ["--stdio", f"{sys.executable} {SERVER}", "--outputTransport"]
            words += ["streamableHttp", "--stateful", "--port", str(port)]
        case "rust-proxy":
            config = place / "proxy.toml"
            config.write_text(
                f'[proxy]\nname = "p"\nseparator = "__"\n[proxy.listen]\nhost = "127.0.0.1"\nport = {port}\n'
                f'[[backends]]\nname = "fake"\ntransport = "stdio"\ncommand = "{sys.executable}"\n'
                f'args = ["{SERVER}"]\n'
            )
            words, path, prefix = ["--config", str(config)], "/", "fake__"
        case _:
            raise SystemExit(f"unknown gateway {kind}")
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [command, *words], env={**os.environ, **environment}, stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        url = f"http://127.0.0.1:{port}{path}"
        yield Gateway(lambda: over_http(url), prefix, place)
    finally:
        stop(process)


async def ready(gateway: Gateway) -> None:
    """Returns once a client can call the server."""
    give_up = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(Exception):
            async with gateway.connect() as session:
                if await call(gateway, session, "echo") == "answered":
                    return
        if time.monotonic() > give_up:
            raise SystemExit("the gateway does not answer")
        await anyio.sleep(0.1)


async def call(gateway: Gateway, session: ClientSession, tool: str) -> str:
    """What the call was answered with, in short."""
    patience = timedelta(seconds=CALL_SECONDS)
    try:
        with anyio.fail_after(CALL_SECONDS + 2):
            result = await session.call_tool(gateway.prefix + tool, {"text": "x"}, patience)
    except TimeoutError:
        return "no answer"
    except McpError as error:
        if error.error.code == 408:
            return "no answer"
        return f"{error.error.code} {error.error.message}"[:100]
    if not result.isError:
        return "answered"
    text = " ".join(getattr(it, "text", "") for it in result.content)
    return f"isError {text or 'without text'}"[:160]


async def one(gateway: Gateway, case: str) -> list[str]:
    """What the call says, what the next one says, and when and for whom the server is back."""
    await ready(gateway)
    async with gateway.connect() as session:
        await call(gateway, session, "echo")
        before = gateway.starts()
        said = []
        if case == "killed before":
            os.kill(gateway.server(), signal.SIGKILL)
            said.append(await call(gateway, session, "echo"))
        elif case == "killed during":

            async def hang() -> None:
                said.append(await call(gateway, session, "hang"))

            async with anyio.create_task_group() as calls:
                calls.start_soon(hang)
                heard = gateway.ground / "starts.heard"
                while not heard.exists() or "hang" not in heard.read_text():
                    await anyio.sleep(0.02)
                os.kill(gateway.server(), signal.SIGKILL)
        else:
            said.append(await call(gateway, session, case))
        began = time.monotonic()
        said.append(await call(gateway, session, "echo"))
        answer = said[-1]
        while answer != "answered" and time.monotonic() < began + BACK_SECONDS:
            await anyio.sleep(0.2)
            answer = await call(gateway, session, "echo")
        took = time.monotonic() - began
        said.append(f"{took:.1f} s" if answer == "answered" else "never")
        new = "cannot connect"
        with contextlib.suppress(Exception):
            with anyio.fail_after(CALL_SECONDS * 2):
                async with gateway.connect() as another:
                    new = await call(gateway, another, "echo")
        said += [new, str(gateway.starts() - before)]
    return said


def measure(kind: str, command: str, case: str) -> list[str]:
    with ground() as place:
        environment = {"STARTS": str(place / "starts"), "TOOLS": str(place / "tools.json")}
        if kind == "termgate":
            opened = termgate(place, environment)
        else:
            opened = bridge(kind, command, place, environment)
        said = ["the client gave up"]
        with opened as gateway:
            # A client's own task group may fail when its connection does.
            try:
                said = anyio.run(one, gateway, case)
            except* Exception as errors:
                said = [f"the client failed: {errors.exceptions[0]!r}"[:100]]
        return said


def main() -> None:
    print("| server | gateway | call | next call | back for this client | new client | starts |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        for given in sys.argv[1:]:
            kind, _, command = given.partition("=")
            cells = " | ".join(it.replace("\n", " ") for it in measure(kind, command, case))
            print(f"| {case} | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
