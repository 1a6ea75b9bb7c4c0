"""What the API server refused of a status: it is told, the rest is written, and it is never sent again unchanged.

All that is written fits the definition that our releases carry; the one that is installed may be older, or somebody's
own. `Refused` lives as long as the process: another operator comes with another definition and may try again.
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
from kubekit.lang.cut import cut
from kubekit.lang.printable import printable
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
class Refused:
    """Values of fields that were refused, as digests, and what the API server said last."""

    values: frozenset[tuple[str, str]] = frozenset()
    message: str = ""

    def and_also(self, fields: JSON, causes: Iterable[str], message: str) -> Refused:
        """With another refusal: of the `fields` sent those that `causes` (paths) name, else all but the conditions."""
        named = {found[1] for cause in causes if (found := _FIELD.match(cause))} & fields.keys()
        named = named or (fields.keys() - {"conditions"}) or set(fields)
        new = {(name, _digest(fields[name])) for name in named}
        kept = self.values if len(self.values) < _MAX_REMEMBERED else frozenset()
        return Refused(kept | new, message)


def tell(
    found: ClusterVersionStatus, wanted: ClusterVersionStatus, refused: Refused, *, now: datetime
) -> ClusterVersionStatus:
    """`wanted`, but with the refused fields as `found` has them, and a condition that says so and does fit."""
    left = _left(found, wanted, refused)
    if not left:
        return wanted
    kept = replace(wanted, **{_ATTRIBUTES[name]: getattr(found, _ATTRIBUTES[name]) for name in left})
    before = find(found.conditions, TYPE)
    text = f"The API server refuses what {', '.join(sorted(left))} should say, so it is as before: {refused.message}"
    said = Condition(
        type=TYPE,
        status="True",
        reason="StatusInvalid",
        message=cut(printable(text), _MAX_MESSAGE),
        last_transition_time=before.last_transition_time if before else now,
    )
    told = replace(kept, conditions=(*without_condition(kept.conditions, TYPE), said))
    if "conditions" in _left(found, told, refused):
        return replace(kept, conditions=found.conditions)
    return told


def _left(found: ClusterVersionStatus, wanted: ClusterVersionStatus, refused: Refused) -> list[str]:
    if not refused.values:
        return []
    fields, _gone = statuses.patch(found, wanted, fresh=False)
    return [name for name, value in fields.items() if (name, _digest(value)) in refused.values]


def _digest(value: Any) -> str:
    """The same for a value that differs in nothing but times: those move, and change nothing about a refusal."""
    return hashlib.sha256(json.dumps(_timeless(value), sort_keys=True, default=str).encode()).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not key.endswith("Time")}
    return [_timeless(item) for item in value] if isinstance(value, list | tuple) else value
