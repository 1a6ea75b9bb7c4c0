#!/usr/bin/env python3
"""Leaves out the url that every risk must carry."""

from runup.sandbox.scenario.misbehaviour import report, risk, wait_for_sigterm, write

without = {name: value for name, value in risk().items() if name != "url"}
write(report(risks=[without]))
wait_for_sigterm()
