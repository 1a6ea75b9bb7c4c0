#!/usr/bin/env python3
"""Puts a symbolic link where the report should be."""

from runup.sandbox.scenario.misbehaviour import report_path, wait_for_sigterm

path = report_path()
path.unlink(missing_ok=True)
path.symlink_to("/etc/passwd")
wait_for_sigterm()
