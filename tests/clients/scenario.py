"""Two clients and an observer at one terminal: the same story for every era, SDK and way in.

A connection is given as an object with `tools`, `call`, `read`, `templates`, `complete`, `updates`
and `protocol`; nothing here knows what SDK is behind it.
"""

import anyio

WRITING = {
    "create_session",
    "manage_session",
    "acquire_lease",
    "renew_lease",
    "release_lease",
    "send_text",
    "send_keys",
    "send_mouse",
    "resize",
    "run",
}
READING = {"list_sessions", "read_screen", "read_history", "read_commands", "wait_for", "why"}
GRID = "termgate://session/{session}/grid{?since,top,rows,format}"
UPDATE_SECONDS = 20


async def scenario(doors, connect, checks) -> None:
    async with connect(doors.gateway) as ada, connect(doors.gateway) as bob:
        await tools_are_listed(ada, checks)
        session, lease = await a_session_is_created(ada, checks)
        await text_is_typed_and_read(ada, session, checks)
        await the_lease_excludes_others(ada, bob, session, lease, checks)
        await a_change_is_pushed(ada, bob, session, checks)
        await waiting_ends_in_time(ada, session, checks)
        await commands_are_run(ada, checks)
        await prompts_are_told(ada, checks)
        await templates_and_completion(ada, session, checks)
        await unknown_names_are_told(ada, checks)
        async with connect(doors.session(session)) as bound:
            await a_bound_door_needs_no_session(bound, session, checks)
        async with connect(doors.observer(session)) as observer:
            await an_observer_never_writes(observer, checks)
        await a_session_is_ended(bob, session, checks)


async def alone(command, connect, checks) -> None:
    """The story of one client, with a daemon that nobody else reaches."""
    async with connect(command) as ada:
        await tools_are_listed(ada, checks)
        session, _ = await a_session_is_created(ada, checks)
        await text_is_typed_and_read(ada, session, checks)
        await a_change_is_pushed(ada, ada, session, checks)
        await waiting_ends_in_time(ada, session, checks)
        await commands_are_run(ada, checks)
        await prompts_are_told(ada, checks)
        await templates_and_completion(ada, session, checks)
        await unknown_names_are_told(ada, checks)
        await a_session_is_ended(ada, session, checks)


async def tools_are_listed(ada, checks) -> None:
    tools = await ada.tools()
    checks.that("every tool that reads is listed", READING <= tools.keys(), sorted(tools))
    checks.that("every tool that writes is listed", WRITING <= tools.keys(), sorted(tools))
    marked = {name for name, read_only in tools.items() if read_only}
    checks.that("what reads says so", READING <= marked, sorted(marked))
    checks.that("what writes does not say that it reads", not WRITING & marked, sorted(marked))
    found = await ada.call("list_sessions")
    checks.equal("there is no session at first", found.data.get("sessions"), [])


async def a_session_is_created(ada, checks) -> tuple[str, str]:
    created = await ada.call(
        "create_session",
        name="story",
        command="bash",
        args=["--norc", "--noprofile"],
        rows=24,
        cols=80,
    )
    checks.that("a session is created", not created.failed, created.data)
    session = created.data["session"]
    checks.equal("it has its name", session["name"], "story")
    checks.that("its creator holds the lease", "lease_id" in created.data.get("lease", {}), created.data)
    return session["id"], created.data["lease"]["lease_id"]


async def text_is_typed_and_read(ada, session, checks) -> None:
    # The sum is on the screen only when the shell has run the line, not when it shows it.
    typed = await ada.call(
        "send_text",
        session=session,
        text="echo sum=$((6*7))",
        enter=True,
        paste="never",
        wait_ms=20_000,
        until={"text": "sum=42"},
    )
    checks.equal("typing waits for a pattern", typed.data.get("wait", {}).get("outcome"), "matched")
    checks.equal("it says how much was written", typed.data.get("written"), len("echo sum=$((6*7))\r"))
    screen = await ada.call("read_screen", session=session)
    checks.that("the screen shows what came of it", "sum=42" in screen.data["text"], screen.data)
    size = (screen.data["rows"], screen.data["cols"])
    checks.equal("the screen has the size that was asked for", size, (24, 80))
    since = await ada.call("read_screen", session=session, since=screen.data["watermark"])
    checks.equal("a known watermark needs no reset", since.data["reset"], False)
    checks.that("what did not change is not sent", "sum=42" not in str(since.data), since.data)
    old = await ada.call("read_screen", session=session, since=0)
    checks.that("an old one gets all of it", "sum=42" in str(old.data), old.data)


