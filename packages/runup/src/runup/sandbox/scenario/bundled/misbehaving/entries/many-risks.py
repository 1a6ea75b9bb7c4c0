#!/usr/bin/env python3
"""Writes 501 risks, more than the API takes in all."""

from runup.sandbox.scenario.misbehaviour import report, risk, wait_for_sigterm, write

write(report(risks=[risk(name=f"Risk{number}") for number in range(501)]))
wait_for_sigterm()
