"""Drives terminalcp: `stdin`, then `stdout`, its rendered screen."""

import re
import subprocess
import threading
import time
from pathlib import Path

from drivers.guest import Gone, Guest
from told import Told

KEYS = {
    "Enter": "\r", "Escape": "\x1b", "Space": " ", "Tab": "\t", "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C",
    "Left": "\x1b[D",
}


class Terminalcp(Guest):
    command = ["npm/node_modules/.bin/terminalcp", "--mcp"]

    # Its server behind all sessions is started once.
    starting = threading.Lock()

    def home(self, place: Path) -> Path:
        return place.parent / "home"

    def open(self, place: str, shell: str) -> None:
        self.start_behind()
        if not any(self.started(shell, place) for _ in range(20)):
            raise RuntimeError("terminalcp starts nothing: " + self.text[-200:])

    def started(self, shell: str, place: str) -> bool:
        if not self.terminal(action="start", command=shell, cwd=place, name=self.name).failed:
            return True
        time.sleep(1)
        return False

    def start_behind(self) -> None:
        """Starts the server behind all sessions; a first call does not wait for as long as that may need."""
        program = self.server.args[0]
        with self.starting:
            for _ in range(20):
                if subprocess.run([program, "ls"], env=self.environment, capture_output=True).returncode == 0:
                    return
                time.sleep(1)

    def close(self) -> None:
        self.terminal(action="stop", id=self.name)
        self.server.terminate()
        self.server.wait(10)

    def terminal(self, **arguments):
        return self.ask("terminalcp", {"args": arguments})

    def type_text(self, text: str) -> None:
        self.terminal(action="stdin", id=self.name, data=text.replace("\n", "\r"))

    def type_keys(self, keys: list[str]) -> None:
        data = [KEYS.get(key, chr(ord(key[2:].upper()) & 31) if key.startswith("C-") else key) for key in keys]
        self.terminal(action="stdin", id=self.name, data="".join(data))

    def until_text(self, pattern: str, step: dict) -> Told:
        """Looks at the stream, which has all output and no screen, if the screen does not have it."""
        told = super().until_text(pattern, {**step, "timeout": min(step.get("timeout", 20_000), 3_000)})
        if told.status == "timeout" and re.search(pattern, shown := self.look_back()):
            return Told(status="matched", shown=shown)
        return told

    def look_back(self) -> str:
        return self.terminal(action="stream", id=self.name).text.replace("\r", "")

    def look(self) -> str:
        answer = self.terminal(action="stdout", id=self.name, lines=50)
        if answer.failed:
            raise Gone
        return answer.text.rstrip("\n")
