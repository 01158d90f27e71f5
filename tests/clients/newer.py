"""Servers of the SDK of the newer era behind the gate, as programs and over HTTP, and clients of that era."""

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


async def uses(client: Client, name: str, checks: Checks) -> None:
    """Uses all that one of the servers has."""
    added = await client.call_tool(f"{name}__add", {"a": 2, "b": 3})
    checks.equal(f"{name}: a tool answers", added.structured_content, {"result": 5})
    filled = await client.get_prompt(f"{name}__greet", {"who": "Ada"})
    checks.equal(f"{name}: a prompt is filled in", filled.messages[0].content.text, "Hello, Ada")
    uri = COUNT.format(name)
    async with client.listen(resource_subscriptions=[uri], prompts_list_changed=True) as events:
        heard = aiter(events)
        await client.call_tool(f"{name}__step", {})
        # The subscription at the server may begin after the first step.
        event = await stepping(client, name, heard)
        checks.equal(f"{name}: a change of a resource is told", getattr(event, "uri", None), uri)
        read = await client.read_resource(uri, cache_mode="bypass")
        checks.that(f"{name}: the resource is read", int(read.contents[0].text) >= 1, read)


async def stepping(client: Client, name: str, heard):
    """Changes the resource until a change is told."""
    told = []

    async def listen(scope: anyio.CancelScope) -> None:
        told.append(await anext(heard))
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks.cancel_scope)
        while True:
            await client.call_tool(f"{name}__step", {})
            await anyio.sleep(0.1)
    return told[0]


async def story(running, url: str, checks: Checks) -> None:
    termgate(running, "mounts", "add", "lines", "--", sys.executable, SERVER, "stdio")
    termgate(running, "mounts", "add", "web", "--url", url)
    termgate(running, "config", "reload")
    with anyio.fail_after(STORY_SECONDS):
        await known(running, ["lines", "web"])
        door = Sockets(running).gateway
        async with Client(StdioServerParameters(command=door[0], args=door[1:])) as client:
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
