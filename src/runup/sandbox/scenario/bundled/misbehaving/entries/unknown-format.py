#!/usr/bin/env python3
"""Writes a format of tomorrow."""

from runup.sandbox.scenario.misbehaviour import report, stay, write

write(report(format="preflight-v9-json"))
stay()
