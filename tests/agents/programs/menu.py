"""Asks with a menu: arrow keys move, Enter chooses. Repaints its lines in place, as many installers do."""

import os
import sys
import termios
import tty

CHOICES = ["React", "Vue", "Svelte"]
chosen = 0


def paint(first: bool) -> None:
    if not first:
        sys.stdout.write(f"\x1b[{len(CHOICES)}A")
    for number, choice in enumerate(CHOICES):
        sys.stdout.write(f"\r\x1b[K{'❯' if number == chosen else ' '} {choice}\r\n")
    sys.stdout.flush()


before = termios.tcgetattr(0)
tty.setraw(0)
try:
    sys.stdout.write("? Select a framework: (use arrow keys)\r\n")
    paint(True)
    while (key := os.read(0, 8)) not in (b"\r", b"\n"):
        if key == b"\x03":
            raise KeyboardInterrupt
        chosen = (chosen + {b"\x1b[B": 1, b"\x1bOB": 1, b"\x1b[A": -1, b"\x1bOA": -1}.get(key, 0)) % len(CHOICES)
        paint(False)
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
print(f"chosen: {CHOICES[chosen]}")
