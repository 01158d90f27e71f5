"""Films a daemon: what two agents and a person do, and what an observer is sent, with the times.

It draws nothing. All that is on the film came over the daemon's sockets; only the pauses between
calls, in which a reader can follow, are ours.
"""

import base64
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import socket
import subprocess
import tempfile
import threading
import time

ROWS, COLS = 13, 100
# How long a reader needs for a call and for its answer.
PAUSE = 1.5
# How long the last picture stays.
LAST = 4.0
# Longer than anything on the film takes.
PATIENCE = 20.0

TESTS = '''import time, unittest

class Refunds(unittest.TestCase):
    def setUp(self):
        time.sleep(0.5)

    def test_are_paid_once(self):
        self.assertEqual(len({"a", "a"}), 1)

    def test_are_rounded_down(self):
        self.assertEqual(int(19.99), 19)

    def test_need_a_reason(self):
        self.assertTrue("broken".strip())
'''

RELEASE = r'''#!/bin/sh
bar=
for step in 10 20 30 40 50 60 70 80 90 100; do
    bar="$bar##"
    printf '\rpublishing %s \033[36m%-20s\033[0m %3s%%' "$1" "$bar" "$step"
    sleep 0.2
done
printf '\n\033[1;32m%s is out\033[0m\n' "$1"
'''


@dataclasses.dataclass
class Said:
    """A call of an agent and, once it came, the answer."""

    who: str
    tool: str
    arguments: dict
    at: float
    answered_at: float | None = None
    answer: dict | None = None


@dataclasses.dataclass
class Film:
    said: list[Said]
    # What the person pressed, and when.
    pressed: list[tuple[float, str]]
    # Each delta as the observer got it: the time, how many bytes, what it says.
    deltas: list[tuple[float, int, dict]]
    seconds: float


