"""Runs checks and logs the tracebacks of those that fail; the engine itself is pure and hands them back."""

from __future__ import annotations

from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.model import Check, Context, Snapshot


def run_logged(check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
    """Runs one check and returns its outcome; if the check raised something unexpected, logs the traceback."""
    outcome = run_check(check, snapshot, context)
    if outcome.traceback:
        # Imported here: no command of daily use needs it.
        import logging

        logging.getLogger("checks").error("check %s failed:\n%s", check.name, outcome.traceback.rstrip())
    return outcome
