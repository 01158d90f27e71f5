"""Plays cases side by side and collects their verdicts."""

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from cases import HERE, Case
from judge import Finding, judge, worst
from told import Hung


@dataclass
class Result:
    """What became of one case."""

    case: Case
    verdict: str
    why: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    calls: int = 0
    seconds: float = 0.0


def play(case: Case, open_driver, place: Path) -> Result:
    """Plays one case in the empty directory `place`."""
    place.mkdir(parents=True)
    for name, text in case.files.items():
        (place / name).write_text(text)
    session = {**case.session, "cwd": str(place)}
    given = {name: value.replace("{place}", str(place)) for name, value in session["env"].items()}
    session["env"] = {"P": str(HERE / "programs"), **given}
    result = Result(case, "right")
    findings = []
    started = time.monotonic()
    driver = None
    try:
        driver = open_driver(session)
        for number, step in enumerate(case.steps, 1):
            told = driver.do(step)
            result.calls += told.calls
            result.sizes.append(told.size)
            finding = judge(step, told)
            findings.append(finding)
            if finding.verdict != "right":
                result.why.append(f"step {number} {shown(step)}: {finding.why}")
            if finding.verdict in ("wrong", "hung") or (finding.verdict == "unknown" and told.error):
                break
    except Hung as hung:
        findings.append(Finding("hung"))
        result.why.append(str(hung))
    except (OSError, RuntimeError) as error:
        findings.append(Finding("wrong"))
        result.why.append(f"{type(error).__name__}: {error}")
    finally:
        if driver:
            try:
                driver.close()
            except (Hung, OSError) as error:
                findings.append(Finding("hung"))
                result.why.append(f"the session did not end: {error}")
    result.seconds = time.monotonic() - started
    result.verdict = worst(findings).verdict
    return result


def shown(step: dict) -> str:
    verb = next(verb for verb in ("run", "send", "keys", "wait", "screen", "see", "call") if verb in step)
    return f"{verb} {str(step[verb])[:120]!r}"


def play_all(cases: list[Case], open_driver, root: Path, jobs: int, report) -> list[Result]:
    """Plays all, at most `jobs` at once, and calls `report` with each result that comes."""
    results = []
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(play, case, open_driver, root / f"w/{n}") for n, case in enumerate(cases)]
        try:
            for future in as_completed(futures):
                results.append(future.result())
                report(results[-1])
        finally:
            pool.shutdown(cancel_futures=True)
    return results


class Needs:
    """Which needs of cases this machine has; each is looked for once."""

    def __init__(self, path: str):
        self.path = path
        self.known: dict[str, bool] = {}
        self.lock = threading.Lock()

    def has(self, need: str) -> bool:
        """A need is a program, or a shell line that succeeds."""
        with self.lock:
            if need not in self.known:
                line = need if " " in need else f"command -v {need}"
                done = subprocess.run(["sh", "-c", line], env={"PATH": self.path}, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.known[need] = done.returncode == 0
            return self.known[need]

    def lacks(self, case: Case) -> list[str]:
        return [need for need in case.needs if not self.has(need)]
