"""Drives termgate over its Unix socket, one connection a session."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from drivers.rpc import Rpc
from told import Told

# How long after the time that a call was given its answer may come.
GRACE_S = 10
START_S = 20


def binary() -> str:
    """The binary that TERMGATE_BIN names, or one that is built here."""
    if named := os.environ.get("TERMGATE_BIN"):
        return str(Path(named).resolve())
    top = Path(__file__).resolve().parents[3]
    subprocess.run(["cargo", "build", "--locked", "--bin", "termgate"], cwd=top, check=True)
    metadata = subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"],
                              cwd=top, check=True, capture_output=True)
    return json.loads(metadata.stdout)["target_directory"] + "/debug/termgate"


def search_path(root: Path, program: str) -> str:
    """Where cases find programs: termgate, this Python, so that all machines run one, and the system's."""
    (root / "bin").mkdir()
    (root / "bin/termgate").symlink_to(program)
    (root / "bin/python3").symlink_to(os.path.realpath(sys.executable))
    return f"{root}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Daemon:
    """A daemon of its own, in an empty home below `root`."""

    def __init__(self, binary: str, root: Path, path: str):
        for name in ("home", "run", "state"):
            (root / name).mkdir(mode=0o700)
        # An empty file keeps zsh from asking a new user, a directory fish from reading all manuals.
        (root / "home/.zshrc").touch()
        (root / "home/.local/share/fish/generated_completions").mkdir(parents=True)
        self.root = root
        self.socket = root / "run/termgate/gateway.sock"
        environment = {
            "PATH": path, "HOME": str(root / "home"), "XDG_RUNTIME_DIR": str(root / "run"),
            "XDG_STATE_HOME": str(root / "state"), "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TERM": "dumb",
            "USER": os.environ.get("USER", "root"),
        }
        self.log = open(root / "log", "wb")
        self.process = subprocess.Popen(
            [binary, "serve", "--allow-write"], env=environment, cwd=root, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, start_new_session=True)
        deadline = time.monotonic() + START_S
        while not self.accepts():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the daemon did not start: {(root / 'log').read_text()}")
            time.sleep(0.02)

    def accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def stop(self) -> None:
        """Ends the daemon, and what cases left behind."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        for pid in self.left_behind():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def left_behind(self) -> list[int]:
        """The processes whose environment names this daemon's directory."""
        mark = f"XDG_RUNTIME_DIR={self.root}/run".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found


class Driver:
    """One session, as `play` drives it."""

    def __init__(self, daemon: Daemon, session: dict):
        self.daemon = daemon
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(START_S)
        connection.connect(str(daemon.socket))
        self.rpc = Rpc(connection.detach())
        self.watermark = 0
        answer = self.tool("create_session", session)
        if answer.error:
            raise RuntimeError(answer.text)
        self.session = answer.whole["session"]["id"]

    def tool(self, name: str, arguments: dict, timeout_s: float = START_S) -> Told:
        answer = self.rpc.tool(name, arguments, timeout_s)
        if answer.failed:
            return Told(error=answer.whole.get("error_code", "error"), text=answer.text, whole=answer.whole)
        return self.told(answer.whole, answer.text)

    @staticmethod
    def told(whole: dict, text: str) -> Told:
        wait = whole.get("wait") or whole
        command = wait.get("command") if isinstance(wait.get("command"), dict) else {}
        rows = [update["text"] for update in (whole.get("changed") or {}).get("updates", []) if "text" in update]
        exit_code = (wait.get("exit") or {}).get("code")
        return Told(
            output=whole.get("output"),
            code=whole.get("exit_code", command.get("exit_code", exit_code)),
            status=whole.get("status") or wait.get("outcome"),
            state=(wait.get("activity") or {}).get("state"),
            mode=whole.get("mode"),
            text=text,
            shown="\n".join([*rows, *wait.get("last_rows", []), whole.get("text") or ""]),
            whole=whole,
        )

    def do(self, step: dict) -> Told:
        """Does one step and answers what it told."""
        timeout = step.get("timeout", 20_000)
        limit = timeout / 1000 + GRACE_S
        base = {"session": self.session}
        if "run" in step:
            lines = {"max_lines": step["max_lines"]} if "max_lines" in step else {}
            return self.tool("run", {**base, "command": step["run"], "timeout_ms": timeout, **lines}, limit)
        if "wait" in step:
            since = {} if step.get("args") is None else step["args"]
            return self.tool("wait_for", {**base, "timeout_ms": timeout, **step["wait"], **since}, limit)
        if "see" in step:
            since = {"since": self.watermark}
            return self.tool("wait_for", {**base, "text": step["see"], "timeout_ms": timeout, **since}, limit)
        if "screen" in step:
            return self.tool("read_screen", {**base, **step.get("args", {})}, limit)
        if "call" in step:
            return self.tool(step["call"], {**base, **step.get("args", {})}, limit)
        self.watermark = self.tool("read_screen", {**base, "count": 1}).whole.get("watermark", 0)
        wait = {"wait_ms": timeout, "until": step["until"]} if "until" in step else {}
        if "keys" in step:
            return self.tool("send_keys", {**base, "keys": step["keys"], **wait}, limit)
        extra = {key: step[key] for key in ("enter", "paste") if key in step}
        return self.tool("send_text", {**base, "text": step["send"], **extra, **wait}, limit)

    def close(self) -> None:
        """Ends the session and forgets it."""
        for _ in range(2):
            self.tool("manage_session", {"session": self.session, "action": "kill"}, 30)
        self.rpc.close()