async def the_lease_excludes_others(ada, bob, session, lease, checks) -> None:
    for tool, arguments in {
        "acquire_lease": {},
        "send_text": {"text": "stray"},
        "send_keys": {"keys": "C-c"},
        "resize": {"rows": 30, "cols": 100},
    }.items():
        refused = await bob.call(tool, session=session, **arguments)
        checks.that(f"{tool} of another is refused", refused.failed, refused.data)
        checks.equal(f"{tool} says why", refused.data.get("error_code"), "lease_held")
        held_by = refused.data.get("details", {}).get("held_by", "")
        checks.that(f"{tool} says who holds it", held_by.startswith(ada.name), refused.data)
    screen = await bob.call("read_screen", session=session)
    checks.that("whoever may not write may read", "sum=42" in screen.data["text"], screen.data)
    checks.that("nothing of it was typed", "stray" not in screen.data["text"], screen.data)

    given = await ada.call("release_lease", lease_id=lease)
    checks.equal("the holder gives it back", given.data.get("outcome"), "freed")
    again = await ada.call("release_lease", lease_id=lease)
    checks.equal("giving it back twice is no error", again.data.get("outcome"), "already_gone")
    without = await ada.call("send_text", session=session, text="stray")
    checks.equal("nobody writes without a lease", without.data.get("error_code"), "lease_required")

    taken = await bob.call("acquire_lease", session=session, ttl_ms=60_000, reason="the second turn")
    checks.that("the other one acquires it", not taken.failed, taken.data)
    checks.that("its lease is another one", taken.data.get("lease_id") != lease, taken.data)
    same = await bob.call("acquire_lease", session=session)
    checks.equal("asking again is the same", same.data.get("lease_id"), taken.data.get("lease_id"))
    refused = await ada.call("send_text", session=session, text="stray")
    checks.that(
        "the former holder no longer writes",
        refused.data.get("error_code") in ("lease_held", "lease_lost"),
        refused.data,
    )


async def a_change_is_pushed(ada, bob, session, checks) -> None:
    uri = f"termgate://session/{session}/grid"
    before = await ada.read(uri)
    async with ada.updates(uri) as updates:
        await bob.call("send_text", session=session, text="echo pushed=$((40+2))", enter=True)
        with anyio.fail_after(UPDATE_SECONDS):
            # An update says that something changed, and may come for the echo alone.
            grid = before
            while not any("pushed=42" in line["text"] for line in grid["lines"]):
                updated = await updates.next()
                grid = await ada.read(uri)
        checks.equal("an update names what was subscribed to", updated, uri)
    checks.that("the watermark has grown", grid["watermark"] > before["watermark"], grid["watermark"])
    changed = await ada.read(f"{uri}?since={before['watermark']}")
    rows = {line["row"] for line in changed["lines"]}
    checks.that("a grid since then has fewer rows", 0 < len(rows) < grid["rows"], sorted(rows))


async def waiting_ends_in_time(ada, session, checks) -> None:
    waited = await ada.call("wait_for", session=session, pattern="never to be seen", timeout_ms=100)
    checks.that("a timeout is no error", not waited.failed, waited.data)
    checks.equal("a timeout is an outcome", waited.data.get("outcome"), "timeout")
    waited = await ada.call("wait_for", session=session, idle_ms=50, timeout_ms=20_000)
    checks.equal("a quiet screen is an outcome", waited.data.get("outcome"), "idle")
    refused = await ada.call("wait_for", session=session)
    checks.equal("waiting for nothing is refused", refused.data.get("error_code"), "invalid_argument")


