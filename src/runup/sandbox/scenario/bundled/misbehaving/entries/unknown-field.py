#!/usr/bin/env python3
"""Adds a field that nobody knows yet, which is allowed."""

from runup.sandbox.scenario.misbehaviour import report, stay, write

write(report(weather="fine"))
stay()
