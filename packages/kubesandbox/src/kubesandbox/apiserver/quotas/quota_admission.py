"""Admits a write by the ResourceQuotas of its namespace, and charges them: the plugin ResourceQuota.

In: a write. Out: nothing, or ApiError 403; `status.used` of each quota that counts the object rises. As on a real
server what is used is what the status says, which a controller counts anew when objects go.
"""

from __future__ import annotations

from typing import Any, Protocol

from kubekit.kube.clock import Clock
from kubekit.lang.quantity import parse_quantity
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import Target
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.objects.writing import Change
from kubesandbox.apiserver.policies.matching import Write
from kubesandbox.apiserver.quotas.usage import (
    CLAIMS,
    PODS,
    SERVICES,
    add_amounts,
    growth,
    is_about,
    is_terminating,
    missing_resources,
    resources_counting,
    select_names,
    usage_of_object,
)
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Entry, Store

JSON = dict[str, Any]
QUOTAS = "resourcequotas"
_OWN = WriteOptions(manager="kube-apiserver", validation="Ignore")


class Changing(Protocol):
    """The part of the server that changes an object."""

    async def __call__(self, kind: Kind, target: Target, compute: Change, options: WriteOptions) -> Entry:
        """Reads an object, computes its new state and stores it; again after a conflict. Raises ApiError."""
        ...


class QuotaAdmission:
    """The quotas of a server; one instance for the whole of it. `kind` is that of ResourceQuota."""

    def __init__(self, store: Store, kind: Kind, change: Changing, clock: Clock) -> None:
        self._store, self._kind, self._change, self._clock = store, kind, change, clock

    async def admit(self, write: Write) -> None:
        """Charges the quotas of a write's namespace, or raises ApiError 403. A dry run charges nothing."""
        if not write.namespace or not _may_grow(write):
            return
        quotas = [entry.load() for entry in self._store.items(QUOTAS, write.namespace)]
        # All of them are asked before the first is charged.
        charged = [quota for quota in quotas if self._used_after(quota, write) is not None]
        if write.dry_run:
            return
        for quota in charged:
            name = quota["metadata"]["name"]
            target = Target(
                verb="update", version="v1", namespace=write.namespace, resource=QUOTAS,
                subresource="status", name=name,
            )  # fmt: skip
            await self._change(self._kind, target, lambda old: self._charge_quota(old, write), _OWN)

    def _charge_quota(self, quota: JSON, write: Write) -> JSON:
        used = self._used_after(quota, write)
        return quota if used is None else {**quota, "status": {**quota["status"], "used": used}}

    def _used_after(self, quota: JSON, write: Write) -> dict[str, str] | None:
        """Returns what is used of a quota after a write, None if that is as before. Raises ApiError 403."""
        obj, resource = write.obj, write.kind.resource
        assert obj is not None
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        names = resources_counting(resource, hard)
        if not names or not is_about(quota, resource, obj):
            return None
        name = quota["metadata"]["name"]
        if resource == PODS and (lacking := missing_resources(obj, names)):
            raise _forbidden_error(write, f"failed quota: {name}: must specify {lacking}")
        if not used.keys() >= set(names):
            raise _forbidden_error(write, f"status unknown for quota: {name}, resources: {','.join(sorted(names))}")
        now = self._clock.now()
        needs = usage_of_object(resource, obj, now)
        if write.old is not None and is_about(quota, resource, write.old):
            needs = growth(needs, usage_of_object(resource, write.old, now))
        requested = {name: amount for name, amount in select_names(needs, names).items() if parse_quantity(amount) > 0}
        if not requested:
            return None
        after = add_amounts(used, requested)
        exceeded = sorted(key for key in requested if parse_quantity(after[key]) > parse_quantity(hard[key]))
        if exceeded:
            shown = ", ".join(
                f"{word}: {','.join(f'{key}={part[key]}' for key in exceeded if key in part)}"
                for word, part in (("requested", requested), ("used", used), ("limited", hard))
            )
            raise _forbidden_error(write, f"exceeded quota: {name}, {shown}")
        return after


def _may_grow(write: Write) -> bool:
    """Returns whether a write may use more of a quota than before."""
    if write.operation == "CREATE":
        return not write.subresource
    resource, old, new = write.kind.resource, write.old, write.obj
    if resource == PODS and old is not None and new is not None:
        changed = is_terminating(old) != is_terminating(new)
        return write.subresource == "resize" or (not write.subresource and changed)
    return resource in (SERVICES, CLAIMS) and not write.subresource


def _forbidden_error(write: Write, why: str) -> ApiError:
    return status_errors.forbidden(write.kind.plural, write.kind.group, write.name, why)
