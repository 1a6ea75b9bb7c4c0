"""Guesses the resource that a kind is served as, from the kind's name alone."""

from __future__ import annotations


def guess_plural(kind: str) -> str:
    """Returns the most likely plural of a kind (the rule of apimachinery's UnsafeGuess)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return lower + "es"
    if lower.endswith("y"):
        return lower[:-1] + "ies"
    return lower + "s"
