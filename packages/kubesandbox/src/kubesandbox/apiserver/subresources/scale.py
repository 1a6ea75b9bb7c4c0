"""The subresource scale: one number of a workload or a custom resource, with its part of the managed fields.

A manager that applies a Scale owns the replicas of the object (k8s.io/apimachinery/pkg/util/managedfields/
scalehandler.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.body import media_type
from kubesandbox.apiserver.http.list_options import check_version
from kubesandbox.apiserver.http.messages import UNSTORED, Request, Response, json_response, negotiate
from kubesandbox.apiserver.http.query_parameters import WriteOptions, write_options
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.objects.rest import APPLY, Rest, check_patch_type
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.objects.writing import View
from kubesandbox.apiserver.patch.field_sets import FieldPath
from kubesandbox.apiserver.patch.managed_fields import Managers, Ownership, read_managers, write_managers
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.served_kinds import SCALE_KIND, Kind
from kubesandbox.apiserver.status_errors import ApiError

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# The paths of a Scale's fields in built-in workloads.
_PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_SET_OPERATORS = {"In": "in", "NotIn": "notin"}
_REPLICAS: FieldPath = ("f:spec", "f:replicas")

NewScale = Callable[[JSON], JSON]


class Scales:
    """The handler of scale; one instance for the whole server."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Reads, replaces, patches or applies the Scale of one object. Raises ApiError."""
        negotiate(request.header("accept"), UNSTORED)
        paths = kind.scale_paths or _PATHS
        if target.verb == "patch":
            check_patch_type(request, kind)
        if target.verb == "get":
            check_version(request.query.get("resourceVersion", ""))
        entry = self._rest.entry(kind, target.namespace, target.name)
        if target.verb == "get":
            return json_response(_scale_of(from_stored(kind, entry.load()), paths))
        is_applied = target.verb == "patch" and media_type(request) == APPLY
        kind_of_options = "UpdateOptions" if target.verb == "update" else "PatchOptions"
        options = write_options(request, kind_of_options, apply=is_applied)
        new_scale, requested_revision = await self._new_scale(request, target, kind, options)
        *parents, last = filter(None, paths["specReplicasPath"].split("."))
        replicas_path = tuple(f"f:{part}" for part in (*parents, last))

        def set_replicas(obj: JSON, scale: JSON) -> JSON:
            """Returns the object with the replicas of a Scale."""
            branch = obj
            for part in parents:
                branch = branch.setdefault(part, {})
            branch[last] = (scale.get("spec") or {}).get("replicas", 0)
            return obj

        def compute(obj: JSON) -> JSON:
            """Returns the object with the requested replicas. Raises ApiError (400, 409, 422)."""
            managers = read_managers(obj)
            present = _scale_of(obj, paths)
            write_managers(present, _managers_of_scale(managers, replicas_path))
            scale = new_scale(copy_json(present))
            if not is_applied:
                self._rest.patching.record_update(SCALE_KIND, present, scale, options, part="scale")
            replicas = (scale.get("spec") or {}).get("replicas", 0)
            # Replicas of a custom resource are validated with the whole object.
            if replicas < 0 and not kind.custom:
                fault = FieldError(Fault.INVALID, "spec.replicas", replicas, "must be greater than or equal to 0")
                raise status_errors.invalid("Scale", "autoscaling", target.name, [fault])
            if requested_revision and requested_revision != meta(obj).get("resourceVersion"):
                raise status_errors.conflict(kind.plural, kind.group, target.name)
            set_replicas(obj, scale)
            if managers or is_applied:
                write_managers(obj, _managers_of_object(kind, managers, read_managers(scale), replicas_path))
            return obj

        view = View(kind=SCALE_KIND, read=lambda obj: _scale_of(obj, paths), write=set_replicas)
        entry = await self._rest.change(kind, target, compute, options, applying=True, view=view)
        return json_response(_scale_of(from_stored(kind, entry.load()), paths))

    async def _new_scale(
        self, request: Request, target: Target, kind: Kind, options: WriteOptions
    ) -> tuple[NewScale, str]:
        """Reads the body; returns how the requested Scale is made of the present one, and the revision it requires.

        Both raise ApiError. A patch requires no revision.
        """
        if target.verb == "update":
            body = await self._rest.decoding.body(request, SCALE_KIND, options)
            return (lambda _: body), meta(body).get("resourceVersion") or ""
        if media_type(request) != APPLY:
            return await self._rest.patching.read_patch(request, SCALE_KIND, options), ""
        config = await self._rest.decoding.applied(request, SCALE_KIND, target, options)

        def applied(scale: JSON) -> JSON:
            if kind.custom and not read_managers(scale):
                raise _not_applied("create manager for existing fields: failed to convert live object (/; {}")
            new = self._rest.patching.applied(SCALE_KIND, scale, config, options, part="scale")
            if kind.custom:
                raise _not_applied(f"convert new object (/{target.name}; {{}}")
            return new

        return applied, meta(config).get("resourceVersion") or ""


def _not_applied(what: str) -> ApiError:
    """Returns the error of kube-apiserver 1.34, where no apply of a custom resource's Scale succeeds."""
    where = what.format("autoscaling/v1, Kind=Scale) to proper version")
    why = "request to convert CR to an invalid group/version: autoscaling/v1"
    return ApiError(500, "", f"failed to {where}: {why}")


def _managers_of_scale(managers: Managers, path: FieldPath) -> Managers:
    """Returns the managers of an object that own the field at `path`, as managers of its Scale."""
    return {
        replace(manager, version=SCALE_KIND.api_version): Ownership(frozenset((_REPLICAS,)), owned.time)
        for manager, owned in managers.items()
        if path in owned.paths
    }


def _managers_of_object(kind: Kind, managers: Managers, of_scale: Managers, path: FieldPath) -> Managers:
    """Returns the managers of an object after an apply of its Scale: the field at `path` has the Scale's managers."""
    of_scale, result = dict(of_scale), Managers()
    for manager, owned in managers.items():
        as_of_scale = replace(manager, version=SCALE_KIND.api_version)
        if path in owned.paths and of_scale.pop(as_of_scale, None) is None:
            owned = replace(owned, paths=owned.paths - {path})
        result[manager] = owned
    for manager, owned in of_scale.items():
        if _REPLICAS in owned.paths:
            # Upstream gives a new manager no time.
            result[replace(manager, version=kind.api_version)] = Ownership(frozenset((path,)), "")
    return result


def _scale_of(obj: JSON, paths: Mapping[str, str]) -> JSON:
    """Returns the Scale of an object, its numbers and selector read at `paths`."""
    metadata, replicas = meta(obj), _value_at(obj, paths["specReplicasPath"])
    selector = _value_at(obj, paths.get("labelSelectorPath") or "")
    status: JSON = {"replicas": _value_at(obj, paths["statusReplicasPath"]) or 0}
    if isinstance(selector, dict):
        # As text, such as `a=b,c in (d,e)`.
        parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
        for expression in selector.get("matchExpressions") or ():
            operator, key = expression.get("operator"), expression.get("key", "")
            if operator in _SET_OPERATORS:
                parts.append(f"{key} {_SET_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})")
            else:
                parts.append(key if operator == "Exists" else f"!{key}")
        selector = ",".join(sorted(parts))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _META if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _value_at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    return value if path else None
