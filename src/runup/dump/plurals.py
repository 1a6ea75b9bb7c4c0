"""The resource that a kind is served as, where nothing but the kind's name tells it."""

from __future__ import annotations


def guess_plural(kind: str) -> str:
    """The plural that a kind most likely has (the rule of apimachinery's UnsafeGuess)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return lower + "es"
    if lower.endswith("y"):
        return lower[:-1] + "ies"
    return lower + "s"
