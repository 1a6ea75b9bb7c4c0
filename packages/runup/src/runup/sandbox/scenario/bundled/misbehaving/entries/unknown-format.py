#!/usr/bin/env python3
"""Writes a format of tomorrow."""

from runup.sandbox.scenario.misbehaviour import report, wait_for_sigterm, write

write(report(format="preflight-v9-json"))
wait_for_sigterm()
