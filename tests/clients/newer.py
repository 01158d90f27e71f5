"""Servers of the SDK of both eras behind the gate, as programs and over HTTP, and its clients of both."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

from harness import START_SECONDS, STOP_SECONDS, Checks, Sockets, daemon

SERVER = str(pathlib.Path(__file__).with_name("newer_server.py"))
STORY_SECONDS = 120
COUNT = "termgate://mount/{}/count://now"


def termgate(running, *words: str) -> dict:
    environment = {**os.environ, "TERMGATE_RUNTIME_DIR": str(running.root), "HOME": str(running.root.parent)}
    # What is behind `--` belongs to the server.
    command = [os.environ["TERMGATE_BIN"], *words[:2], "--json", *words[2:]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STOP_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)["data"]


@contextlib.contextmanager
def over_http():
    """A server on a free port, once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    silent = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, SERVER, "http", str(port)], stdout=silent, stderr=silent)
    give_up = time.monotonic() + START_SECONDS
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > give_up or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


async def known(running, names: list[str]) -> None:
    while True:
        listed = {it["name"]: it for it in termgate(running, "mounts", "list")["mounts"]}
        if all(listed.get(name, {}).get("accepted") for name in names):
            return
        await anyio.sleep(0.1)


async def answered(_context, params) -> ElicitResult:
    """What the person of a client answers."""
    return ElicitResult(action="accept", content={"name": params.message.rpartition(" ")[2]})


async def uses(client: Client, name: str, checks: Checks) -> None:
    """Uses all that one of the servers has for clients of both eras."""
    added = await client.call_tool(f"{name}__add", {"a": 2, "b": 3})
    checks.equal(f"{name}: a tool answers", added.structured_content, {"result": 5})
    asked = await client.call_tool(f"{name}__who", {})
    checks.equal(f"{name}: a tool asks", asked.structured_content, {"result": "you?"})
    filled = await client.get_prompt(f"{name}__greet", {"who": "Ada"})
    checks.equal(f"{name}: a prompt is filled in", filled.messages[0].content.text, "Hello, Ada")
    read = await client.read_resource(COUNT.format(name))
    checks.equal(f"{name}: a resource is read", read.contents[0].text, "42")


async def story(running, url: str, checks: Checks) -> None:
    termgate(running, "mounts", "add", "lines", "--", sys.executable, SERVER, "stdio")
    termgate(running, "mounts", "add", "web", "--url", url)
    termgate(running, "config", "reload")
    with anyio.fail_after(STORY_SECONDS):
        await known(running, ["lines", "web"])
        door = Sockets(running).gateway
        program = StdioServerParameters(command=door[0], args=door[1:])
        for mode in ("auto", "legacy"):
            async with Client(program, mode=mode, elicitation_callback=answered) as client:
                for name in ("lines", "web"):
                    await uses(client, name, checks)


def main() -> None:
    checks = Checks("newer")
    with over_http() as url, daemon("--allow-write") as running:
        anyio.run(story, running, url, checks)
    print(f"newer: {checks.passed} passed, {checks.failed} failed", flush=True)
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
