"""MCP as newline-delimited JSON-RPC over two descriptors."""

import json
import os
import select
import time
from dataclasses import dataclass, field

from told import Hung

# A server that starts for the first time on a busy machine takes long.
START_S = 120


@dataclass
class Answer:
    """What a tool call answered."""

    text: str
    whole: dict = field(default_factory=dict)
    failed: bool = False


class Rpc:
    """One connection. `write` is the same descriptor as `read` unless another one is given."""

    def __init__(self, read: int, write: int | None = None):
        self.read, self.write = read, read if write is None else write
        self.buffer = b""
        self.last = 0
        os.set_blocking(self.read, True)
        self.greeting = self.request("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tasks", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(self.write, line):]

    def request(self, method: str, params: dict, timeout_s: float = START_S) -> dict:
        """The whole reply; raises `Hung` when none comes in time."""
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        deadline = time.monotonic() + timeout_s
        while True:
            line, found, rest = self.buffer.partition(b"\n")
            if found:
                self.buffer = rest
                message = json.loads(line)
                if message.get("id") == self.last and "method" not in message:
                    return message
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise Hung(f"{method} has no answer after {timeout_s:.0f} s")
            received = os.read(self.read, 1 << 20)
            if not received:
                raise Hung("the server closed the connection")
            self.buffer += received

    def tool(self, name: str, arguments: dict, timeout_s: float = START_S) -> Answer:
        reply = self.request("tools/call", {"name": name, "arguments": arguments}, timeout_s)
        if "error" in reply:
            return Answer(json.dumps(reply["error"]), failed=True)
        result = reply["result"]
        text = "\n".join(block.get("text", "") for block in result.get("content", []))
        return Answer(text, result.get("structuredContent") or {}, bool(result.get("isError")))

    def close(self) -> None:
        os.close(self.read)
        if self.write != self.read:
            os.close(self.write)
