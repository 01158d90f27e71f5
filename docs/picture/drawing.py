"""Draws a film as an animated SVG: two panes of agents and one of a person above the observer's screen.

It knows no daemon. Only styles are animated, so that the picture moves where no script may run, as in
a page's <img>; who asks for less motion sees its last moment.
"""

import dataclasses
import html
import json

from film import COLS, ROWS, Film, Said

# What passes sooner would only flicker.
SEEN = 0.1
WIDTH, MARGIN, GAP = 830, 8, 10
PANE_WIDTH = (WIDTH - 2 * MARGIN - GAP) / 2
LINE, HEAD, PAD = 18, 28, 9
SAID_LINES = 15
SAID_CHAR, SCREEN_CHAR = 7.2, 7.86
SAID_COLS = int((PANE_WIDTH - 2 * PAD) / SAID_CHAR)

BACK, BAR, EDGE, TEXT, FAINT = "#0d1117", "#161b22", "#3d444d", "#e6edf3", "#9198a1"
AGENTS = {"ada": "#4493f8", "bob": "#d29922"}
PERSON = "#bc8cff"
GOOD, BAD = "#3fb950", "#f85149"
PALETTE = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a line that looks the same all over."""

    col: int
    text: str
    fill: str
    bold: bool = False


class Canvas:
    """The elements of a picture, each shown from one moment of the film to another."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.elements: list[str] = []
        self.times: dict[tuple[float, float], str] = {}

    def add(self, element: str) -> None:
        self.elements.append(element)

    def show(self, start: float, end: float, content: str) -> None:
        """Adds what is seen only from `start` until `end`."""
        if content and end > start:
            self.add(f'<g class="{self.shown(start, end)}">{content}</g>')

    def shown(self, start: float, end: float) -> str:
        key = (self.percent(start), self.percent(end))
        return self.times.setdefault(key, f"t{len(self.times)}")

    def percent(self, moment: float) -> float:
        return round(min(max(moment / self.seconds, 0), 1) * 100, 2)

    def styles(self) -> str:
        """The rules of all times; without motion, only what the last moment shows is seen."""
        rules = []
        for (start, end), name in self.times.items():
            last = end >= 100
            steps = [(0, start == 0), (start, True), (end, last)]
            frames = "".join(f"{at:g}%{{opacity:{int(on)}}}" for at, on in dict(steps).items())
            rules.append(f"@keyframes {name}{{{frames}}}")
            rules.append(f".{name}{{opacity:{int(last)};animation-name:{name}}}")
        return "".join(rules)


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def line(x: float, y: float, spans: list[Span], char: float, size: float) -> str:
    """One line; each part is held to its columns, whatever font the reader has."""
    drawn = []
    for span in spans:
        # Blanks in between would be lost, so every word stands at its own place.
        at = 0
        for word in split(span.text):
            if word.strip():
                left, width = x + (span.col + at) * char, len(word) * char
                weight = ' font-weight="700"' if span.bold else ""
                drawn.append(
                    f'<text x="{left:.1f}" y="{y:g}" textLength="{width:.1f}" font-size="{size:g}"'
                    f' fill="{span.fill}"{weight}>{escape(word)}</text>'
                )
            at += len(word)
    return "".join(drawn)


def split(text: str) -> list[str]:
    """The text in parts that do not begin, end or go on with two blanks."""
    parts, rest = [], text
    while rest:
        stripped = rest.lstrip(" ")
        if blanks := len(rest) - len(stripped):
            parts.append(rest[:blanks])
        end = stripped.find("  ")
        end = len(stripped) if end < 0 else end
        if stripped[:end]:
            parts.append(stripped[:end])
        rest = stripped[end:]
    return parts


