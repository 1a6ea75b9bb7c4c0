#!/usr/bin/env python3
"""Crashes at once, as a release with a missing library would."""

import sys

sys.stderr.write("loading checks\n")
raise RuntimeError("checks/storage: index out of range")
