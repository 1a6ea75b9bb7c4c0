"""Turns `spec.desiredUpdate` into a request. `mode` is read before anything else, and an unknown mode is refused.

This prevents an operator that looks at version and image first from starting the update that the administrator only
wanted to have checked.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import Update
from runup.clusterversion.decide import gates

PREFLIGHT = "Preflight"


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request without a target (risks may still be accepted)."""


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """A request to check the target and change nothing."""

    update: Update


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A request to update to the target."""

    update: Update


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is refused.

    `message` begins in lower case. `invalid` is the Invalid condition's message, empty if it has none.
    """

    reason: str
    message: str
    invalid: str = ""


Request = Nothing | PreflightRequest | UpdateRequest | Refused


def read(
    desired: Update | None, open_gates: AbstractSet[str], feature_gate: FeatureGate | None, version: str
) -> Request:
    """Returns the request in `desired`, on a cluster of `version` with these gates."""
    if desired is None:
        return Nothing()
    # A later API's mode must not start an update (docs/decisions/0016-a-preflight-request-cannot-become-an-update.md).
    if desired.mode not in ("", PREFLIGHT):
        return Refused(
            "UnknownMode",
            f"mode {desired.mode!r} is not known; use {PREFLIGHT!r}, or clear the request.",
            f'spec.desiredUpdate.mode: Unsupported value: "{desired.mode}": supported values: "{PREFLIGHT}"',
        )
    if desired.mode == PREFLIGHT and gates.PREFLIGHT not in open_gates:
        why = gates.why_closed(feature_gate, version, gates.PREFLIGHT)
        return Refused(
            "FeatureGateDisabled",
            f"{why}. Enable it, or clear the request (`runup upgrade --clear-preflight`).",
        )
    if desired.mode == PREFLIGHT:
        if desired.version or desired.image:
            return PreflightRequest(desired)
        message = "a preflight needs a target: set version or image together with mode, or clear the request."
        return Refused(
            "TargetMissing", message, "spec.desiredUpdate: must specify version or image when mode is Preflight"
        )
    # Accepted risks may be given without a target.
    if not (desired.version or desired.image or desired.architecture):
        return Nothing()
    return UpdateRequest(desired)


def accepted_names(desired: Update | None, open_gates: AbstractSet[str]) -> frozenset[str]:
    """Returns the names of the risks that the administrator accepts; none if the gate is closed."""
    if desired is None or gates.ACCEPT_RISKS not in open_gates:
        return frozenset()
    return frozenset(desired.accepted_names)
