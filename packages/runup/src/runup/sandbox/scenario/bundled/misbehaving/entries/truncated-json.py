#!/usr/bin/env python3
"""Writes half a report, in place."""

import json

from runup.sandbox.scenario.misbehaviour import report, report_path, wait_for_sigterm

text = json.dumps(report())
report_path().write_text(text[: len(text) // 2])
wait_for_sigterm()
