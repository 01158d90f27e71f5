"""Reads keys in raw mode and works in silence until the file `stop` is there or `q` is pressed."""

import os
import select
import sys
import termios
import tty

before = termios.tcgetattr(0)
tty.setcbreak(0)
try:
    print("working", flush=True)
    while not os.path.exists("stop"):
        if select.select([0], [], [], 0.05)[0] and os.read(0, 1) == b"q":
            sys.exit(4)
    print("work is done", flush=True)
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
