"""Determines which risks of an update can be lifted by accepting them, and which conditions make `--to` refuse.

Both are derived from names, versions and a stored ClusterVersion, which has no field for either, as the operator and
`oc adm upgrade` do (docs/decisions/0075, docs/reference/upstream.md 7.7).
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition, ConditionStatus
from kubekit.lang.version import leaves_minor
from runup.advice.decide import preflight_reasons, risk_names
from runup.api.config_v1 import ClusterVersion

# Conditions of ClusterVersion that keep `--to` from asking for an update, each with the words of `oc adm upgrade`.
GUARDS = {
    "Invalid": "the cluster version object is invalid, you must correct the invalid state first:",
    "Failing": "the cluster is experiencing an error reconciling {target}:",
    "Progressing": "the cluster is already upgrading:",
}


def guard_conditions(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Returns the conditions for which `--to` refuses, without `--allow-upgrade-with-warnings`."""
    guards = (find(conditions, type_) for type_ in GUARDS)
    return tuple(condition for condition in guards if condition is not None and condition.status == "True")


def lifts(name: str, applies: ConditionStatus, *, source: str, target: str) -> bool:
    """Returns whether accepting a finding called `name` lifts it for an update from `source` to `target`.

    Each of the cluster's risks of updates to another minor version makes Upgradeable False as the operator sees it
    (docs/reference/upstream.md 7.6). A ClusterVersion that is stored may be older than what a check found.
    """
    if name in preflight_reasons.NEVER_ACCEPTED:
        return False
    forbids = name == preflight_reasons.UPGRADEABLE or risk_names.forbids_minor(name)
    return not (applies == "True" and forbids and leaves_minor(source, target))


def is_acceptable(cluster: ClusterVersion, target: str, name: str, verdict: Condition | None) -> bool:
    """Returns whether accepting risk `name` lifts it for an update to version `target`.

    `verdict` is its condition Applies, or None.
    """
    if name in preflight_reasons.NEVER_ACCEPTED or (verdict and verdict.reason == preflight_reasons.PRECONDITION):
        return False
    # Upgradeable=False blocks updates to another minor version, and is False while one of these risks applies.
    not_upgradeable = status_of(cluster.status.conditions, risk_names.UPGRADEABLE) == "False"
    blocks = not_upgradeable and leaves_minor(cluster.status.desired.version, target)
    if verdict is None:
        # An API without verdicts of risks: Upgradeable alone says that one of these applies.
        return not (blocks and (name == preflight_reasons.UPGRADEABLE or risk_names.forbids_minor(name)))
    return not (blocks and verdict.status == "True" and risk_names.forbids_minor(name))
