"""`status.history`: newest first, one entry for each release that the cluster was updated to.

A ClusterVersion without history is new, or was recreated. The running operator is of the release that the cluster is
at, and the ClusterOperators alone say whether that release is fully applied. If each of them says so, the history
begins as Completed, and the conditions say the same. Otherwise, or if they could not be read, the entry stays Partial.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import Release, UpdateHistory
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.view import View

MAX_ENTRIES = 100
Entries = tuple[UpdateHistory, ...]


def begin_entry(
    entries: Entries,
    release: Release,
    *,
    now: datetime,
    verified: bool = False,
    accepted_risks: str = "",
    state: Literal["Completed", "Partial"] = "Partial",
) -> Entries:
    """Returns `entries` with `release` as the newest: merged if it is that already, otherwise added."""
    # The API requires an image in every entry.
    if not release.image:
        return entries
    newest = entries[0] if entries else None
    if newest is not None and newest.image and newest.image == release.image:
        is_same = not newest.version or not release.version or newest.version == release.version
    else:
        is_same = newest is not None and bool(newest.version) and newest.version == release.version and not newest.image
    if newest is not None and is_same:
        newest = replace(
            newest,
            version=newest.version or release.version,
            image=newest.image or release.image,
            verified=newest.verified or verified,
            accepted_risks=accepted_risks or newest.accepted_risks,
        )
        return (newest, *entries[1:])
    new = UpdateHistory(
        state=state,
        started_time=now,
        completion_time=now if state == "Completed" else None,
        version=release.version,
        image=release.image,
        verified=verified,
        accepted_risks=accepted_risks,
    )
    # Only the newest entry may be without a completionTime.
    if newest is not None and newest.completion_time is None:
        entries = (replace(newest, completion_time=now), *entries[1:])
    return prune((new, *entries))


def prune(entries: Entries) -> Entries:
    """Returns at most `MAX_ENTRIES` entries; the one removed is ranked least informative.

    Source: docs/reference/upstream.md 6.3.
    """
    if len(entries) <= MAX_ENTRIES:
        return entries
    completed = next((i for i, entry in enumerate(entries) if entry.state == "Completed"), -1)
    ranked = [(_pruning_rank(entries, i, completed), i) for i in range(len(entries))]
    removed = min(ranked)[1]
    return (*entries[:removed], *entries[removed + 1 :])


def _pruning_rank(entries: Entries, index: int, latest_completed: int) -> float:
    """Returns the weight of an entry when the history is pruned: the lowest goes first."""
    # The weights are upstream's (openshift/cluster-version-operator pkg/cvo/status_history.go).
    age = 1.01 * index
    if index == len(entries) - 1 or index < 5 or index == latest_completed:
        return 1000 - age
    # "Next" means next in the list: a minor that was left and reached again has a first and a last entry each time.
    newer = next((e.version for e in reversed(entries[:index]) if e.state == "Completed"), None)
    older = next((e.version for e in entries[index + 1 :] if e.state == "Completed"), None)
    if entries[index].state == "Completed":
        minor = _version_part(entries[index].version, 1)
        inside = all(near is not None and _version_part(near, 1) == minor for near in (newer, older))
        return (0 if inside else 30) - age
    if newer is None or older is None:
        return -age
    if _version_part(newer, 1) != _version_part(older, 1):
        return 20 - age
    return (-20 if _version_part(newer, 2) != _version_part(older, 2) else 0) - age


def _version_part(version: str, number: int) -> str:
    # As upstream, this ignores the major version, and what follows the third dot: 4.1 and 5.1 are one minor, and two
    # release candidates of one patch are one patch.
    parts = version.split(".")
    return parts[number] if number < len(parts) else ""


# The operand name under which a ClusterOperator reports the version of its release.
_OPERATOR = "operator"


def complete_first_entry(
    view: View, entries: Entries, conditions: tuple[Condition, ...]
) -> tuple[Entries, tuple[Condition, ...]]:
    """Completes the new first entry and adds missing conditions if all ClusterOperators report the version as done."""
    version, operators = view.current.version, view.observed.operators
    observed = view.observed
    # A new history claims nothing that is not known (docs/decisions/0034-ends-within-seconds-and-claims-nothing.md).
    if not entries or not operators or observed.operators_error or observed.unread_operators:
        return entries, conditions
    for operator in operators:
        versions = {operand.name: operand.version for operand in operator.status.versions}
        statuses_of_operator = (status_of(operator.status.conditions, name) for name in ("Available", "Progressing"))
        if versions.get(_OPERATOR) != version or tuple(statuses_of_operator) != ("True", "False"):
            return entries, conditions
    complete = (replace(entries[0], state="Completed", completion_time=view.now), *entries[1:])
    completed_conditions = (
        Condition(type="Available", status="True", message=f"Done applying {version}"),
        Condition(type="Progressing", status="False", message=f"Cluster version is {version}"),
        Condition(type="Failing", status="False"),
    )
    missing = [condition for condition in completed_conditions if find(conditions, condition.type) is None]
    return complete, statuses.with_conditions(conditions, missing, (), now=view.now)
