#!/usr/bin/env python3
"""Takes 16 MiB more every 20 ms until it is killed."""

import time

taken = []
while True:
    taken.append(b"x" * (16 << 20))
    time.sleep(0.02)
