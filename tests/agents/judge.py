"""Compares what was told with what is right."""

import re
from dataclasses import dataclass

from told import Told

# From best to worst; a case is as good as its worst step.
VERDICTS = ("right", "unknown", "wrong", "hung")
# Errors that say honestly that the server cannot know.
HONEST = {"busy", "not_supported", "unknown"}
# What a wait for a condition answers when the condition holds.
OUTCOMES = {
    "text": "matched",
    "pattern": "matched",
    "command_done": "command_done",
    "needs_input": "needs_input",
    "exit": "exited",
    "idle_ms": "idle",
    "change": "changed",
}


@dataclass(frozen=True)
class Finding:
    """One step's verdict and why."""

    verdict: str
    why: str = ""


def several(value) -> list:
    """One value or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


def worst(findings: list[Finding]) -> Finding:
    return max(findings, key=lambda finding: VERDICTS.index(finding.verdict), default=Finding("right"))


def judge(step: dict, told: Told) -> Finding:
    """The verdict on one step."""
    if told.error is not None or "error" in step:
        return of_error(step, told)
    findings = [of_status(step, told), of_code(step, told)]
    if worst(findings).verdict != "hung":
        findings += [of_output(step, told), of_text(step, told), of_state(step, told), of_members(step, told)]
    return worst(findings)


def of_error(step: dict, told: Told) -> Finding:
    expected = several(step.get("error", []))
    if told.error in expected:
        return Finding("right")
    # A task that was refused with its reason tells nothing false.
    refused = told.error == "invalid_argument" and "takes no paste" in told.text
    why = f"expected {'error ' + '|'.join(expected) if expected else 'no error'}, told {told.error or 'none'}"
    return Finding("unknown" if refused or told.error in HONEST else "wrong", f"{why}: {told.text[:300]}")


def expected_status(step: dict) -> list:
    if "status" in step:
        return several(step["status"])
    if "run" in step:
        return ["completed"]
    conditions = step.get("wait") or step.get("until") or {}
    return [OUTCOMES[name] for name in conditions if name in OUTCOMES]


def of_status(step: dict, told: Told) -> Finding:
    expected = expected_status(step)
    if not expected or told.status in expected:
        return Finding("right")
    why = f"expected status {'|'.join(expected)}, told {told.status}"
    if told.status == "timeout":
        return Finding("hung", why)
    return Finding("unknown" if told.status in ("unknown", None) else "wrong", why)


def of_code(step: dict, told: Told) -> Finding:
    expected = step.get("code")
    if expected is None and "run" in step and expected_status(step) == ["completed"]:
        expected = 0
    if expected is None:
        return Finding("right")
    # "none" stands for a code that nobody can know.
    expected = several(expected)
    if told.code in expected or (told.code is None and "none" in expected):
        return Finding("right")
    verdict = "unknown" if told.code is None else "wrong"
    return Finding(verdict, f"expected code {'|'.join(map(str, expected))}, told {told.code}")


def of_output(step: dict, told: Told) -> Finding:
    if "output" in step and told.output != step["output"]:
        return Finding("wrong", f"expected output {step['output'][:600]!r}, told {(told.output or '')[:600]!r}")
    seen = told.output if told.output is not None else told.shown
    for wanted in several(step.get("contains", [])):
        if wanted not in seen:
            return Finding("wrong", f"expected {wanted!r} in it, told {seen[-600:]!r}")
    for unwanted in several(step.get("lacks", [])):
        if unwanted in seen:
            return Finding("wrong", f"expected no {unwanted!r} in it, told {seen[-600:]!r}")
    if "matches" in step and not re.search(step["matches"], seen):
        return Finding("wrong", f"expected {step['matches']!r} to match, told {seen[-600:]!r}")
    return Finding("right")


def of_text(step: dict, told: Told) -> Finding:
    for wanted in several(step.get("says", [])):
        if wanted not in told.text:
            return Finding("wrong", f"expected {wanted!r} in the text, told {told.text[:600]!r}")
    if "text_matches" in step and not re.search(step["text_matches"], told.text):
        return Finding("wrong", f"expected {step['text_matches']!r} to match the text, told {told.text[:600]!r}")
    if told.size > step.get("bytes_max", told.size):
        return Finding("wrong", f"expected at most {step['bytes_max']} bytes, told {told.size}: {told.text[:200]!r}")
    return Finding("right")


def of_state(step: dict, told: Told) -> Finding:
    for name, value in (("state", told.state), ("mode", told.mode)):
        expected = several(step.get(name, []))
        if expected and value not in expected:
            verdict = "unknown" if value in ("unknown", None) else "wrong"
            return Finding(verdict, f"expected {name} {'|'.join(expected)}, told {value}")
    return Finding("right")


def of_members(step: dict, told: Told) -> Finding:
    expectations = dict(step.get("tells", {}))
    if "lines_total" in step:
        expectations["lines_total"] = step["lines_total"]
    for path, expected in expectations.items():
        value = told.whole
        for name in path.split("."):
            index = int(name) if isinstance(value, list) and re.fullmatch(r"-?\d+", name) else None
            try:
                value = value[index] if index is not None else (value or {}).get(name)
            except IndexError:
                value = None
        if value != expected:
            return Finding("wrong", f"expected {path} = {expected!r}, told {value!r}")
    return Finding("right")
