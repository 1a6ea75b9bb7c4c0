#!/usr/bin/env python3
"""Takes 16 MiB more every 20 ms until it is killed."""

import threading

taken = []
pause = threading.Event()
while True:
    taken.append(b"x" * (16 << 20))
    pause.wait(0.02)
