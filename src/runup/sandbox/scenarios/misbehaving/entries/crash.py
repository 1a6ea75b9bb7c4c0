#!/usr/bin/env python3
"""Crashes at once, as a release with a missing library would."""

import sys

print("loading checks", file=sys.stderr)
raise RuntimeError("checks/storage: index out of range")
