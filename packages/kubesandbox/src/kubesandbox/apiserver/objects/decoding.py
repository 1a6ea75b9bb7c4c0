"""Decoding of a request's body into an object of the kind that its path names.

In: the parsed body. Out: the object without fields that its type does not know. Raises ApiError in the words of a real
server, which differ for creates and updates, for patches and for applies. Field validation (Ignore, Warn, Strict) is
decided only here.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http import body
from kubesandbox.apiserver.http.messages import Request
from kubesandbox.apiserver.http.query_parameters import WriteOptions
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.large_steps import run_step
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.patch.apply import why_invalid
from kubesandbox.apiserver.schema.field_errors import Fault, FieldError
from kubesandbox.apiserver.schema.typed import DecodeError
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind
from kubesandbox.apiserver.status_errors import ApiError

# Group of built-in kinds -> the package of their internal types, where that is not the group's first word.
_PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac", "events.k8s.io": "core"}
_REGISTERED = frozenset((kind.api_version, kind.kind) for kind in BUILTIN)


class Decoding:
    """The decoder for all kinds; one instance for the whole server."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    async def body(self, request: Request, kind: Kind, options: WriteOptions) -> JSON:
        """Returns the object in the body of a create or an update. Raises ApiError 400."""
        return await run_step(lambda: self._decode_body(request, kind, options), large=options.large)

    def _decode_body(self, request: Request, kind: Kind, options: WriteOptions) -> JSON:
        obj = body.read_object(request, kind.kind)
        # Built-in objects take their kind from the path.
        if kind.custom and not obj.get("kind"):
            why = f"Object 'Kind' is missing in '{request.body.decode(errors='replace')}'"
            raise status_errors.bad_request(
                f"the object provided is unrecognized (must be of type {kind.kind}): {why} "
                f"({body.summarize_body(request.body)})"
            )
        if kind.custom and not obj.get("apiVersion"):
            raise _other_version("", kind)
        version = (obj.get("apiVersion") or kind.api_version).rpartition("/")[2]
        why = f'{obj.get("kind") or kind.kind} in version "{version}" cannot be handled as a {kind.kind}'
        pruned, unknown = self._decode_typed(kind, obj, lambda text: status_errors.bad_request(f"{why}: {text}"))
        members, type_ = body.Members(), body.media_type(request)
        # Without duplicate members, their order is of use only if there are unknown fields.
        checked = options.validation != "Ignore" and type_ in {"", "application/json"}
        if checked and (unknown or body.has_duplicate_members(request.body)):
            members = body.read_members(request.body)
        # Duplicates of a custom resource are found by decoding, before unknown fields are by pruning; those of a
        # built-in kind are reported in the order in which Go's decoder meets them.
        met = [(0 if kind.custom else at, f'duplicate field "{path}"') for path, at in members.again.items()]
        met += [(1 if kind.custom else members.first.get(path, 0), f'unknown field "{path}"') for path in unknown]
        faults = [text for _, text in sorted(met, key=itemgetter(0))]
        if options.validation != "Ignore" and type_.endswith("yaml"):
            faults += filter(None, [body.yaml_duplicates(request.body)])
        _report_faults(request, faults, options, lambda text: status_errors.bad_request(f"{why}: {text}"))
        # A copy: what the server adds is not the client's.
        request.metadata = dict(pruned.get("metadata") or {})
        return pruned

    def patched(
        self, request: Request, kind: Kind, new: JSON, options: WriteOptions, *, patch: str, duplicates: list[str]
    ) -> JSON:
        """Returns the decoded result of a patch. Raises ApiError 400, or 422 that quotes `patch`."""

        def refuse(why: str) -> ApiError:
            return status_errors.invalid("", "", "", [FieldError(Fault.INVALID, "patch", patch, why)])

        try:
            body.check_type_meta(new)
        except ValueError as error:
            raise refuse(str(error)) from None
        pruned, unknown = self._decode_typed(kind, new, refuse)
        faults = [*duplicates, *(f'unknown field "{path}"' for path in unknown)]
        _report_faults(request, faults, options, refuse)
        return pruned

    async def applied(self, request: Request, kind: Kind, target: Target, options: WriteOptions) -> JSON:
        """Returns an applied configuration. Unknown fields are always refused, since they can have no owner."""
        return await run_step(lambda: self._decode_applied(request, kind, target, options), large=options.large)

    def _decode_applied(self, request: Request, kind: Kind, target: Target, options: WriteOptions) -> JSON:
        config = body.decode_applied(request.body)
        if options.validation != "Ignore" and (text := body.yaml_duplicates(request.body)):
            why = f"error strict decoding YAML: error converting YAML to JSON: {text}"
            if options.strict:
                raise status_errors.bad_request(why)
            request.warnings.append(f"error converting YAML to JSON: {text}")
        # A value that is not text counts as none, as in unstructured.NestedString.
        version, word = (given if isinstance(given := config.get(key), str) else "" for key in ("apiVersion", "kind"))
        name = meta(config).get("name")
        if (version, word) != (kind.api_version, kind.kind):
            # An apiVersion of more parts leaves no kind either.
            group, word = ("/", "") if version.count("/") > 1 else (version if "/" in version else f"/{version}", word)
            raise status_errors.bad_request(f"invalid object type: {group}, Kind={word}")
        if meta(config).get("managedFields") is not None:
            raise status_errors.bad_request("metadata.managedFields must be nil")
        if isinstance(name, str) and name not in {"", target.name}:
            raise status_errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            )
        if why := why_invalid(self._schemas.tree(kind), kind, config):
            raise ApiError(500, "", why)
        return config

    def stored_form(self, kind: Kind, obj: JSON) -> JSON:
        """Returns the result of an apply (validated before) in its stored form. Raises ApiError 400."""
        if kind.custom:
            return obj
        try:
            return self._schemas.decode(kind, obj)[0]
        except DecodeError as error:
            raise status_errors.bad_request(str(error)) from None

    def _decode_typed(self, kind: Kind, obj: JSON, refuse: Callable[[str], ApiError]) -> tuple[JSON, list[str]]:
        """Returns the object and its unknown fields. Raises the ApiError that `refuse` makes of a fault."""
        obj["apiVersion"], obj["kind"] = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind
        if (obj["apiVersion"], obj["kind"]) != (kind.api_version, kind.kind):
            raise _other_type(kind, obj, refuse)
        try:
            return self._schemas.decode(kind, obj)
        except DecodeError as error:
            raise refuse(str(error)) from None


