"""What came of many inputs that were read in one process: counted by kind, with the slowest and what was wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Survey:
    """Counts outcomes by kind of input."""

    def __init__(self) -> None:
        self._counted: dict[str, Counter[str]] = {}
        self._wrong: list[str] = []
        self._slowest = (0.0, "")

    def take(self, kind: str, outcome: str, seconds: float, *, what: str, wrong: str = "") -> None:
        """Counts one input; `what` names it among the slowest, `wrong` says what was wrong with its outcome."""
        self._slowest = max(self._slowest, (seconds, what))
        self._counted.setdefault(kind, Counter())[outcome] += 1
        if wrong:
            self._wrong.append(wrong)

    def found(self, most_wrong: int | None = None) -> dict[str, Any]:
        """Returns all of it as the bench prints it, with as many of the wrong ones as are asked for."""
        return {
            "kinds": {kind: dict(each) for kind, each in self._counted.items()},
            "worst": {"what": self._slowest[1], "seconds": round(self._slowest[0], 4)},
            "wrong": self._wrong[:most_wrong],
        }
