"""What a ClusterVersion without any history is told: one just made, or made again after somebody deleted it.

The operator that runs is of the release that the cluster is at; whether all of it is applied is known from the
cluster's operators alone. Where each of them says so, the history begins as completed and the conditions say the same.
Where one does not, or where they could not be read, nothing is claimed: the entry stays Partial.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterOperator
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.history import Entries
from runup.clusterversion.decide.view import View

# The key by which a ClusterOperator tells which release it is of.
_OPERATOR = "operator"


def begin(view: View, entries: Entries, conditions: tuple[Condition, ...]) -> tuple[Entries, tuple[Condition, ...]]:
    """`entries`, the first of which was begun just now, and `conditions`, with what the cluster's operators say."""
    version, operators = view.current.version, view.observed.operators
    observed = view.observed
    if not entries or not operators or observed.operators_error or observed.unread_operators:
        return entries, conditions
    if not all(_is_at(operator, version) for operator in operators):
        return entries, conditions
    complete = (replace(entries[0], state="Completed", completion_time=view.now), *entries[1:])
    said = (
        Condition(type="Available", status="True", message=f"Done applying {version}"),
        Condition(type="Progressing", status="False", message=f"Cluster version is {version}"),
        Condition(type="Failing", status="False"),
    )
    missing = [condition for condition in said if find(conditions, condition.type) is None]
    return complete, statuses.with_conditions(conditions, missing, (), now=view.now)


def _is_at(operator: ClusterOperator, version: str) -> bool:
    """Whether it says that it is of that release, and done with it."""
    told = {operand.name: operand.version for operand in operator.status.versions}
    available, progressing = (find(operator.status.conditions, name) for name in ("Available", "Progressing"))
    well = available is not None and available.status == "True"
    busy = progressing is None or progressing.status != "False"
    return told.get(_OPERATOR) == version and well and not busy
