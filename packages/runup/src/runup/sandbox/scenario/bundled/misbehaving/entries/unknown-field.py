#!/usr/bin/env python3
"""Adds a field that nobody knows yet, which is allowed."""

from runup.sandbox.scenario.misbehaviour import report, wait_for_sigterm, write

write(report(weather="fine"))
wait_for_sigterm()
