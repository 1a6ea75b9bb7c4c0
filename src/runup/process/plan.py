"""What a reconcile decided, as a value. `runup.process.execute` carries it out, and nothing else writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of what we own of an object; `object` carries apiVersion, kind and metadata.name.

    `where_namespace`: it is of no use, and no error, where its namespace is not there. `optional`: a refusal is logged,
    and the plan goes on; it is planned again.
    """

    resource: Resource
    object: JSON
    force: bool = True
    where_namespace: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object; one that is gone already is fine. `uid` guards against a namesake made since we looked."""

    resource: Resource
    key: NamespacedName
    uid: str = ""
    propagation: Literal["Foreground", "Background", "Orphan"] = "Background"


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Fields of a status to set, whole, and fields to remove; `resource_version` makes an old decision a conflict.

    Null is a value here, as in a JSON patch: a merge patch loses every null, also those inside lists, and some fields
    of the API need theirs. `fresh`: the object has no status yet, and `fields` is all of it.
    """

    resource: Resource
    key: NamespacedName
    fields: JSON
    gone: tuple[str, ...]
    resource_version: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """An event on an object, for `kubectl describe`."""

    resource: Resource
    key: NamespacedName
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Action = Apply | Delete | PatchStatus | Event


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in the order in which they are to be done, and when to look again if nothing happens before."""

    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
    # Work that takes long and whose state is observed like anything else: a name and its argument.
    work: tuple[tuple[str, Any], ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.actions or self.work)
