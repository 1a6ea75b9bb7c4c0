"""Incompletely recorded kinds: lists of them carry a warning or are refused, so that they do not look complete.

In a cluster that was restored from a dump, a kind without objects may have been empty, or not recorded. Two ConfigMaps
in kube-system list such kinds by their resource (`poddisruptionbudgets.policy`), with the reason: `not-collected` (no
object is known) and `partly-collected` (some are). Without these ConfigMaps this module has no effect. The warning
about an incomplete list has the prefix that clients look for (kubekit.kube.warnings).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from kubekit.kube.warnings import INCOMPLETE
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import Request
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.store import Event, Store

NAMESPACE, ABSENT, PARTLY = "kube-system", "not-collected", "partly-collected"
OWN = "sandbox.runup.dev/own-namespaces"
"""Annotation: the namespaces, separated by blanks, that the records have nothing to do with: they are known in full."""
ANYWAY = "sandbox.runup.dev/told-anyway"
"""Annotation: users that are told nothing of what is absent of some kinds, as JSON: the name and the resources."""
WITHIN = "sandbox.runup.dev/known-within"
"""Annotation: the namespaces in which a kind is known in full although it is not elsewhere, as JSON by its resource."""
CONTROLLERS = "system:sandbox-controllers"
"""Who keeps the cluster running is told everything that there is."""
_VERBS = frozenset({"list", "watch"})
_MAPS = "configmaps"


@dataclass(frozen=True, slots=True)
class _Told:
    """The contents of the ConfigMaps."""

    absent: Mapping[str, str]
    partly: Mapping[str, str]
    own: frozenset[str]
    anyway: Mapping[str, Sequence[str]]
    within: Mapping[str, Sequence[str]]


class Collected:
    """The check of lists and watches before they are answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: _Told | None = None
        store.subscribe(_MAPS, self._drop_cached)

    def _drop_cached(self, event: Event) -> None:
        if event.entry.name in {ABSENT, PARTLY}:
            self._told = None

    def require(self, request: Request, target: Target, kind: Kind) -> None:
        """Raises ApiError 403 for a list of a kind that was not collected; adds a warning for one collected in part.

        An administrator gets the objects that are there, if any, with the warning.
        """
        if target.verb not in _VERBS or request.user is None or request.user.name == CONTROLLERS:
            return
        gaps = self._read_maps()
        # These namespaces are not from the records, so they are known in full.
        if target.namespace in gaps.own or target.namespace in gaps.within.get(kind.resource, ()):
            return
        if why := gaps.partly.get(kind.resource):
            request.warnings.append(INCOMPLETE + why)
        if kind.resource in gaps.anyway.get(request.user.name, ()):
            return
        if why := gaps.absent.get(kind.resource):
            if "system:masters" not in request.user.groups or not self._store.count(kind.storage):
                raise status_errors.forbidden(kind.plural, kind.group, "", why)
            request.warnings.append(INCOMPLETE + why)

    def _read_maps(self) -> _Told:
        """Returns what the collection's ConfigMaps say, parsed once until they change."""
        if self._told is None:
            (absent, annotations), (partly, _) = self._read_map(ABSENT), self._read_map(PARTLY)
            own, anyway, within = (annotations.get(key, "") for key in (OWN, ANYWAY, WITHIN))
            self._told = _Told(
                absent, partly, frozenset(own.split()), orjson.loads(anyway or "{}"), orjson.loads(within or "{}")
            )
        return self._told

    def _read_map(self, name: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        entry = self._store.get(_MAPS, NAMESPACE, name)
        if entry is None:
            return {}, {}
        obj = entry.load()
        return obj.get("data") or {}, obj["metadata"].get("annotations") or {}