def text(x: float, y: float, words: str, fill: str, extra: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="13" fill="{fill}"{extra}>{escape(words)}</text>'


def pane(x: float, y: float, width: float, height: float, edge: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="{BACK}"/>'
        f'<path d="M{x:g} {y + HEAD:g}v-{HEAD - 7}q0-7 7-7h{width - 14:g}q7 0 7 7v{HEAD - 7}z"'
        f' fill="{BAR}"/>' + frame(x, y, width, height, edge, 1)
    )


def frame(x: float, y: float, width: float, height: float, edge: str, thick: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="none"'
        f' stroke="{edge}" stroke-width="{thick:g}"/>'
    )


def draw(film: Film) -> str:
    """The whole picture as the text of an SVG file."""
    canvas = Canvas(film.seconds)
    top, height = MARGIN, HEAD + SAID_LINES * LINE + 2 * PAD
    holders = holdings(film)
    for index, name in enumerate(AGENTS):
        x = MARGIN + index * (PANE_WIDTH + GAP)
        agent(canvas, film, name, x, top, height, holders)
    below = top + height + GAP
    person(canvas, film, below, holders)
    below += HEAD + LINE + 2 * PAD + GAP
    screen_height = HEAD + ROWS * LINE + 2 * PAD
    observer(canvas, film, below, screen_height, holders)
    whole = below + screen_height + MARGIN
    title = (
        "Two agents share one terminal: one holds the lease and types, the other is refused, "
        "waits in line and types next, until a person takes the keyboard. An observer is sent "
        "every change."
    )
    common = f"g{{animation:{film.seconds:.2f}s step-end infinite}}"
    still = "@media(prefers-reduced-motion:reduce){g{animation:none!important}}"
    fonts = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole:g}" width="{WIDTH}"'
        f' height="{whole:g}" role="img"><title>{title}</title>'
        f"<style>text{{font-family:{fonts};white-space:pre}}{common}{canvas.styles()}{still}</style>\n"
        + "\n".join(canvas.elements)
        + "\n</svg>\n"
    )


def holdings(film: Film) -> list[tuple[float, float, str, int]]:
    """Who held the lease and how many waited, from when to when, as the observer was told."""
    told = [(0.0, "", 0)]
    for at, _, delta in film.deltas:
        for update in delta["updates"]:
            if update["type"] == "lease":
                lease = update["lease"]
                told.append((at, lease.get("by", ""), lease["waiters"]))
    ends = [at for at, _, _ in told[1:]] + [film.seconds]
    return [(at, end, by, waiters) for (at, by, waiters), end in zip(told, ends)]


def agent(canvas, film, name, x, y, height, holders) -> None:
    """The pane of one agent; its edge is bright while it holds the lease."""
    colour = AGENTS[name]
    canvas.add(pane(x, y, PANE_WIDTH, height, EDGE))
    canvas.add(text(x + PAD, y + 19, name, colour, ' font-weight="700"'))
    canvas.add(text(x + PAD + 32, y + 19, "an agent at gateway.sock", FAINT))
    right = x + PANE_WIDTH - PAD
    for start, end, by, _ in holders:
        if by.startswith(name + "#"):
            lit = frame(x, y, PANE_WIDTH, height, colour, 2)
            badge = text(right, y + 19, "● holds the lease", colour, ' text-anchor="end"')
            canvas.show(start, end, lit + badge)
    at = y + HEAD + PAD + 13
    for said in (it for it in film.said if it.who == name):
        for words in wrap(f"→ {said.tool}", call_words(said)):
            canvas.show(said.at, film.seconds, said_line(x, at, words, TEXT))
            at += LINE
        if said.answered_at - said.at > SEEN:
            pending = "… waits in line" if said.tool == "acquire_lease" else "…"
            canvas.show(said.at, said.answered_at, said_line(x, at, pending, FAINT))
        told, fill = answer_words(said)
        for words in wrap("←", told):
            canvas.show(said.answered_at, film.seconds, said_line(x, at, words, fill))
            at += LINE
        at += LINE // 3


def said_line(x: float, y: float, words: str, fill: str) -> str:
    return line(x + PAD, y, [Span(0, words, fill)], SAID_CHAR, 12)


def wrap(first: str, words: str) -> list[str]:
    lines = [first]
    for word in words.split(" "):
        if len(lines[-1]) + 1 + len(word) <= SAID_COLS:
            lines[-1] += " " + word
        else:
            lines.append("    " + word)
    return lines


def call_words(said: Said) -> str:
    """The arguments as they were sent, to be copied."""
    return json.dumps(said.arguments)


def answer_words(said: Said) -> tuple[str, str]:
    answer = said.answer
    took = said.answered_at - said.at
    if "error_code" in answer:
        return f"{answer['error_code']}: {answer['message']}", BAD
    if "epoch" in answer:
        how = f" after {took:.1f} s in line" if took > SEEN else f", ttl_ms: {answer['ttl_ms']}"
        return f"the lease is yours{how}", GOOD
    if "outcome" in answer:
        return f"outcome: {answer['outcome']}", GOOD
    if "text" in answer:
        last = [row for row in answer["text"].splitlines() if row.strip()][-2:]
        return " / ".join(last), GOOD
    if (waited := answer.get("wait")) and waited["outcome"] != "matched":
        return f"outcome: {waited['outcome']}, after {took:.1f} s", BAD
    if waited:
        changed = sum(update["type"] == "row" for update in answer["changed"]["updates"])
        return f'{waited["outcome"]} "{waited["text"]}", {changed} rows changed, {took:.1f} s', GOOD
    return f"written: {answer['written']}", GOOD


