"""What `ls --daemon --prometheus` prints, read by Prometheus' own Python parser."""

import os
import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

from harness import Checks, daemon

SECONDS = 20


def termgate(running, *words: str) -> str:
    """Runs one command against the daemon, and gives back what it printed."""
    environment = {**os.environ, "TERMGATE_SOCKET": str(running.root / "operator.sock")}
    command = [os.environ["TERMGATE_BIN"], *words]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=SECONDS
    ).stdout


def story(running, checks: Checks) -> None:
    termgate(running, "new", "--name", "metrics", "--", "cat")
    text = termgate(running, "ls", "--daemon", "--prometheus")
    families = list(text_string_to_metric_families(text))
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    names = [family.name for family in families]
    checks.equal("every family comes once", len(names), len(set(names)))
    checks.that("every family is ours", all(name.startswith("termgate_") for name in names), names)
    checks.that("every family says what it is", all(family.documentation for family in families))
    kinds = {family.type for family in families}
    checks.equal("every family has a type", kinds, {"gauge", "counter"})
    wrong = [
        sample.name
        for family in families
        for sample in family.samples
        if sample.name.endswith("_total") != (family.type == "counter")
    ]
    checks.equal("exactly the counters end in _total", wrong, [])
    checks.equal("a session was created", samples[("termgate_sessions_created_total",)], 1.0)
    running_now = samples[("termgate_sessions", ("state", "running"))]
    checks.equal("a session runs", running_now, 1.0)
    created = samples[("termgate_tool_calls_total", ("outcome", "ok"), ("tool", "create_session"))]
    checks.equal("the call that made it is counted", created, 1.0)
    later = text_string_to_metric_families(termgate(running, "ls", "--daemon", "--prometheus"))
    went = next(family for family in later if family.name == "termgate_connections")
    before = samples[("termgate_connections_total",)]
    checks.that("a counter grows", went.samples[0].value > before, went)


def main() -> None:
    checks = Checks("metrics")
    with daemon("--allow-write") as running:
        story(running, checks)
    print(f"metrics: {checks.passed} passed, {checks.failed} failed", flush=True)
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
