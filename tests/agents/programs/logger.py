"""Prints a line every 50 ms while it reads keys in raw mode; ends after the given number of lines, or by `q`."""

import os
import select
import sys
import termios
import tty

before = termios.tcgetattr(0)
tty.setcbreak(0)
try:
    for number in range(int(sys.argv[1])):
        print(f"request {number} handled", flush=True)
        if select.select([0], [], [], 0.05)[0] and os.read(0, 1) == b"q":
            print("closing", flush=True)
            break
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
