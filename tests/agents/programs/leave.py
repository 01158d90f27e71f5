"""Ends without putting right what it changed in the terminal. Its argument names what is left."""

import sys
import termios
import tty

LEFT = {
    "alternate screen": "\x1b[?1049h\x1b[2J\x1b[HEDITOR",
    "old alternate screen": "\x1b[?47h\x1b[2J\x1b[HEDITOR",
    "line drawing": "\x1b(0",
    "line drawing by shift out": "\x1b)0\x0e",
    "the alignment test": "\x1b#8",
    "a saved cursor": "\x1b[5;40H\x1b7\x1b[1;1H",
    "a scroll region": "\x1b[5;10r",
    "origin mode": "\x1b[5;10r\x1b[?6h",
    "insert mode": "\x1b[4h",
    "no wrap": "\x1b[?7l",
    "the mouse": "\x1b[?1000h\x1b[?1003h\x1b[?1006h",
    "focus reports": "\x1b[?1004h",
    "kitty keys": "\x1b[>31u",
    "kitty keys set": "\x1b[=1;1u",
    "modify other keys": "\x1b[>4;2m",
    "application keys": "\x1b[?1h\x1b=",
    "a hidden cursor": "\x1b[?25l",
    "colours": "\x1b[1;31;44m",
    "concealed text": "\x1b[8m",
    "a synchronized update": "\x1b[?2026h",
    "a title": "\x1b]0;left by a program\x07",
    "an open title": "\x1b]0;never ended",
    "an open device string": "\x1bPq never ended",
    "a half sequence": "\x1b[",
    "no tab stops": "\x1b[3g",
    "new line mode": "\x1b[20h",
    "reverse video": "\x1b[?5h",
    "the cursor at the bottom right": "\x1b[999;999H",
    "the cursor in the middle": "\x1b[10;30H",
    "paste mode off": "\x1b[?2004l",
    "paste mode on": "\x1b[?2004h",
    "a cleared screen": "\x1b[H\x1b[2J\x1b[3J",
    "a reset": "\x1bc",
}
kind = sys.argv[1]
if kind == "raw mode":
    tty.setraw(0)
elif kind == "no echo":
    modes = termios.tcgetattr(0)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSADRAIN, modes)
else:
    sys.stdout.write(LEFT[kind])
sys.stdout.flush()
sys.exit(6)
