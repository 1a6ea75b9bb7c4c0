#!/usr/bin/env python3
"""Names a risk as no risk may be named."""

from runup.sandbox.scenario.misbehaviour import report, risk, stay, write

write(report(risks=[risk(name="some risk; with spaces")]))
stay()
