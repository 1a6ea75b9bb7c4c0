"""Decides how a person may control a run: which values of `spec.control` it still accepts, and their effects. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import Control, UpdateRun
from runup.rollout.decide.run_steps import FINISHED, is_aborted

# What a run does with each value of `spec.control`, as the end of a sentence about it.
EFFECTS: Mapping[Control, str] = {
    "Hold": "starts no further step until `runup upgrade run resume`",
    "Run": "starts its next step once its gates are open",
    "Abort": "ends; an update that has begun is completed first",
    "Skip": "is skipped",
}


def refuse_control(run: UpdateRun, control: Control) -> None:
    """Raises InputError if a run cannot be controlled like this any more: it has ended, or has begun and is skipped."""
    name, step = run.metadata.name, run.status.step
    if step in FINISHED:
        raise InputError(f"run {name} has ended ({step}): `runup upgrade runs` lists the runs")
    if control == "Skip" and run.status.started is not None:
        raise InputError(f"run {name} has begun: `runup upgrade run abort {name}` ends it after the step in progress")
    if is_aborted(run) and control != "Abort":
        raise InputError(f"run {name} was aborted: once it has ended, delete it, and the policy creates another run")
