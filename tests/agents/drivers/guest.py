"""What drivers of other makers' servers share: one server a session, and an agent that looks until a prompt is back.

These servers tell no end of what was typed, so the agent that is played here does what their pages
suggest: it types, looks, and looks again until the prompt is back, the words that it waits for are
there, or, where a program asks, two looks are equal.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from drivers.rpc import Answer, Rpc
from judge import expected_status, several
from told import Told

# An agent takes at least this long from one call to the next.
LOOK_S = 0.4
# The last row of a terminal whose shell, interpreter or debugger waits for a command.
PROMPT = re.compile(r"(^|\n)([^\n]*[#$%>❯]|\((gdb|Pdb)\)) ?$")


class Gone(Exception):
    """The server says that it cannot show the terminal any more."""


class Guest:
    """One server and its one session. Subclasses name the calls."""

    command: list[str]

    def __init__(self, place: Path, session: dict, root: Path, path: str):
        home = self.home(place)
        home.mkdir(exist_ok=True)
        (home / ".zshrc").touch()
        self.mark = f"HOME={home}"
        self.name = f"case{place.name}"
        self.environment = {
            "PATH": path, "HOME": str(home), "TMUX_TMPDIR": str(home), "SHELL": "/bin/bash", "LANG": "C.UTF-8",
            "TERM": "xterm-256color", **session["env"]}
        self.server = subprocess.Popen(
            [str(root / self.command[0]), *self.command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=self.environment, cwd=place)
        self.rpc = Rpc(self.server.stdout.fileno(), self.server.stdin.fileno())
        self.calls = 0
        self.text = ""
        shell = " ".join([session.get("command", "bash"), *session.get("args", [])])
        self.open(str(place), shell)
        # What stands before the cursor of an idle shell.
        self.prompt = self.settle(15).split("\n")[-1].strip()
        self.typed = ""

    def home(self, place: Path) -> Path:
        return Path(str(place) + ".home")

    # What a subclass offers: `open`, `type_text`, `type_keys`, `look`, which answers what is shown, and
    # `look_back`, which answers what scrolled away too.
    def run(self, step: dict) -> Told:
        """Runs a command by typing it; a subclass may have something better."""
        self.type_text(step["run"] + "\n")
        if expected_status(step) == ["completed"]:
            told = self.until_prompt(step)
            if any(wanted not in told.shown for wanted in several(step.get("contains", []))):
                told.shown = self.look_back()
            return told
        told = self.until_settled()
        if "timeout" in expected_status(step) and not self.prompt_is_back(told.shown):
            told.status = "timeout"
        return told

    def ask(self, name: str, arguments: dict, timeout_s: float = 60) -> Answer:
        self.calls += 1
        answer = self.rpc.tool(name, arguments, timeout_s)
        self.text += answer.text
        return answer

    def do(self, step: dict) -> Told:
        self.calls, self.text = 0, ""
        self.typed = (step.get("run") or step.get("send") or "").rstrip("\n").split("\n")[-1][-20:]
        try:
            told = self.step(step)
        except Gone:
            told = Told(error="unknown")
        told.calls, told.text = self.calls, self.text
        return told

    def step(self, step: dict) -> Told:
        if "run" in step:
            return self.run(step)
        wanted = step.get("until") or step.get("wait") or ({"text": step["see"]} if "see" in step else {})
        if "send" in step or "keys" in step:
            if "keys" in step:
                self.type_keys(step["keys"].split())
            else:
                self.type_text(step["send"] + ("\n" if step.get("enter") else ""))
        if "command_done" in wanted:
            return self.until_prompt(step)
        if "text" in wanted or "pattern" in wanted:
            return self.until_text(wanted.get("pattern") or re.escape(wanted["text"]), step)
        told = self.until_settled()
        told.status = "idle" if "idle_ms" in wanted else None
        return told

    def until_text(self, pattern: str, step: dict) -> Told:
        return self.until_seen(lambda shown: re.search(pattern, shown), step, "matched")

    def prompt_is_back(self, shown: str) -> bool:
        """Whether the last row is a prompt, or a row below what was typed begins as the shell's prompt did."""
        rows = shown.rstrip("\n").split("\n")
        if PROMPT.search(rows[-1]):
            return True
        typed = [number for number, row in enumerate(rows) if self.typed and self.typed in row]
        below = rows[typed[-1] + 1:] if typed else rows[-1:]
        return bool(self.prompt) and any(row.startswith(self.prompt) for row in below)

    def until_seen(self, holds, step: dict, status: str) -> Told:
        deadline = time.monotonic() + step.get("timeout", 20_000) / 1000
        while True:
            time.sleep(LOOK_S)
            shown = self.look()
            if holds(shown):
                return Told(status=status, shown=shown)
            if time.monotonic() > deadline:
                return Told(status="timeout", shown=shown)

    def until_prompt(self, step: dict) -> Told:
        def back(shown: str) -> bool:
            # Behind a program that was killed the prompt may stand anywhere on its screen.
            return self.prompt_is_back(shown) or ("wait" in step and any(map(PROMPT.search, shown.split("\n"))))

        return self.until_seen(back, step, "completed" if "run" in step else "command_done")

    def until_settled(self) -> Told:
        return Told(shown=self.settle(10))

    def settle(self, longest_s: float) -> str:
        """Looks until two looks are equal, and answers the last one."""
        deadline = time.monotonic() + longest_s
        last = None
        while True:
            time.sleep(LOOK_S)
            shown = self.look()
            if shown.strip() and shown == last or time.monotonic() > deadline:
                return shown
            last = shown

    def close(self) -> None:
        self.server.terminate()
        self.server.wait(10)
        end_all(self.mark)


def end_all(mark: str) -> None:
    """Ends the processes whose environment has a variable that begins with `mark`."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                variables = (entry / "environ").read_bytes().split(b"\0")
                if any(variable.startswith(mark.encode()) for variable in variables):
                    os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            pass
