"""The scale subresource: desired and observed replicas of workloads and custom resources as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

import orjson

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.body import media_type
from kubesandbox.apiserver.http.messages import Request, Response, json_response
from kubesandbox.apiserver.http.query_parameters import write_options
from kubesandbox.apiserver.http.routing import Target
from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.objects.views import from_stored
from kubesandbox.apiserver.patch.json import apply_json_patch
from kubesandbox.apiserver.patch.merge import merge_patch
from kubesandbox.apiserver.schema import Fault, FieldError
from kubesandbox.apiserver.served_kinds import SCALE_KIND, Kind
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Entry

JSON = dict[str, Any]

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# The paths of a Scale's fields in built-in workloads.
_PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_SET_OPERATORS = {"In": "in", "NotIn": "notin"}


class Scale:
    """The handler of scale for every resource."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Reads, replaces or patches the Scale of one object. Raises ApiError."""
        paths = kind.scale_paths or _PATHS
        if target.verb == "get":
            return json_response(_scale_of_entry(self._rest.entry(kind, target.namespace, target.name), kind, paths))
        options = write_options(request, "UpdateOptions" if target.verb == "update" else "PatchOptions")

        body = self._rest.decoding.body(request, SCALE_KIND, options) if target.verb == "update" else None

        def compute(obj: JSON) -> JSON:
            """Returns the object with the requested replicas. Raises ApiError (409, 422)."""
            new_scale = body if body is not None else _patch_scale(request, _scale_of(obj, paths))
            replicas = (new_scale.get("spec") or {}).get("replicas", 0)
            # Replicas of a custom resource are validated with the whole object.
            if not isinstance(replicas, int) or (replicas < 0 and not kind.custom):
                fault = FieldError(Fault.INVALID, "spec.replicas", replicas, "must be greater than or equal to 0")
                raise status_errors.invalid("Scale", "autoscaling", target.name, [fault])
            # The revision is a precondition only if the client sent one.
            expected_revision = meta(new_scale).get("resourceVersion") if target.verb == "update" else None
            if expected_revision and expected_revision != meta(obj).get("resourceVersion"):
                raise status_errors.conflict(kind.plural, kind.group, target.name)
            return _set_value_at(obj, paths["specReplicasPath"], replicas)

        return json_response(_scale_of_entry(await self._rest.change(kind, target, compute, options), kind, paths))


def _patch_scale(request: Request, current_scale: JSON) -> JSON:
    """Returns the Scale with the request's patch applied. Raises ApiError 415."""
    type_ = media_type(request)
    if type_ == "application/json-patch+json":
        result: JSON = apply_json_patch(current_scale, orjson.loads(request.body))
        return result
    if type_ not in {"application/merge-patch+json", "application/strategic-merge-patch+json"}:
        raise _unsupported_type()
    patched: JSON = merge_patch(current_scale, orjson.loads(request.body))
    return patched


def _unsupported_type() -> ApiError:
    return status_errors.unsupported_media_type(
        ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
    )


def _scale_of_entry(entry: Entry, kind: Kind, paths: Any) -> JSON:
    return _scale_of(from_stored(kind, entry.load()), paths)


def _scale_of(obj: JSON, paths: Any) -> JSON:
    """Returns the Scale of an object, its numbers and selector read at `paths`."""
    metadata = meta(obj)
    selector = _value_at(obj, paths.get("labelSelectorPath") or "")
    status: JSON = {"replicas": _value_at(obj, paths["statusReplicasPath"]) or 0}
    if text := selector if isinstance(selector, str) else _selector_text(selector or {}):
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _META if key in metadata},
        "spec": {"replicas": _value_at(obj, paths["specReplicasPath"]) or 0},
        "status": status,
    }


def _value_at(obj: JSON, path: str) -> Any:
    value: Any = obj
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, dict) else None
    return value if path else None


def _set_value_at(obj: JSON, path: str, value: Any) -> JSON:
    """Returns `obj` after setting the value at a path such as `.spec.replicas`."""
    *parents, last = filter(None, path.split("."))
    branch = obj
    for part in parents:
        branch = branch.setdefault(part, {})
    branch[last] = value
    return obj


def _selector_text(selector: JSON) -> str:
    """Returns a label selector as text, such as `a=b,c in (d,e)`."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator, key = expression.get("operator"), expression.get("key", "")
        if operator in _SET_OPERATORS:
            parts.append(f"{key} {_SET_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})")
        else:
            parts.append(key if operator == "Exists" else f"!{key}")
    return ",".join(sorted(parts))
