"""Drives libtmux-mcp: `run_command` for shell commands, keys and `snapshot_pane` for the rest, as its pages say."""

import re

from drivers.guest import Guest
from judge import expected_status
from told import Told


class LibtmuxMcp(Guest):
    command = ["venv-libtmux/bin/libtmux-mcp"]
    # Whether a program that the agent knows as interactive has the pane.
    inside = False

    def open(self, place: str, shell: str) -> None:
        self.ask("create_session", {"session_name": "case", "start_directory": place, "x": 120, "y": 40})
        # Its sessions start the user's shell only.
        self.marked = shell == "bash"
        if not self.marked:
            self.ask("send_keys", {"session_name": "case", "keys": f"clear; exec {shell}"})

    def run(self, step: dict) -> Told:
        ends = expected_status(step) == ["completed"]
        # `run_command` runs in a subshell: what shall last is typed.
        if self.inside or step.get("lasts") or not ends:
            told = super().run(step)
            self.inside = self.inside or "needs_input" in expected_status(step)
            return told
        limit = step.get("timeout", 20_000) / 1000
        answer = self.ask("run_command", {
            "session_name": "case", "command": step["run"], "timeout": limit,
            # Several lines are taken only so.
            "suppress_history": "\n" not in step["run"]}, limit + 10)
        whole = answer.whole
        return Told(
            status="timeout" if whole.get("timed_out") else "completed", code=whole.get("exit_status"),
            error="error" if answer.failed else None, shown="\n".join(whole.get("output", [])))

    def step(self, step: dict) -> Told:
        told = super().step(step)
        if "command_done" in (step.get("until") or step.get("wait") or {}) and told.status == "command_done":
            self.inside = False
        return told

    def type_text(self, text: str) -> None:
        body, enter = text.removesuffix("\n"), text.endswith("\n")
        if "\n" in body:
            self.ask("paste_text", {"session_name": "case", "text": body})
            body = ""
        self.ask("send_keys", {"session_name": "case", "keys": body, "enter": enter, "literal": True})

    def type_keys(self, keys: list[str]) -> None:
        operations = [{"session_name": "case", "keys": key, "enter": False} for key in keys]
        self.ask("send_keys_batch", {"operations": operations})

    def look(self) -> str:
        whole = self.ask("snapshot_pane", {"session_name": "case"}).whole
        return re.sub(r"\n+$", "", whole.get("content", ""))
