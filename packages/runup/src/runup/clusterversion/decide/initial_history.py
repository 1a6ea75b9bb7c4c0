"""Initial history and conditions of a ClusterVersion without history: new, or recreated after it was deleted.

The running operator is of the release that the cluster is at. Whether that release is fully applied is known from the
ClusterOperators alone. If each of them says so, the history begins as Completed and the conditions say the same.
If one does not, or if they could not be read, the entry stays Partial.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterOperator
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.history import Entries
from runup.clusterversion.decide.view import View

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
    if not all(_is_at(operator, version) for operator in operators):
        return entries, conditions
    complete = (replace(entries[0], state="Completed", completion_time=view.now), *entries[1:])
    completed_conditions = (
        Condition(type="Available", status="True", message=f"Done applying {version}"),
        Condition(type="Progressing", status="False", message=f"Cluster version is {version}"),
        Condition(type="Failing", status="False"),
    )
    missing = [condition for condition in completed_conditions if find(conditions, condition.type) is None]
    return complete, statuses.with_conditions(conditions, missing, (), now=view.now)


def _is_at(operator: ClusterOperator, version: str) -> bool:
    """Returns whether the operator reports that version, is available, and is not progressing."""
    versions = {operand.name: operand.version for operand in operator.status.versions}
    available, progressing = (find(operator.status.conditions, name) for name in ("Available", "Progressing"))
    well = available is not None and available.status == "True"
    busy = progressing is None or progressing.status != "False"
    return versions.get(_OPERATOR) == version and well and not busy
