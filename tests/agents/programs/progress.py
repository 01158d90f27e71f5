"""Works like ffmpeg: reads keys in raw mode while it repaints one line; `q` or the given number of steps ends it."""

import os
import select
import sys
import termios
import tty

steps = int(sys.argv[1])
before = termios.tcgetattr(0)
tty.setcbreak(0)
try:
    for step in range(steps):
        sys.stdout.write(f"\rframe={step:5d} fps= 20 time=00:00:{step % 60:02d}")
        sys.stdout.flush()
        if select.select([0], [], [], 0.05)[0] and os.read(0, 1) == b"q":
            sys.stdout.write("\nquit by key\n")
            sys.exit(3)
    sys.stdout.write("\nall frames done\n")
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
