"""Which rights the checks of this very release need."""

from __future__ import annotations

from runup.checks.catalogue import CHECKS
from runup.checks.decide import rights
from runup.preflight.decide.accounts import Right


def own_rights() -> tuple[Right, ...]:
    """What the checks of this very release's Python read; also what an image without the file of reads is given."""
    return rights.of_checks(CHECKS)
