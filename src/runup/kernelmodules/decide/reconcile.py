"""THE ONE PLACE that decides what is written for kernel modules: `Observed` of one name in, `Plan` out.

A PreflightValidationOCP makes the PreflightValidation of its name, which looks at the Modules; either may be there
alone. One patch of each object's status a pass at most, and none where nothing changed: reconciling the result of a
plan plans nothing. What is to be asked of registries, and of ConfigMaps and Secrets, is in the plan's `work`.
"""

from __future__ import annotations

from datetime import datetime

from runup.kernelmodules.decide import releases, validations
from runup.kernelmodules.decide.observed import Observed
from runup.process.plan import Plan


def reconcile(observed: Observed, *, now: datetime) -> Plan:
    """What is to be done about `observed` at `now` (UTC)."""
    parts = (releases.decide(observed, now=now), validations.decide(observed, now=now))
    waits = [part.requeue_after_s for part in parts if part.requeue_after_s is not None]
    return Plan(
        tuple(action for part in parts for action in part.actions),
        min(waits, default=None),
        tuple(dict.fromkeys(work for part in parts for work in part.work)),
    )
