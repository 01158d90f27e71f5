"""Drives terminalcp: `stdin`, then `stdout`, its rendered screen."""

import threading
import time
from pathlib import Path

from drivers.guest import Guest

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
        with self.starting:
            for _ in range(20):
                # The first call does not wait for as long as the server may need to start.
                if not self.terminal(action="start", command=shell, cwd=place, name=self.name).failed:
                    return
                time.sleep(1)
        raise RuntimeError("terminalcp does not start: " + self.text[-200:])

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

    def look(self) -> str:
        return self.terminal(action="stdout", id=self.name, lines=50).text.rstrip("\n")
