#!/usr/bin/env python3
"""Puts a symbolic link where the report should be."""

from runup.sandbox.scenario.misbehaviour import place, stay

path = place()
path.unlink(missing_ok=True)
path.symlink_to("/etc/passwd")
stay()
