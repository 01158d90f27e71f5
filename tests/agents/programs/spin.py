"""Turns a spinner on one line for the given number of steps, erases it, and says that it is done."""

import sys
import time

SIGNS = '|/-\\'

for step in range(int(sys.argv[1])):
    sys.stdout.write(f"\r{SIGNS[step % 4]} working {step}")
    sys.stdout.flush()
    time.sleep(0.02)
sys.stdout.write("\r\x1b[Kdone\n")
