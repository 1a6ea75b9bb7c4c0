#!/usr/bin/env python3
"""Names a risk as no risk may be named."""

from runup.sandbox.scenario.misbehaviour import report, risk, wait_for_sigterm, write

write(report(risks=[risk(name="some risk; with spaces")]))
wait_for_sigterm()
