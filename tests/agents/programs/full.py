"""Fills the screen with a frame of its own and waits for `q`; `repaint` paints it again ten times a second."""

import os
import select
import shutil
import sys
import termios
import tty

repaint = "repaint" in sys.argv
before = termios.tcgetattr(0)
tty.setcbreak(0)
sys.stdout.write("\x1b[?1049h\x1b[?25l")
count = 0
try:
    while True:
        size = shutil.get_terminal_size()
        sys.stdout.write("\x1b[H" + "\r\n".join(f"row {row} of a board {count if repaint else ''}\x1b[K" for row in range(size.lines)))
        sys.stdout.flush()
        count += 1
        if select.select([0], [], [], 0.1 if repaint else None)[0] and os.read(0, 1) == b"q":
            break
finally:
    sys.stdout.write("\x1b[?25h\x1b[?1049l")
    sys.stdout.flush()
    termios.tcsetattr(0, termios.TCSADRAIN, before)
print("board closed")
