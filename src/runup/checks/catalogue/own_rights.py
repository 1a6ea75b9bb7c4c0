"""Computes the rights that the checks of this release need."""

from __future__ import annotations

from runup.checks.catalogue import CHECKS
from runup.checks.decide import rights
from runup.preflight.decide.service_account import Right


def own_rights() -> tuple[Right, ...]:
    """Returns what this release's Python checks read; an image without the file of reads is given the same."""
    return rights.of_checks(CHECKS)
