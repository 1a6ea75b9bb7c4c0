#!/usr/bin/env python3
"""Writes half a report, in place."""

import json

from runup.sandbox.scenario.misbehaviour import place, report, stay

text = json.dumps(report())
place().write_text(text[: len(text) // 2])
stay()
