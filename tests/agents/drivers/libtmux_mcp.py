"""Drives libtmux-mcp: `run_command` for shell commands, keys and `snapshot_pane` for the rest, as its pages say."""

from drivers.guest import Gone, Guest
from judge import expected_status, several
from drivers.rpc import Answer
from told import Told


class LibtmuxMcp(Guest):
    command = ["venv-libtmux/bin/libtmux-mcp"]
    # Whether a program that the agent knows as interactive has the pane.
    inside = False

    def open(self, place: str, shell: str) -> None:
        self.ask("create_session", {"session_name": "case", "start_directory": place, "x": 120, "y": 40})
        # Its sessions start the user's shell only.
        if shell != "bash":
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
        if answer.failed:
            raise Gone
        whole = answer.whole
        shown = "\n".join(whole.get("output", []))
        if any(wanted not in shown for wanted in several(step.get("contains", []))):
            shown = self.look_back()
        return Told(status="timeout" if whole.get("timed_out") else "completed", code=whole.get("exit_status"), shown=shown)

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

    def until_text(self, pattern: str, step: dict) -> Told:
        limit = step.get("timeout", 20_000) / 1000
        whole = self.ask("wait_for_text", {
            "session_name": "case", "patterns": [pattern], "regex": True, "timeout": limit}, limit + 10).whole
        found = whole.get("found") or whole.get("matched_at_entry")
        return Told(status="matched" if found else "timeout",
                    shown="\n".join([*whole.get("matched_lines", []), *whole.get("tail", [])]))

    def look(self) -> str:
        return self.content(self.ask("snapshot_pane", {"session_name": "case"}), "content")

    def look_back(self) -> str:
        arguments = {"session_name": "case", "start": -2000, "max_lines": None}
        return self.content(self.ask("capture_pane", arguments), "result")

    @staticmethod
    def content(answer: Answer, member: str) -> str:
        if answer.failed:
            raise Gone
        return answer.whole.get(member, answer.text).rstrip("\n")
