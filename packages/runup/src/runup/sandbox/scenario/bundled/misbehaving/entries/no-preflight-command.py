#!/usr/bin/env python3
"""A release from before there were preflights: it does not know the command."""

import sys

command = sys.argv[1] if len(sys.argv) > 1 else ""
sys.exit(f'unknown command "{command}" for "cluster-version-operator"')
