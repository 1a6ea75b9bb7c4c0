"""A reconcile's decision as a value. `runup.process.plan_executor` carries it out."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource

JSON = dict[str, Any]
WorkT_co = TypeVar("WorkT_co", covariant=True)


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """A server-side apply of the fields we own; `object` contains apiVersion, kind and metadata.name.

    `where_namespace`: it is skipped, without an error, if its namespace does not exist. `optional`: a rejection is
    logged and the plan continues; the next pass plans it again.
    """

    resource: Resource
    object: JSON
    force: bool = True
    where_namespace: bool = False
    optional: bool = False


class Delete(msgspec.Struct, frozen=True):
    """A deletion of an object, which may be gone already. `uid` protects an object of the same name created since."""

    resource: Resource
    key: NamespacedName
    uid: str = ""
    propagation: Literal["Foreground", "Background", "Orphan"] = "Background"


class PatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that sets whole fields of a status and removes others; a changed `resource_version` is a conflict.

    Null is a value here, as in a JSON patch: a merge patch loses every null, also those inside lists, and some fields
    of the API need theirs. `fresh`: the object has no status yet, and `fields` is all of it.
    """

    resource: Resource
    key: NamespacedName
    fields: JSON
    gone: tuple[str, ...]
    resource_version: str
    fresh: bool = False


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event on an object, for `kubectl describe`, which asks for the events of its `uid`."""

    resource: Resource
    key: NamespacedName
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    uid: str = ""


Action = Apply | Delete | PatchStatus | Event


class Plan(msgspec.Struct, Generic[WorkT_co], frozen=True):
    """Actions in the order of execution, and the time of the next pass if no event causes one before.

    `work` is long-running: it is begun, not awaited, and its state is observed like anything else.
    """

    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
    work: tuple[WorkT_co, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.actions or self.work)
