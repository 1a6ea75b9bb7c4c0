"""Encodes and decodes the outcomes of a rehearsal, and builds the Unknown outcome for one that did not run.

A rehearsal needs an API server, which the process of the checks does not load. So another process runs the rehearsal,
and sends the outcomes as JSON (docs/decisions/0096).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Check, Finding
from runup.report import documentation
from runup.report.report import CheckResult

CHECK = "Rehearsal"
NOT_RUN = "RehearsalNotRun"
COMPONENT = "rehearsal"
PAGE = "rehearsal"


class EncodedOutcome(msgspec.Struct, frozen=True):
    """The outcome of one check of a rehearsal, as it is sent between processes."""

    name: str
    result: CheckResult
    message: str = ""
    findings: tuple[Finding, ...] = ()


def encode_outcomes(outcomes: Iterable[CheckOutcome]) -> bytes:
    """Returns the outcomes as JSON."""
    return msgspec.json.encode(
        [EncodedOutcome(outcome.check.name, outcome.result, outcome.message, outcome.findings) for outcome in outcomes]
    )


def decode_outcomes(data: bytes) -> tuple[CheckOutcome, ...]:
    """Returns the outcomes in JSON. Raises ValueError for invalid JSON."""
    parts = msgspec.json.decode(data, type=tuple[EncodedOutcome, ...])
    return tuple(
        CheckOutcome(check=_check(part.name), result=part.result, findings=part.findings, message=part.message)
        for part in parts
    )


def not_run_outcome(why: str, base: str = "") -> CheckOutcome:
    """Returns the Unknown of a rehearsal that came to nothing; `base` is the URL of the documentation."""
    message = f"The effects of the release on this cluster were not rehearsed: {why}"
    finding = Finding(
        name=NOT_RUN,
        message=message,
        applies=Applies.UNKNOWN,
        url=f"{base or documentation.BUILT_IN}/{PAGE}",
        remediation='Run `runup rehearse` on a machine near the cluster, or set `rehearse: "false"`.',
    )
    return CheckOutcome(check=_check(CHECK), result="Unknown", findings=(finding,), message=message)


def _check(name: str) -> Check:
    return Check(name=name, component=COMPONENT, reads=(), run=lambda _snapshot, _context: iter(()))
