"""The kinds of CustomResourceDefinitions: what the server sets in one, and the update of the served kinds."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from typing import Any

from kubekit.kube.clock import Clock
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.metadata import meta, rfc3339
from kubesandbox.apiserver.objects.admission import CRD_FINALIZER
from kubesandbox.apiserver.objects.object_deletion import DeleteOptions
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.served_kinds import STATUS, Kind, KindTable, Subresource, version_priority
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Event, Store

JSON = dict[str, Any]


def kinds_of(crd: JSON) -> tuple[Kind, ...]:
    """Returns the kinds served for a definition, one a served version; none before it is established."""
    spec, conditions = crd["spec"], (crd.get("status") or {}).get("conditions") or ()
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        return ()
    names, kinds = spec["names"], []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        declared = version.get("subresources") or {}
        subresources = [STATUS] if "status" in declared else []
        if "scale" in declared:
            subresources.append(Subresource(name="scale", group="autoscaling", version="v1", kind="Scale"))
        kind = Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            namespaced=spec.get("scope") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind") or f"{names['kind']}List",
            subresources=tuple(subresources),
            generation=True,
            fields=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
            crd=crd,
            scale_paths=declared.get("scale"),
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            deprecation=_deprecation_warning(spec, version),
        )
        kinds.append(kind)
    return tuple(kinds)


def _deprecation_warning(spec: JSON, version: JSON) -> str:
    """Returns the warning of a deprecated version: its own, or one that names a newer supported version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    text = f"{group}/{name} {kind} is deprecated"
    others = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    newest = min([*others, name], key=version_priority)
    return f"{text}; use {group}/{newest} {kind}" if version_priority(newest) < version_priority(name) else text


def complete_definition(crd: JSON, now: datetime, taken: str = "") -> None:
    """Sets names, conversion, stored versions, and the two conditions of a definition.

    `taken` is the reason why the names are not available; the definition is then stored but not established.
    """
    spec = crd["spec"]
    names = spec["names"]
    names.setdefault("singular", names.get("kind", "").lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})
    status = crd.setdefault("status", {})
    storage = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), "")
    stored = status.get("storedVersions") or []
    status["storedVersions"] = [*stored, *([storage] if storage and storage not in stored else ())]
    if taken:
        status.setdefault("acceptedNames", {"plural": "", "kind": ""})
        accepted, established = ("PluralConflict", taken), ("NotAccepted", "not all names are accepted")
    else:
        status["acceptedNames"] = dict(names)
        accepted = "NoConflicts", "no conflicts found"
        established = "InitialNamesAccepted", "the initial names have been accepted"
    conditions = status["conditions"] = status.get("conditions") or []
    for type_, (reason, message) in (("NamesAccepted", accepted), ("Established", established)):
        value, new = "False" if taken else "True", {"type": type_}
        condition = next((each for each in conditions if each["type"] == type_), new)
        if condition is new:
            conditions.append(new)
        # Its lastTransitionTime changes only with its status.
        since = condition["lastTransitionTime"] if condition.get("status") == value else rfc3339(now)
        condition.clear()
        condition |= {"type": type_, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}


CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class Definitions:
    """The controller that updates `KindTable` from the stored definitions, and empties those that are being deleted."""

    def __init__(self, store: Store, kinds: KindTable, schemas: Schemas, rest: Rest, clock: Clock) -> None:
        self._store, self._kinds, self._schemas, self._rest, self._clock = store, kinds, schemas, rest, clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        for entry in store.items(CRDS):
            self._serve_definition(entry.load())
        store.subscribe(CRDS, self._on_change)

    async def stop(self) -> None:
        """Cancels the running clean-ups; they resume at the next start."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _on_change(self, event: Event) -> None:
        """Serves a definition that was created or changed, and stops serving one that was deleted."""
        crd = event.entry.load()
        if event.type == "DELETED":
            self._replace_kinds(meta(crd)["name"], {}, ())
        else:
            self._serve_definition(crd)

    def _serve_definition(self, crd: JSON) -> None:
        """Serves the kinds of a definition; starts the clean-up if it is being deleted."""
        name = meta(crd)["name"]
        self._replace_kinds(name, crd["spec"], kinds_of(crd))
        if meta(crd).get("deletionTimestamp") and name not in self._tasks:
            self._tasks[name] = asyncio.get_running_loop().create_task(self._delete_objects(name))

    def _replace_kinds(self, name: str, spec: JSON, kinds: tuple[Kind, ...]) -> None:
        """Serves `kinds` instead of the present ones of a definition; ends their watches if its spec changed."""
        present = self._kinds.custom().get(name, ())
        # A real server replaces the storage whenever the spec changes (crdHandler.updateCustomResourceDefinition).
        if present and present[0].crd is not None and present[0].crd["spec"] != spec:
            self._rest.reading.end_watches(present[0].storage)
        for kind in present:
            self._schemas.forget(kind)
        self._kinds.set_custom(name, kinds)

    async def _delete_objects(self, name: str) -> None:
        """Deletes all objects of a definition that is being deleted, and then lets the definition go."""
        # Objects with finalizers stay until those are removed, and the definition stays as long.
        try:
            kinds = self._kinds.custom().get(name, ())
            # In the storage version, so that deleting them needs no conversion webhook.
            stored = [kind for kind in kinds if kind.api_version == kind.stored_version] or kinds
            if stored:
                await self._delete_all(stored[0])
            await self._remove_finalizer(name)
        finally:
            self._tasks.pop(name, None)

    async def _delete_all(self, kind: Kind) -> None:
        """Deletes all objects of a kind; returns when none is left, however long their finalizers take."""
        changed = asyncio.Event()
        stop = self._store.subscribe(kind.storage, lambda _: changed.set())
        try:
            while entries := self._store.items(kind.storage):
                changed.clear()
                for entry in entries:
                    # Another client deleted it first. Any other exception is a bug, and ends the task visibly.
                    with contextlib.suppress(ApiError):
                        await self._rest.deleting.delete_one(kind, entry.namespace, entry.name, DeleteOptions())
                if self._store.count(kind.storage):
                    await changed.wait()
        finally:
            stop()

    async def _remove_finalizer(self, name: str) -> None:
        """Removes the server's own finalizer from a definition."""
        kind = self._kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        if kind is None or self._store.get(CRDS, "", name) is None:
            return

        def without_finalizer(crd: JSON) -> JSON:
            metadata = meta(crd)
            metadata["finalizers"] = [f for f in metadata.get("finalizers") or () if f != CRD_FINALIZER]
            return crd

        target = Target(verb="update", group=kind.group, version=kind.version, resource=kind.plural, name=name)
        options = WriteOptions(manager="kube-apiserver", validation="Ignore")
        await self._rest.change(kind, target, without_finalizer, options)

    def conflict(self, crd: JSON) -> str:
        """Returns why the names of a definition are not available, or ""."""
        spec = crd["spec"]
        for kind in self._kinds:
            # Names must be unique within a group; a definition does not conflict with itself.
            if kind.group != spec["group"] or (kind.crd and meta(kind.crd)["name"] == meta(crd)["name"]):
                continue
            if kind.plural == spec["names"]["plural"]:
                return f'"{kind.plural}" is already in use'
            if kind.kind == spec["names"]["kind"]:
                return f'"{kind.kind}" is already in use'
        return ""

    def complete(self, crd: JSON) -> None:
        """Fills in the fields of a definition that the server sets."""
        complete_definition(crd, self._clock.now(), self.conflict(crd))
