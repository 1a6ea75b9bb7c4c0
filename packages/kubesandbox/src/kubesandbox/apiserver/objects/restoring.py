"""Restoring of recorded objects, which are stored unchanged: with their status, times, owners and uid.

A label requests it, from an administrator only. Such an object is not validated: it comes from another server, and its
faults are what the reader of a dump wants to see.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubesandbox.apiserver.http.messages import User
from kubesandbox.apiserver.metadata import meta, new_uid, rfc3339
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
IMPORTED = "sandbox.runup.dev/imported"
"""Label of objects that came out of a dump; no controller of the sandbox touches them."""


def is_restored(obj: JSON, user: User | None) -> bool:
    """Returns whether `obj`, which is to be created, must be stored unchanged."""
    labels = meta(obj).get("labels")
    is_marked = isinstance(labels, dict) and IMPORTED in labels and bool(meta(obj).get("name"))
    # Only administrators: a restored object can have any owner, uid and status.
    return is_marked and user is not None and "system:masters" in user.groups


def stamp_restored(kind: Kind, obj: JSON, now: datetime) -> None:
    """Sets the uid, creation time and generation that a restored object lacks."""
    metadata = meta(obj)
    metadata.setdefault("uid", new_uid())
    metadata.setdefault("creationTimestamp", rfc3339(now))
    if kind.generation or kind.custom:
        metadata.setdefault("generation", 1)
