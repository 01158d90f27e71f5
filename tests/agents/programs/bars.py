"""Repaints several lines in place, as `docker pull` does; the last picture stays."""

import sys
import time

LAYERS = ["a1b2c3", "d4e5f6", "0789ab"]
for step in range(int(sys.argv[1]) + 1):
    if step:
        sys.stdout.write(f"\x1b[{len(LAYERS)}A")
    for number, layer in enumerate(LAYERS):
        done = min(100, step * (10 + number * 10))
        state = "Pull complete" if done == 100 else f"Downloading {done:3d}%"
        sys.stdout.write(f"\x1b[2K\r{layer}: {state}\n")
    sys.stdout.flush()
    time.sleep(0.02)
print("Status: Downloaded newer image")
