"""Objects out of somebody's records, which are stored as they were: with their status, their times, owners and uid.

Told by a label, from an administrator only. Such an object is not judged: another server held it, and what is wrong
with it is what is to be seen.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.kinds import Kind
from kubesandbox.apiserver.metadata import meta, rfc3339

JSON = dict[str, Any]
IMPORTED = "sandbox.runup.dev/imported"
"""Label of objects that came out of a dump; no controller of the sandbox touches them."""


def is_restored(obj: JSON, user: User | None) -> bool:
    """Whether `obj`, which is to be created, is to be stored as it is."""
    labels = meta(obj).get("labels")
    named = isinstance(labels, dict) and IMPORTED in labels and bool(meta(obj).get("name"))
    return named and user is not None and "system:masters" in user.groups


def stamp(kind: Kind, obj: JSON, now: datetime) -> None:
    """Give it what every object has and it does not bring."""
    metadata = meta(obj)
    metadata.setdefault("uid", str(uuid.uuid4()))
    metadata.setdefault("creationTimestamp", rfc3339(now))
    if kind.generation or kind.custom:
        metadata.setdefault("generation", 1)
