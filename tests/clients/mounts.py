"""Servers of other makers behind the gate: each answers a client of the daemon as it answers one of its own.

PYTHON_SERVERS, SQLITE_SERVER and NODE_SERVERS name the directories of their programs; without one of them, or without
Chromium, those servers are left out.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from harness import STOP_SECONDS, Checks, Sockets, daemon

# The time in the name of a browser's file, and colours, which texts of untrusted servers lose.
VARYING = re.compile(r"(?<=/page-)[0-9TZ-]+|\\u001b\[[0-9;]*m")
CALL_SECONDS = 60
STORY_SECONDS = 240
PAGE = "data:text/html,<title>A page</title><h1>Heading</h1><button>Press</button>"


@dataclass
class Server:
    """A server as a file .mcp.json names it, and the calls that it is asked: a tool and its arguments."""

    program: str
    args: list[str]
    calls: list[tuple[str, dict]]
    fails: list[tuple[str, dict]]
    env: dict[str, str] = field(default_factory=dict)

    def entry(self) -> dict:
        return {"command": self.program, "args": self.args, "env": self.env}


def python_servers(programs: pathlib.Path, ground: pathlib.Path) -> dict[str, Server]:
    repository = {"repo_path": str(ground / "repository")}
    return {
        "git": Server(
            str(programs / "mcp-server-git"),
            ["--repository", repository["repo_path"]],
            [
                ("git_status", repository),
                ("git_log", {**repository, "max_count": 3}),
                ("git_diff_unstaged", repository),
                ("git_add", {**repository, "files": ["file"]}),
                ("git_diff_staged", repository),
            ],
            [("git_show", {**repository, "revision": "nowhere"})],
        ),
        # It needs an older SDK than the others, so it has a place of its own.
        "sqlite": Server(
            str(pathlib.Path(os.environ["SQLITE_SERVER"]) / "mcp-server-sqlite"),
            ["--db-path", str(ground / "data.db")],
            [
                ("create_table", {"query": "CREATE TABLE t (a INTEGER, b TEXT)"}),
                ("write_query", {"query": "INSERT INTO t VALUES (1, 'ä'), (2, NULL)"}),
                ("read_query", {"query": "SELECT * FROM t ORDER BY a"}),
                ("list_tables", {}),
                ("describe_table", {"table_name": "t"}),
            ],
            [],
        ),
        "time": Server(
            str(programs / "mcp-server-time"),
            ["--local-timezone", "UTC"],
            [
                (
                    "convert_time",
                    {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"},
                )
            ],
            [("get_current_time", {"timezone": "Nowhere/At_All"})],
        ),
    }


def node_servers(programs: pathlib.Path, ground: pathlib.Path) -> dict[str, Server]:
    files = ground / "files"
    knows = {"name": "gate", "entityType": "thing", "observations": ["it is shut"]}
    return {
        "filesystem": Server(
            str(programs / "mcp-server-filesystem"),
            [str(files)],
            [
                ("list_allowed_directories", {}),
                ("write_file", {"path": str(files / "new"), "content": "first\nsecond\n"}),
                ("read_text_file", {"path": str(files / "new"), "head": 1}),
                ("list_directory", {"path": str(files)}),
                ("directory_tree", {"path": str(ground / "files")}),
            ],
            [("read_text_file", {"path": "/etc/hostname"})],
        ),
        "memory": Server(
            str(programs / "mcp-server-memory"),
            [],
            [
                ("create_entities", {"entities": [knows]}),
                ("search_nodes", {"query": "shut"}),
                ("read_graph", {}),
            ],
            [("create_entities", {"entities": "none"})],
            {"MEMORY_FILE_PATH": str(ground / "memory.jsonl")},
        ),
        # Not `everything`, with which the longest name of its tools would be cut.
        "all": Server(
            str(programs / "mcp-server-everything"),
            ["stdio"],
            [
                ("echo", {"message": "ä \u2713\n"}),
                ("get-sum", {"a": 0.5, "b": 3}),
                ("get-tiny-image", {}),
                ("get-structured-content", {"location": "Chicago"}),
                ("get-annotated-message", {"messageType": "error", "includeImage": True}),
                ("get-resource-links", {"count": 2}),
                ("trigger-sampling-request", {"prompt": "say it"}),
                ("trigger-elicitation-request", {}),
                ("get-roots-list", {}),
            ],
            [("get-sum", {"a": "one"})],
        ),
    }


def browser(programs: pathlib.Path, chromium: str, ground: pathlib.Path) -> Server:
    """A browser without a window; all clients of one process share its pages."""
    args = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium]
    return Server(
        str(programs / "playwright-mcp"),
        [*args, "--output-dir", str(ground / "browser")],
        [("browser_navigate", {"url": PAGE}), ("browser_evaluate", {"function": "() => document.title"})],
        [("browser_navigate", {"url": "nothing://here"})],
    )


def prepare(ground: pathlib.Path) -> None:
    """Makes what the servers work on, the same each time."""
    shutil.rmtree(ground, ignore_errors=True)
    (ground / "files" / "below").mkdir(parents=True)
    (ground / "files" / "below" / "file").write_text("text\n")
    repository = ground / "repository"
    repository.mkdir()
    (repository / "file").write_text("one\n")
    person = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]
    when = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "The first"]):
        command = ["git", "-C", str(repository), *person, *words]
        subprocess.run(command, check=True, env={**os.environ, **when})
    (repository / "file").write_text("two\n")


async def sampled(_context, asked: types.CreateMessageRequestParams):
    text = types.TextContent(type="text", text=f"{len(asked.messages)} ü")
    return types.CreateMessageResult(role="assistant", content=text, model="a model")


async def filled_in(_context, _asked: types.ElicitRequestParams):
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def rooted(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="some")])


@contextlib.asynccontextmanager
async def client(command: str, args: list[str], env: dict[str, str] | None = None):
    server = StdioServerParameters(command=command, args=args, env=env)
    # What servers say to people is no part of the result of this script.
    with open(os.devnull, "w") as sink:
        async with (
            stdio_client(server, errlog=sink) as (reader, writer),
            ClientSession(
                reader,
                writer,
                timedelta(seconds=CALL_SECONDS),
                sampling_callback=sampled,
                elicitation_callback=filled_in,
                list_roots_callback=rooted,
            ) as session,
        ):
            await session.initialize()
            yield session


async def asked(session: ClientSession, tool: str, arguments: dict) -> dict:
    """The result as JSON, without what is not the same each time or only alone."""
    result = await session.call_tool(tool, arguments)
    seen = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    # It says that the server is not trusted, which only the gate can.
    seen.pop("_meta", None)
    return json.loads(VARYING.sub("", json.dumps(seen)))


async def answers(session: ClientSession, server: Server, prefix: str) -> list[dict]:
    calls = [*server.calls, *server.fails]
    return [await asked(session, prefix + tool, arguments) for tool, arguments in calls]


async def direct(servers: dict[str, Server]) -> dict[str, tuple[set[str], list[dict]]]:
    """The tools of each and what it answers, without the daemon."""
    seen = {}
    for name, server in servers.items():
        async with client(server.program, server.args, server.env) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            seen[name] = (tools, await answers(session, server, ""))
    return seen


def termgate(running, *words: str) -> dict:
    """Runs one command against the daemon, and gives back the JSON that it printed."""
    environment = {
        **os.environ,
        "TERMGATE_RUNTIME_DIR": str(running.root),
        "HOME": str(running.root.parent),
    }
    command = [os.environ["TERMGATE_BIN"], *words, "--json"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=STOP_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)["data"]


async def mounted(running, servers: dict[str, Server]) -> dict[str, dict]:
    """Imports the servers, and returns what the daemon says of each once it knows the tools of all."""
    file = running.root.parent / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {name: it.entry() for name, it in servers.items()}}))
    termgate(running, "mounts", "import", str(file))
    termgate(running, "config", "reload")
    with anyio.fail_after(CALL_SECONDS):
        while True:
            listed = {it["name"]: it for it in termgate(running, "mounts", "list")["mounts"]}
            if all(listed.get(name, {}).get("accepted") for name in servers):
                return listed
            await anyio.sleep(0.1)


def linked(name: str, result: dict) -> list[str]:
    """Gives the resources of a result the addresses that clients of the daemon know; returns those of links."""
    links = []
    for content in result.get("content", []):
        if content["type"] == "resource":
            content["resource"]["uri"] = f"termgate://mount/{name}/{content['resource']['uri']}"
        if content["type"] == "resource_link":
            content["uri"] = f"termgate://mount/{name}/{content['uri']}"
            links.append(content["uri"])
    return links


async def progress(session: ClientSession, tool: str) -> list[tuple[float, float | None]]:
    told = []

    async def on_progress(done: float, total: float | None, _message: str | None) -> None:
        told.append((done, total))

    arguments = {"duration": 1, "steps": 4}
    await session.call_tool(tool, arguments, progress_callback=on_progress)
    return told


async def story(running, servers: dict[str, Server], alone: dict, checks: Checks) -> list[int]:
    """Compares what the mounted servers say with what they say alone; returns their processes."""
    listed = await mounted(running, servers)
    door = Sockets(running).gateway
    async with client(door[0], door[1:]) as session:
        known = {tool.name for tool in (await session.list_tools()).tools}
        for name, server in servers.items():
            tools, expected = alone[name]
            checks.equal(f"{name}: all its tools are accepted", listed[name]["accepted"], len(tools))
            called = {f"{name}__{tool}" for tool in tools}
            checks.that(f"{name}: its tools are listed", called <= known, called - known)
            seen = await answers(session, server, f"{name}__")
            calls = [*server.calls, *server.fails]
            for (tool, _), through, without in zip(calls, seen, expected, strict=True):
                links = linked(name, without)
                checks.equal(f"{name}: {tool} answers as it does alone", through, without)
                for link in links:
                    contents = (await session.read_resource(link)).contents
                    checks.equal(f"{name}: the link is read", [str(it.uri) for it in contents], [link])
            for (tool, _), through in list(zip(calls, seen, strict=True))[len(server.calls) :]:
                checks.equal(f"{name}: an error of {tool} stays one", through.get("isError"), True)
        if "all" in servers:
            told = await progress(session, "all__trigger-long-running-operation")
            steps = [(step, 4) for step in range(1, 5)]
            checks.equal("all: progress is told step by step", told, steps)
    running_now = termgate(running, "mounts", "list")["mounts"]
    for mount in running_now:
        checks.equal(f"{mount['name']}: it runs", mount["status"], "running")
        checks.equal(f"{mount['name']}: it was started once", mount["generation"], 1)
    return [mount["pid"] for mount in running_now if "pid" in mount]


async def shared_browser(running, checks: Checks) -> None:
    """Two agents work in one browser at the same time, and each sees only what itself did."""
    file = running.root.parent / ".config/termgate/mounts.toml"
    text = file.read_text()
    file.write_text(text.replace("[mount.browser]", '[mount.browser]\nmode = "leased"'))
    termgate(running, "config", "reload")
    door = Sockets(running).gateway
    mixed = []

    async def work(session: ClientSession, who: str) -> None:
        for round in range(4):
            asked_for = {"surface": "browser", "wait_ms": 60_000, "reason": who}
            lease = (await session.call_tool("acquire_lease", asked_for)).structuredContent
            title = f"{who}-{round}"
            page = f"data:text/html,<title>{title}</title><input>"
            await asked(session, "browser__browser_navigate", {"url": page})
            # The other one is waiting for its turn all this time.
            for _ in range(2):
                title_now = {"function": "() => document.title"}
                seen = json.dumps(await asked(session, "browser__browser_evaluate", title_now))
                if title not in seen:
                    mixed.append((title, seen))
            await session.call_tool("release_lease", {"lease_id": lease["lease_id"]})

    async with client(door[0], door[1:]) as ada, client(door[0], door[1:]) as bob:
        refused = await asked(ada, "browser__browser_navigate", {"url": PAGE})
        code = refused["structuredContent"]["error_code"]
        checks.equal("a leased browser: who has no lease is refused", code, "lease_required")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, ada, "ada")
            tasks.start_soon(work, bob, "bob")
    checks.equal("a leased browser: two agents never mix", mixed, [])


def lives(process: int) -> bool:
    """Whether it runs; one that waits to be reaped does not."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def end(processes: list[int]) -> bool:
    give_up = time.monotonic() + STOP_SECONDS
    while any(map(lives, processes)):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def chosen(ground: pathlib.Path) -> dict[str, Server]:
    servers = {}
    if python := os.environ.get("PYTHON_SERVERS"):
        servers |= python_servers(pathlib.Path(python), ground)
    if node := os.environ.get("NODE_SERVERS"):
        servers |= node_servers(pathlib.Path(node), ground)
        if chromium := shutil.which("chromium"):
            servers["browser"] = browser(pathlib.Path(node), chromium, ground)
    return servers


def main() -> None:
    checks = Checks("mounts")

    async def bounded(story, *arguments):
        with anyio.fail_after(STORY_SECONDS):
            return await story(*arguments)

    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        ground = pathlib.Path(folder).resolve() / "ground"
        servers = chosen(ground)
        prepare(ground)
        alone = anyio.run(bounded, direct, servers)
        prepare(ground)
        with daemon("--allow-write") as running:
            processes = anyio.run(bounded, story, running, servers, alone, checks)
            checks.equal("every server has a process", len(processes), len(servers))
            if "browser" in servers:
                anyio.run(bounded, shared_browser, running, checks)
        checks.that("no server outlives the daemon", end(processes), processes)
    print(f"mounts: {checks.passed} passed, {checks.failed} failed", flush=True)
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
