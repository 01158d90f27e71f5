"""Serves like a development server: says that it is ready and reads keys in raw mode; prints nothing more."""

import os
import sys
import termios
import tty

before = termios.tcgetattr(0)
tty.setcbreak(0)
try:
    print("  ready in 12 ms\n\n  Local: http://localhost:5173/\n  press h + enter to show help", flush=True)
    while True:
        key = os.read(0, 1)
        if key == b"q":
            print("closing", flush=True)
            sys.exit(0)
        if key == b"h":
            print("  press q + enter to quit", flush=True)
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
