"""Asks the terminal questions and ends without reading the answers."""

import sys

QUERIES = {
    "attributes": "\x1b[c",
    "secondary attributes": "\x1b[>c",
    "the cursor": "\x1b[6n",
    "the status": "\x1b[5n",
    "the version": "\x1b[>q",
    "kitty keys": "\x1b[?u",
    "a mode": "\x1b[?2026$p",
    "a colour": "\x1b]11;?\x07",
    "the size": "\x1b[18t",
    "a setting": "\x1bP$qm\x1b\\",
    "a capability": "\x1bP+q544e\x1b\\",
}
for name in [sys.argv[1]] if sys.argv[1:] else QUERIES:
    sys.stdout.write(QUERIES[name])
sys.stdout.flush()