async def commands_are_run(ada, checks) -> None:
    created = await ada.call("create_session", name="runs", command="bash", args=[])
    session = created.data["session"]["id"]
    for line, output, code in (("echo one; (exit 3)", "one", 3), ("echo two", "two", 0)):
        ran = await ada.call("run", session=session, command=line)
        told = (ran.data.get("status"), ran.data.get("output"), ran.data.get("exit_code"))
        checks.equal(f"`{line}` has its own output and code", told, ("completed", output, code))
    asks = await ada.call("run", session=session, command="read -p 'Name: ' name; echo hello $name")
    checks.equal("a command that asks ends the call", asks.data.get("status"), "needs_input")
    checks.equal("it says what is asked", asks.data.get("prompt", "").strip(), "Name:")
    busy = await ada.call("run", session=session, command="echo three")
    checks.equal("nothing else is run meanwhile", busy.data.get("error_code"), "busy")
    answered = await ada.call(
        "send_text",
        session=session,
        text="you",
        enter=True,
        wait_ms=20_000,
        until={"command_done": True},
    )
    checks.equal("its end is waited for", answered.data.get("wait", {}).get("outcome"), "command_done")
    ran = await ada.call("read_commands", session=session)
    told = [(one["command"], one["exit_code"]) for one in ran.data.get("commands", [])]
    expected = ["echo one; (exit 3)", "echo two", "read -p 'Name: ' name; echo hello $name"]
    checks.equal("what ran is known", sorted(told), sorted(zip(expected, (3, 0, 0))))
    number = asks.data.get("command_id")
    output = await ada.text(f"termgate://session/{session}/command/{number}/output")
    checks.that("so is what it printed", output.rstrip().endswith("hello you"), output)
    listed = await ada.read(f"termgate://session/{session}/commands")
    checks.equal("the list is a resource, too", len(listed.get("commands", [])), 3)
    killed = await ada.call("manage_session", session=session, action="kill")
    checks.that("its session is ended", not killed.failed, killed.data)


async def prompts_are_told(ada, checks) -> None:
    prompts = await ada.prompts()
    checks.that("prompts are listed", {"core", "leases", "secrets", "fix_error"} <= set(prompts), prompts)
    text = await ada.prompt("fix_error", command="make all")
    checks.that("a prompt has what it was given", "make all" in text, text)
    skill = await ada.text("termgate://skills/leases")
    checks.that("a skill is a resource", "lease" in skill, skill)


async def templates_and_completion(ada, session, checks) -> None:
    templates = await ada.templates()
    checks.that("the grid has a template", GRID in templates, templates)
    values = await ada.complete(GRID, "session", session[:3])
    checks.that("a session is completed", session in values or "story" in values, values)
    values = await ada.complete(GRID, "session", "nothing-like-it")
    checks.equal("what is not there is not completed", values, [])


async def unknown_names_are_told(ada, checks) -> None:
    missing = await ada.call("read_screen", session="nothing-like-it")
    checks.equal("an unknown session is told", missing.data.get("error_code"), "session_not_found")
    checks.that("an unknown tool is an error of the protocol", await ada.rejects("no_such_tool"))


async def a_bound_door_needs_no_session(bound, session, checks) -> None:
    screen = await bound.call("read_screen")
    checks.equal("a session's own door needs no name", screen.data.get("session"), session)


async def an_observer_never_writes(observer, checks) -> None:
    tools = await observer.tools()
    checks.that("an observer is shown no tool that writes", not WRITING & tools.keys(), sorted(tools))
    screen = await observer.call("read_screen")
    checks.that("an observer reads", "pushed=42" in screen.data.get("text", ""), screen.data)
    for tool, arguments in {
        "send_text": {"text": "stray"},
        "acquire_lease": {},
        "create_session": {},
    }.items():
        refused = await observer.call(tool, **arguments)
        checks.equal(f"an observer's {tool} is refused", refused.data.get("error_code"), "read_only")


async def a_session_is_ended(bob, session, checks) -> None:
    killed = await bob.call("manage_session", session=session, action="kill")
    checks.that("the holder ends the session", not killed.failed, killed.data)
    waited = await bob.call("wait_for", session=session, exit=True, timeout_ms=20_000)
    checks.equal("its end is an outcome", waited.data.get("outcome"), "exited")
    late = await bob.call("send_text", session=session, text="late")
    checks.equal("nothing is typed after it", late.data.get("error_code"), "session_exited")
    screen = await bob.call("read_screen", session=session)
    checks.that("what it left is still read", "pushed=42" in screen.data.get("text", ""), screen.data)