def check_named(obj: JSON, name: str) -> None:
    """Raises ApiError 400 if an object has lost its name."""
    if not meta(obj).get("name"):
        raise status_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )


def check_place(kind: Kind, namespace: str, name: str, obj: JSON) -> None:
    """Sets an object's namespace and name from its path. Raises ApiError 400 if it has others."""
    metadata = meta(obj)
    object_namespace = metadata.get("namespace") or ""
    if kind.namespaced:
        if object_namespace and object_namespace != namespace:
            raise status_errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if name and metadata.get("name") not in {None, "", name}:
        raise status_errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if name:
        metadata["name"] = name


def _other_type(kind: Kind, obj: JSON, refuse: Callable[[str], ApiError]) -> ApiError:
    """Returns the error for a body whose apiVersion and kind are not those of the path."""
    version, name = obj["apiVersion"], obj["kind"]
    if not kind.custom and (version, name) in _REGISTERED:
        package = _PACKAGES.get(kind.group, kind.group.partition(".")[0])
        bare = version.rpartition("/")[2]
        return refuse(f"converting ({bare}.{name}) to ({package}.{kind.kind}): unknown conversion")
    if not kind.custom:
        scheme = "pkg/api/legacyscheme/scheme.go:30"
        return refuse(f'no kind "{name}" is registered for version "{version}" in scheme "{scheme}"')
    if version != kind.api_version:
        return _other_version(version, kind)
    fault = FieldError(Fault.INVALID, "kind", name, f"must be {kind.kind}")
    return status_errors.invalid(name, kind.group, meta(obj).get("name") or "", [fault])


def _other_version(version: str, kind: Kind) -> ApiError:
    return status_errors.bad_request(
        f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
    )


def _report_faults(
    request: Request, faults: list[str], options: WriteOptions, refusal_: Callable[[str], ApiError]
) -> None:
    """Refuses the fields, or warns of them, as the request's fieldValidation says."""
    if not faults or options.validation == "Ignore":
        return
    if options.strict:
        raise refusal_(f"strict decoding error: {', '.join(faults)}")
    request.warnings.extend(faults)
