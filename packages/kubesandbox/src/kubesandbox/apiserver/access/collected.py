"""Checks lists and watches of kinds that were not collected in full: they carry a warning or are refused.

In a cluster that was restored from a dump, a kind without objects may have been empty, or not recorded. Two ConfigMaps
in kube-system list such kinds by their resource (`poddisruptionbudgets.policy`), with the reason: `not-collected` (no
object is known) and `partly-collected` (some are). In: a request. Out: a warning added to it, or ApiError; without
these ConfigMaps neither. The warning
about an incomplete list has the prefix that clients look for (kubekit.kube.list_pages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from kubekit.kube.list_pages import INCOMPLETE
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import Request
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Event, Store

NAMESPACE, NOT_COLLECTED, PARTLY_COLLECTED = "kube-system", "not-collected", "partly-collected"
OWN_NAMESPACES = "sandbox.runup.dev/own-namespaces"
"""Annotation: the namespaces, separated by blanks, that were not restored from the dump: they are known in full."""
EXEMPT_USERS = "sandbox.runup.dev/told-anyway"
"""Annotation, as JSON: by the name of a user, the resources that it may list although they were not collected."""
COMPLETE_NAMESPACES = "sandbox.runup.dev/known-within"
"""Annotation, as JSON: by resource, the namespaces in which the kind is known in full although it is not elsewhere."""
CONTROLLERS = "system:sandbox-controllers"
"""The user of the sandbox's own controllers, which get every list without refusal or warning."""
_VERBS = frozenset({"list", "watch"})
_MAPS = "configmaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """The contents of the two ConfigMaps: which kinds are incomplete, and the exceptions from that.

    `not_collected` and `partly_collected` have the reason by resource. In `own_namespaces` every kind is complete; by
    resource, `complete_namespaces` has those in which that kind is. `exempt_users` has, by the name of a user, the
    resources that it may list without refusal or warning although they were not collected.
    """

    not_collected: Mapping[str, str]
    partly_collected: Mapping[str, str]
    own_namespaces: frozenset[str]
    exempt_users: Mapping[str, Sequence[str]]
    complete_namespaces: Mapping[str, Sequence[str]]


class Collected:
    """The check of lists and watches, before they are answered, against the ConfigMaps of incomplete kinds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gaps: _Gaps | None = None

        def drop_cached(event: Event) -> None:
            if event.entry.name in {NOT_COLLECTED, PARTLY_COLLECTED}:
                self._gaps = None

        store.subscribe(_MAPS, drop_cached)

    def check_collected(self, request: Request, target: Target, kind: Kind) -> None:
        """Raises ApiError 403 for a list or watch of a kind that was not collected; warns of one collected in part.

        Administrators (group system:masters) are warned instead of refused if the server has any object of the kind.
        Nothing is refused in a namespace that is known in full, nor to the controllers.
        """
        if target.verb not in _VERBS or request.user is None or request.user.name == CONTROLLERS:
            return
        # A field selector for one name asks for one object, as `get` does, which is not refused.
        if target.name:
            return
        if self._gaps is None:
            not_collected, annotations = self._read_map(NOT_COLLECTED)
            partly_collected, _ = self._read_map(PARTLY_COLLECTED)
            self._gaps = _Gaps(
                not_collected=not_collected,
                partly_collected=partly_collected,
                own_namespaces=frozenset(annotations.get(OWN_NAMESPACES, "").split()),
                exempt_users=orjson.loads(annotations.get(EXEMPT_USERS) or "{}"),
                complete_namespaces=orjson.loads(annotations.get(COMPLETE_NAMESPACES) or "{}"),
            )
        gaps = self._gaps
        complete_namespaces = (*gaps.own_namespaces, *gaps.complete_namespaces.get(kind.resource, ()))
        if target.namespace in complete_namespaces:
            return
        if why := gaps.partly_collected.get(kind.resource):
            request.warnings.append(INCOMPLETE + why)
        if kind.resource in gaps.exempt_users.get(request.user.name, ()):
            return
        if why := gaps.not_collected.get(kind.resource):
            if "system:masters" not in request.user.groups or not self._store.count(kind.storage):
                raise status_errors.forbidden(kind.plural, kind.group, "", why)
            request.warnings.append(INCOMPLETE + why)

    def _read_map(self, name: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Returns the data and the annotations of a ConfigMap in kube-system, both empty if it does not exist."""
        entry = self._store.get(_MAPS, NAMESPACE, name)
        if entry is None:
            return {}, {}
        obj = entry.load()
        return obj.get("data") or {}, obj["metadata"].get("annotations") or {}
