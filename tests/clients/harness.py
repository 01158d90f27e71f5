"""What both eras' scripts share: a daemon of their own, and checks that are counted.

It knows no SDK; the scripts bring a way to connect.
"""

import contextlib
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import sys
import tempfile

import anyio

PUMP = str(pathlib.Path(__file__).with_name("pump.py"))
START_SECONDS = 20
STOP_SECONDS = 20
SCENARIO_SECONDS = 120


class Checks:
    """Counts what held and what did not, and prints a line for each."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.passed = 0
        self.failed = 0

    def that(self, sentence: str, holds: bool, seen: object = None) -> None:
        if holds:
            self.passed += 1
            print(f"ok   {self.era}: {sentence}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL {self.era}: {sentence}; seen: {seen!r}", flush=True)

    def equal(self, sentence: str, seen: object, expected: object) -> None:
        self.that(sentence, seen == expected, f"{seen!r}, expected {expected!r}")


class Daemon:
    """A daemon in a directory of its own."""

    def __init__(self, root: pathlib.Path, process: subprocess.Popen) -> None:
        self.root = root
        self.process = process


class Sockets:
    """The way in through a daemon's sockets: each door as the command that joins it."""

    name = "socket"

    def __init__(self, daemon: Daemon) -> None:
        self.root = daemon.root

    @property
    def gateway(self) -> list[str]:
        return self.joined("gateway.sock")

    def session(self, session: str) -> list[str]:
        return self.joined(f"s/{session}.sock")

    def observer(self, session: str) -> list[str]:
        return self.joined(f"s/{session}.ro.sock")

    def joined(self, socket: str) -> list[str]:
        return [sys.executable, PUMP, str(self.root / socket)]


class Bridge:
    """The way in through `termgate mcp`."""

    name = "bridge"

    def __init__(self, daemon: Daemon) -> None:
        place = f"TERMGATE_RUNTIME_DIR={daemon.root}"
        self.gateway = ["env", place, os.environ["TERMGATE_BIN"], "mcp", "--no-spawn"]

    def session(self, session: str) -> list[str]:
        return [*self.gateway, "--session", session]

    def observer(self, session: str) -> list[str]:
        return [*self.gateway, "--session", session, "--read-only"]


@contextlib.contextmanager
def daemon(*flags: str):
    """Starts a daemon, waits until it answers, and stops it at the end."""
    with tempfile.TemporaryDirectory(prefix="tg-") as folder:
        root = pathlib.Path(folder) / "run"
        # The files of whoever runs this make no difference to shells.
        environment = {**os.environ, "TERMGATE_RUNTIME_DIR": str(root), "HOME": folder}
        for name in ("TERMGATE_ALLOW_WRITE", "TERMGATE_CONFIG"):
            environment.pop(name, None)
        log = pathlib.Path(folder) / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [os.environ["TERMGATE_BIN"], "serve", *flags],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            wait_until_it_listens(process, str(root / "gateway.sock"))
            yield Daemon(root, process)
        except BaseException:
            print(f"the daemon said:\n{log.read_text(errors='replace')}", file=sys.stderr)
            raise
        finally:
            stop(process)


def wait_until_it_listens(process: subprocess.Popen, path: str) -> None:
    """Returns as soon as the socket takes a connection; a daemon that ended is told at once."""
    ended = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for _ in range(START_SECONDS * 50):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    if probe.connect_ex(path) == 0:
                        return
                if selector.select(timeout=0.02):
                    raise RuntimeError(f"the daemon ended with {process.wait()}")
    finally:
        os.close(ended)
    raise RuntimeError(f"nothing listens at {path} after {START_SECONDS} s")


def stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise RuntimeError(f"the daemon did not end within {STOP_SECONDS} s of SIGTERM") from None


def run(era: str, connect, together, alone) -> None:
    """Runs the story of several clients over every way into a daemon that allows writing, and that
    of one client over a daemon of its own; prints the count and ends."""
    checks = Checks(era)

    async def bounded(story, *arguments) -> None:
        with anyio.fail_after(SCENARIO_SECONDS):
            await story(*arguments)

    for way in (Sockets, Bridge):
        checks.era = f"{era}, {way.name}"
        with daemon("--allow-write") as running:
            anyio.run(bounded, together, way(running), connect, checks)
            checks.equal("the daemon is still alive at the end", running.process.poll(), None)
    checks.era = f"{era}, stdio"
    with tempfile.TemporaryDirectory(prefix="tg-") as home:
        # No file of whoever runs the tests is read.
        own = ["env", f"HOME={home}", f"XDG_CONFIG_HOME={home}/.config", os.environ["TERMGATE_BIN"]]
        own += ["serve", "--stdio", "--allow-write"]
        anyio.run(bounded, alone, own, connect, checks)
    print(f"{era}: {checks.passed} passed, {checks.failed} failed", flush=True)
    sys.exit(1 if checks.failed else 0)
