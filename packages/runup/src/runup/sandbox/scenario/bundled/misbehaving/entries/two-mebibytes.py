#!/usr/bin/env python3
"""Writes a report of 2 MiB, twice what is read."""

from runup.sandbox.scenario.misbehaviour import report, wait_for_sigterm, write

write(report(message="x" * (2 << 20)))
wait_for_sigterm()
