"""Reads the cases: what an agent does, and what it must be told."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What the first step of a case may hold when the case has only one, written beside its name.
CASE_KEYS = {"name", "shell", "session", "files", "needs", "rival", "steps", "env"}
STEP_KEYS = {
    "run", "send", "keys", "wait", "screen", "see", "call", "args", "until", "timeout", "max_lines", "enter",
    "paste", "idle", "output", "contains", "lacks", "matches", "code", "status", "state", "mode", "error",
    "says", "text_matches", "bytes_max", "tells", "lines_total", "lasts",
}
VERBS = ("run", "send", "keys", "wait", "screen", "see", "call")


@dataclass
class Case:
    """One task. `session` holds arguments of `create_session`."""

    category: str
    name: str
    steps: list[dict]
    session: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)
    rival: bool = False

    @property
    def title(self) -> str:
        return f"{self.category}/{self.name}"


# How a session of each shell is made; bash is what a session without a command gets.
SHELLS = {
    "bash": {},
    "zsh": {"command": "zsh", "args": []},
    "fish": {"command": "fish", "args": []},
    "dash": {"command": "dash", "args": []},
    "ksh": {"command": "ksh93", "args": []},
    "mksh": {"command": "mksh", "args": []},
    "ash": {"command": "busybox", "args": ["ash"]},
}
NEEDS = {"ksh": "ksh93", "ash": "busybox"}


def read(path: Path) -> list[Case]:
    """The cases of one category."""
    table = tomllib.loads(path.read_text())
    common = {key: table[key] for key in ("shell", "needs", "env") if key in table}
    entries = [filled for entry in table["case"] for filled in fill(entry)]
    cases = [parse(path.stem, {**common, **entry}) for entry in entries]
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two cases of one name: {sorted({n for n in names if names.count(n) > 1})}")
    return cases


def fill(entry: dict) -> list[dict]:
    """One entry for each value of its `each`, which stands where `{each}` is; `{pad:N}` is N letters."""

    def put(value, each):
        if value == "{each}":
            return each
        if isinstance(value, str):
            return re.sub(r"\{pad:(\d+)\}", lambda found: "x" * int(found[1]), value.replace("{each}", str(each)))
        if isinstance(value, dict):
            return {key: put(inner, each) for key, inner in value.items()}
        return [put(inner, each) for inner in value] if isinstance(value, list) else value

    return [put({key: entry[key] for key in entry if key != "each"}, each) for each in entry.get("each", [""])]


def parse(category: str, entry: dict) -> Case:
    where = f"{category}/{entry.get('name')}"
    step = {key: value for key, value in entry.items() if key not in CASE_KEYS}
    steps = entry.get("steps") or [step]
    if "steps" in entry and step:
        raise ValueError(f"{where}: unknown keys {sorted(step)}")
    for step in steps:
        if unknown := set(step) - STEP_KEYS:
            raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
        if sum(verb in step for verb in VERBS) != 1:
            raise ValueError(f"{where}: a step has exactly one of {VERBS}: {step}")
    shell = entry.get("shell", "bash")
    session = {**SHELLS[shell], **entry.get("session", {})}
    session["env"] = {**entry.get("env", {}), **session.get("env", {})}
    needs = [NEEDS.get(shell, shell), *entry.get("needs", [])]
    return Case(category, entry["name"], steps, session, entry.get("files", {}), needs, entry.get("rival", False))


def read_all() -> list[Case]:
    return [case for path in sorted((HERE / "cases").glob("*.toml")) for case in read(path)]
