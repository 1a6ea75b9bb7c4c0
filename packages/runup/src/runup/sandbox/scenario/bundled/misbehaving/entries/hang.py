#!/usr/bin/env python3
"""Starts, and never says anything again; ends when told to."""

import signal

signal.sigwait({signal.SIGTERM})
