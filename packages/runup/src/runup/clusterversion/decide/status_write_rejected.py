"""Handles a status that the API server rejected: reports it, writes the rest, and never resends it unchanged.

Everything written fits the definition that our releases carry; the installed one may be older, or somebody's own.
`RejectedFields` lives as long as the process: another operator comes with another definition and may try again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kubekit.api.conditions import find, without_condition
from kubekit.api.meta_v1 import Condition
from kubekit.lang.text import cut, printable
from runup.api.config_v1 import ClusterVersionStatus
from runup.clusterversion.decide import status as statuses

JSON = dict[str, Any]
TYPE = "StatusWriteRefused"
_MAX_MESSAGE = 1000
_MAX_REMEMBERED = 200
_FIELD = re.compile(r"status\.([a-zA-Z]+)")
_ATTRIBUTES = {
    "desired": "desired",
    "history": "history",
    "observedGeneration": "observed_generation",
    "versionHash": "version_hash",
    "capabilities": "capabilities",
    "conditions": "conditions",
    "availableUpdates": "available_updates",
    "conditionalUpdates": "conditional_updates",
    "conditionalUpdateRisks": "conditional_update_risks",
}


@dataclass(frozen=True, slots=True)
class RejectedFields:
    """Digests of the field values that were rejected, and the API server's latest message."""

    values: frozenset[tuple[str, str]] = frozenset()
    message: str = ""

    def and_also(self, fields: JSON, causes: Iterable[str], message: str) -> RejectedFields:
        """Adds a rejection: of the `fields` sent those that `causes` (paths) name, else all but the conditions."""
        # Without a named field all are suspects but the conditions, which are needed to report this.
        rejected_names = {match[1] for cause in causes if (match := _FIELD.match(cause))} & fields.keys()
        rejected_names = rejected_names or (fields.keys() - {"conditions"}) or set(fields)
        new = {(name, _digest(fields[name])) for name in rejected_names}
        # Forgetting all of them costs one more attempt each, and bounds the memory.
        remembered = self.values if len(self.values) < _MAX_REMEMBERED else frozenset()
        return RejectedFields(remembered | new, message)


def keep_rejected_fields(
    stored: ClusterVersionStatus, wanted_status: ClusterVersionStatus, refused: RejectedFields, *, now: datetime
) -> ClusterVersionStatus:
    """Returns `wanted_status` with the rejected fields as in `stored`, and a condition that reports the rejection."""
    rejected_fields = _fields_rejected_again(stored, wanted_status, refused)
    if not rejected_fields:
        return wanted_status
    without_rejected = replace(
        wanted_status, **{_ATTRIBUTES[name]: getattr(stored, _ATTRIBUTES[name]) for name in rejected_fields}
    )
    before = find(stored.conditions, TYPE)
    text = (
        f"The API server refuses what {', '.join(sorted(rejected_fields))} should say, "
        f"so it is as before: {refused.message}"
    )
    condition = Condition(
        type=TYPE,
        status="True",
        reason="StatusInvalid",
        message=cut(printable(text), _MAX_MESSAGE),
        last_transition_time=before.last_transition_time if before else now,
    )
    reporting = replace(without_rejected, conditions=(*without_condition(without_rejected.conditions, TYPE), condition))
    # The report itself was rejected: nothing more can be said in the status.
    if "conditions" in _fields_rejected_again(stored, reporting, refused):
        return replace(without_rejected, conditions=stored.conditions)
    return reporting


def _fields_rejected_again(
    stored: ClusterVersionStatus, wanted_status: ClusterVersionStatus, refused: RejectedFields
) -> list[str]:
    """Returns the fields whose value is the one that the API server has rejected before."""
    if not refused.values:
        return []
    fields, _gone = statuses.patch(stored, wanted_status, fresh=False)
    return [name for name, value in fields.items() if (name, _digest(value)) in refused.values]


def _digest(value: Any) -> str:
    """Returns a digest that ignores times: they change often, and do not change why a value was rejected."""
    return hashlib.sha256(json.dumps(_without_times(value), sort_keys=True, default=str).encode()).hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if not key.endswith("Time")}
    return [_without_times(item) for item in value] if isinstance(value, list | tuple) else value