def person(canvas, film, y, holders) -> None:
    """The pane of the person, with the keys that were pressed."""
    width, height = WIDTH - 2 * MARGIN, HEAD + LINE + 2 * PAD
    canvas.add(pane(MARGIN, y, width, height, EDGE))
    x = MARGIN + PAD
    canvas.add(text(x, y + 19, "a person", PERSON, ' font-weight="700"'))
    canvas.add(text(x + 71, y + 19, "at termgate attach shop", FAINT))
    for start, end, by, _ in holders:
        if by and by.split("#")[0] not in AGENTS:
            lit = frame(MARGIN, y, width, height, PERSON, 2)
            right = MARGIN + width - PAD
            badge = text(right, y + 19, "● has the keyboard", PERSON, ' text-anchor="end"')
            canvas.show(start, end, lit + badge)
    col = 0
    for at, key in film.pressed:
        canvas.show(at, film.seconds, line(x, y + HEAD + PAD + 13, [Span(col, key, TEXT)], SAID_CHAR, 12))
        col += len(key) + 3


def observer(canvas, film, y, height, holders) -> None:
    """The screen that the observer puts together from what it is sent."""
    width = WIDTH - 2 * MARGIN
    canvas.add(pane(MARGIN, y, width, height, EDGE))
    x = MARGIN + PAD
    canvas.add(text(x, y + 19, "observer", TEXT, ' font-weight="700"'))
    canvas.add(text(x + 71, y + 19, "at s/<id>.ro.sock", FAINT))
    right = MARGIN + width - PAD
    for start, end, by, waiters in holders:
        name = by.split("#")[0]
        words = f"lease {by or 'free'}" + (f", {waiters} waiting" if waiters else "")
        fill = AGENTS.get(name, PERSON if by else FAINT)
        canvas.show(start, end, text(right, y + 19, words, fill, ' text-anchor="end"'))
    ends = [at for at, _, _ in film.deltas[1:]] + [film.seconds]
    for (at, size, delta), end in zip(film.deltas, ends):
        words = f"delta {delta['from']} → {delta['watermark']}: {size} bytes"
        canvas.show(at, end, text(x + 240, y + 19, words, FAINT))
    top = y + HEAD + PAD + 13
    for start, end, place, spans in shown_rows(film):
        canvas.show(start, end, line(x, top + place * LINE, spans, SCREEN_CHAR, 13))
    for start, end, place, col in cursors(film):
        left, above = x + col * SCREEN_CHAR, top + place * LINE - 13
        block = f'<rect x="{left:.1f}" y="{above:g}" width="8" height="17" fill="{FAINT}"/>'
        canvas.show(start, end, block)


def shown_rows(film: Film):
    """Every state of every place on the screen, from when to when."""
    rows: dict[int, list[Span]] = {}
    standing: dict[int, tuple[float, list[Span]]] = {}
    for at, _, delta in film.deltas:
        if delta.get("reset"):
            rows.clear()
        for update in delta["updates"]:
            if update["type"] == "row":
                rows[update["row"]] = spans_of(update)
        for place in range(ROWS):
            now = rows.get(delta["base_row"] + place, [])
            since, before = standing.get(place, (at, now))
            if now != before:
                yield since, at, place, before
                since = at
            standing[place] = (since, now)
    for place, (since, spans) in standing.items():
        yield since, film.seconds, place, spans


def spans_of(row: dict) -> list[Span]:
    spans, at, words = [], 0, row["text"][:COLS]
    for run in row.get("runs", []):
        if run["col"] > at:
            spans.append(Span(at, words[at : run["col"]], TEXT))
        at = run["col"] + run["len"]
        bold = "bold" in run.get("attrs", [])
        spans.append(Span(run["col"], words[run["col"] : at], colour_of(run.get("fg")), bold))
    spans.append(Span(at, words[at:], TEXT))
    return [span for span in spans if span.text]


def colour_of(colour: str | None) -> str:
    if colour is None:
        return TEXT
    if colour.startswith("#"):
        return colour
    return PALETTE[int(colour) % len(PALETTE)]


def cursors(film: Film):
    """Where the cursor was, from when to when."""
    place = None
    for at, _, delta in film.deltas:
        found = [update for update in delta["updates"] if update["type"] == "cursor"]
        now = place[1:] if place else None
        if found and found[-1]["visible"]:
            now = (found[-1]["row"] - delta["base_row"], found[-1]["col"])
        if now and (place is None or now != place[1:]):
            if place:
                yield place[0], at, *place[1:]
            place = (at, *now)
    if place:
        yield place[0], film.seconds, *place[1:]
