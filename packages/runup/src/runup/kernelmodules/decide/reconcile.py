"""Decides everything that is written for kernel modules, in one place: `Observed` of one name in, `Plan` out.

A PreflightValidationOCP creates the PreflightValidation of its name, which examines the Modules; either may exist
alone. A pass patches each object's status at most once, and not at all if nothing changed: while nothing else changes,
passes soon plan no more writes. Questions to registries, and for ConfigMaps and Secrets, are in the plan's `work`.
"""

from __future__ import annotations

from datetime import datetime

from runup.kernelmodules.decide import release_validations, validations
from runup.kernelmodules.decide.external_queries import Question
from runup.kernelmodules.decide.observed import Observed
from runup.process.plan import Plan


def reconcile(observed: Observed, *, now: datetime) -> Plan[Question]:
    """Returns the plan for `observed` at `now` (UTC)."""
    parts = (release_validations.decide(observed, now=now), validations.decide(observed, now=now))
    waits = [part.requeue_after_s for part in parts if part.requeue_after_s is not None]
    return Plan(
        tuple(action for part in parts for action in part.actions),
        min(waits, default=None),
        tuple(dict.fromkeys(question for part in parts for question in part.work)),
    )