class Client:
    """A connection to the daemon; a thread notes when each line came."""

    def __init__(self, path: pathlib.Path, name: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.lines: queue.Queue[tuple[float, bytes]] = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.last_id = 0
        client = {"name": name, "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.answer(self.request("initialize", hello))
        self.send({"method": "notifications/initialized"})

    def listen(self) -> None:
        for line in self.socket.makefile("rb"):
            self.lines.put((time.monotonic(), line))

    def send(self, message: dict) -> None:
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def request(self, method: str, params: dict) -> int:
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id

    def call(self, tool: str, arguments: dict) -> int:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, number: int) -> tuple[float, dict]:
        while True:
            at, line = self.lines.get(timeout=PATIENCE)
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return at, message["result"]


class Agent:
    """A client whose calls are filmed."""

    def __init__(self, path: pathlib.Path, name: str, film: list[Said]) -> None:
        self.client, self.name, self.film = Client(path, name), name, film

    def ask(self, tool: str, **arguments) -> tuple[int, Said]:
        said = Said(self.name, tool, arguments, time.monotonic())
        self.film.append(said)
        return self.client.call(tool, arguments), said

    def hear(self, asked: tuple[int, Said]) -> dict:
        number, said = asked
        said.answered_at, result = self.client.answer(number)
        said.answer = result["structuredContent"]
        return said.answer

    def call(self, tool: str, **arguments) -> dict:
        answer = self.hear(self.ask(tool, **arguments))
        time.sleep(PAUSE)
        return answer


class Person:
    """Somebody at `termgate attach`, whose keys are filmed."""

    KEYS = {"C-c": "\x03", "Enter": "\r", "C-\\ h": ""}

    def __init__(self, path: pathlib.Path, session: str) -> None:
        self.client = Client(path, "termgate")
        size = {"session": session, "rows": ROWS, "cols": COLS}
        self.attached = self.client.request("termgate/attach", size)
        self.pressed: list[tuple[float, str]] = []

    def press(self, *keys: str) -> None:
        """Presses keys, or types what names none."""
        for key in keys:
            self.pressed.append((time.monotonic(), key))
            if key == "C-\\ h":
                asked = self.client.request("termgate/attach/hand_back", {"attach": self.attached})
                self.client.answer(asked)
                continue
            for part in [self.KEYS[key]] if key in self.KEYS else key:
                data = base64.b64encode(part.encode()).decode()
                typed = {"attach": self.attached, "data": data}
                self.client.answer(self.client.request("termgate/attach/input", typed))
                time.sleep(0.05)
            time.sleep(PAUSE / 2)


@contextlib.contextmanager
def daemon(binary: str, home: pathlib.Path):
    """A daemon with a home and sockets of its own, until the end of the film."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    places = ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    environment = kept | {name: str(home) for name in places}
    process = subprocess.Popen(
        [pathlib.Path(binary).resolve(), "serve", "--allow-write"],
        env=environment,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if not any("is ready" in line for line in process.stderr):
            raise SystemExit("the daemon did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield home / "termgate"
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def record(binary: str) -> Film:
    """Has the story played and gives back the film of it, its times counted from the beginning."""
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        home = pathlib.Path(folder)
        (home / "test_refunds.py").write_text(TESTS)
        (home / "release").write_text(RELEASE)
        (home / "release").chmod(0o755)
        with daemon(binary, home) as sockets:
            return play(sockets, home)


def play(sockets: pathlib.Path, home: pathlib.Path) -> Film:
    said: list[Said] = []
    ada, bob = (Agent(sockets / "gateway.sock", name, said) for name in ("ada", "bob"))
    session = open_session(ada.client, home)
    observer = Client(sockets / "s" / f"{session}.ro.sock", "observer")
    person = Person(sockets / "operator.sock", session)
    start = time.monotonic()
    observer.request("termgate/observe", {})
    time.sleep(PAUSE)

    lease = ada.call("acquire_lease", session="shop", reason="running the tests")
    bob.call("send_text", session="shop", text="./release 2.0", enter=True)
    waiting = bob.ask("acquire_lease", session="shop", wait_ms=60_000)
    time.sleep(PAUSE)
    tested = {"pattern": "^(OK|FAILED)"}
    typed = "python3 -m unittest -v"
    ada.call("send_text", session="shop", text=typed, enter=True, until=tested, wait_ms=20_000)
    ada.hear(ada.ask("release_lease", lease_id=lease["lease_id"]))
    lease = bob.hear(waiting)
    time.sleep(PAUSE)
    out = {"text": "is out"}
    typed = "./release 2.0"
    releasing = bob.ask("send_text", session="shop", text=typed, enter=True, until=out, wait_ms=20_000)
    time.sleep(PAUSE)
    # It is the wrong release: the person takes the keyboard, corrects it and hands back.
    person.press("C-c", "./release 2.1", "Enter")
    bob.hear(releasing)
    time.sleep(2 * PAUSE)
    person.press("C-\\ h")
    time.sleep(PAUSE)
    bob.call("read_screen", session="shop")
    bob.call("release_lease", lease_id=lease["lease_id"])
    seconds = time.monotonic() - start - PAUSE + LAST

    for it in said:
        it.at -= start
        it.answered_at -= start
    pressed = [(at - start, key) for at, key in person.pressed]
    return Film(said, pressed, list(deltas(observer, start)), seconds)


def open_session(client: Client, home: pathlib.Path) -> str:
    """Starts a shell for the story and waits for its prompt."""
    shell = {
        "name": "shop",
        "command": "bash",
        "args": ["--norc", "--noprofile"],
        "cwd": str(home),
        "env": {"PS1": r"\[\e[34m\]shop\[\e[0m\] $ ", "PYTHONDONTWRITEBYTECODE": "1"},
        "rows": ROWS,
        "cols": COLS,
        "lease": False,
    }
    _, created = client.answer(client.call("create_session", shell))
    session = created["structuredContent"]["session"]["id"]
    prompt = {"session": session, "text": "shop $", "since": 0}
    client.answer(client.call("wait_for", prompt))
    return session


def deltas(observer: Client, start: float):
    while not observer.lines.empty():
        at, line = observer.lines.get()
        message = json.loads(line)
        if message.get("method") == "termgate/delta":
            yield at - start, len(line), message["params"]
