"""A gate of an update, its state, and the conjunction of several gates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

State = Literal["Open", "Closed", "Unknown"]
OPEN: State = "Open"
CLOSED: State = "Closed"
UNKNOWN: State = "Unknown"

# The exit codes of `runup upgrade gate`, which are those of a preflight.
EXIT_OPEN, EXIT_CLOSED, EXIT_UNKNOWN = 0, 2, 3


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one gate. Only the state Open lets an update start: Unknown does not.

    `until` is the time at which the state may change without any other change. `evidence` is what the gate was
    evaluated on: digests, times and names.
    """

    name: str
    state: State
    reason: str
    message: str
    until: datetime | None = None
    evidence: dict[str, str] = {}


class Verdict(msgspec.Struct, frozen=True):
    """All gates of an update; an update may start if there is at least one gate and every gate is open.

    `final`: the run has begun or ended, which its only gate describes, and the verdict does not change any more.
    """

    gates: tuple[Gate, ...]
    final: bool = False

    @property
    def open(self) -> bool:
        """Reports whether the update may start."""
        return bool(self.gates) and all(gate.state == OPEN for gate in self.gates)

    @property
    def closed_by(self) -> Gate | None:
        """The first gate that is not open, or None."""
        return next((gate for gate in self.gates if gate.state != OPEN), None)

    @property
    def reason(self) -> str:
        """The reason of the condition GatesOpen."""
        if self.final:
            return self.gates[0].reason
        return self.closed_by.reason if self.closed_by else "AllOpen" if self.open else "NoGates"

    @property
    def exit_code(self) -> int:
        """The exit code: closed if any gate is closed, unknown if the rest is not all known."""
        states = {gate.state for gate in self.gates}
        return EXIT_OPEN if self.open else EXIT_CLOSED if CLOSED in states else EXIT_UNKNOWN

    def until(self, now: datetime) -> datetime | None:
        """Returns the next time at which a gate may change by itself, None if none will."""
        return min((gate.until for gate in self.gates if gate.until is not None and gate.until > now), default=None)


def in_order(gates: Sequence[Gate | None]) -> Verdict:
    """Returns the verdict on these gates in their order, without those that do not apply."""
    return Verdict(tuple(gate for gate in gates if gate is not None))
