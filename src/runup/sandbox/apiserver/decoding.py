"""From a request's body to an object of the kind that its path names.

In: what was read out of the body. Out: the object without fields that its type does not know. Raises ApiError in the
words of a real server: for creates and updates, for patches and for applies they differ. Field validation (Ignore,
Warn, Strict) is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from runup.sandbox.apiserver import errors
from runup.sandbox.apiserver.body import duplicate_fields, media_type
from runup.sandbox.apiserver.errors import ApiError
from runup.sandbox.apiserver.http import Request
from runup.sandbox.apiserver.kinds import Kind
from runup.sandbox.apiserver.objects import meta
from runup.sandbox.apiserver.options import WriteOptions
from runup.sandbox.apiserver.routing import Target
from runup.sandbox.apiserver.schema import DecodeError, Fault, FieldError
from runup.sandbox.apiserver.schemas import Schemas

JSON = dict[str, Any]


class Decoding:
    """Decodes for every kind; one for the whole server."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def body(self, request: Request, kind: Kind, obj: JSON, options: WriteOptions) -> JSON:
        """The body of a create or an update; raises ApiError 400."""
        _check_type(kind, obj)
        faults = [f'duplicate field "{path}"' for path in _duplicates(request, options)]
        version, name = obj["apiVersion"].rpartition("/")[2], obj["kind"]
        why = f'{name} in version "{version}" cannot be handled as a {kind.kind}'
        try:
            pruned, unknown = self._schemas.decode(kind, obj)
        except DecodeError as error:
            raise errors.bad_request(f"{why}: {error}") from None
        faults += [f'unknown field "{path}"' for path in unknown]
        _report(request, faults, options, lambda text: errors.bad_request(f"{why}: {text}"))
        return pruned

    def patched(self, request: Request, kind: Kind, new: JSON, options: WriteOptions, shown: str) -> JSON:
        """What a patch made of an object; raises ApiError 400, or 422 quoting `shown`."""
        new.setdefault("apiVersion", kind.api_version)
        new.setdefault("kind", kind.kind)
        _check_type(kind, new)
        try:
            pruned, unknown = self._schemas.decode(kind, new)
        except DecodeError as error:
            raise _invalid_patch(shown, str(error)) from None
        faults = [f'unknown field "{path}"' for path in unknown]
        _report(request, faults, options, lambda text: _invalid_patch(shown, text))
        return pruned

    def applied(self, request: Request, kind: Kind, target: Target, config: JSON, options: WriteOptions) -> JSON:
        """An applied configuration. A field that its type does not know can have no owner: it is always refused."""
        _check_type(kind, config)
        faults = [f'duplicate field "{path}"' for path in _duplicates(request, options)]
        _report(request, faults, options, lambda text: errors.bad_request(f"error strict decoding YAML: {text}"))
        try:
            pruned, unknown = self._schemas.decode(kind, config)
        except DecodeError as error:
            raise errors.bad_request(str(error)) from None
        if unknown:
            raise _undeclared(kind, target, unknown)
        return pruned if kind.custom else config

    def stored_form(self, kind: Kind, obj: JSON) -> JSON:
        """What an apply made of an object (checked before), as it is stored."""
        return obj if kind.custom else self._schemas.decode(kind, obj)[0]


def check_place(kind: Kind, namespace: str, name: str, obj: JSON) -> None:
    """Give an object the namespace and name of its path; raises ApiError 400 when it names others."""
    metadata = meta(obj)
    given = metadata.get("namespace") or ""
    if kind.namespaced:
        if given and given != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if name and metadata.get("name") not in {None, "", name}:
        raise errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if name:
        metadata["name"] = name


def check_apply(config: JSON, name: str) -> None:
    """Refuse a configuration that cannot be applied to the object of that name; raises ApiError 400."""
    if not config.get("apiVersion") or not config.get("kind"):
        missing = "apiVersion" if not config.get("apiVersion") else "kind"
        raise errors.bad_request(f"failed to create typed patch object: {missing} must be set")
    if meta(config).get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    if meta(config).get("name") not in {None, "", name}:
        raise errors.bad_request(
            f"the name of the object ({meta(config)['name']}) does not match the name on the URL ({name})"
        )


def _check_type(kind: Kind, obj: JSON) -> None:
    version, name = obj.get("apiVersion") or "", obj.get("kind") or ""
    if not name and kind.custom:
        raise errors.bad_request(f"Object 'Kind' is missing in '{orjson.dumps(obj).decode()}'")
    obj["apiVersion"], obj["kind"] = version or kind.api_version, name or kind.kind
    if (obj["apiVersion"], obj["kind"]) != (kind.api_version, kind.kind):
        raise _other_type(kind, obj["apiVersion"], obj["kind"])


def _other_type(kind: Kind, version: str, name: str) -> ApiError:
    group, _, bare = version.rpartition("/")
    if not kind.custom:
        return errors.bad_request(
            f'{name} in version "{bare or version}" cannot be handled as a {kind.kind}: no kind "{name}" is registered '
            f'for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        )
    if version != kind.api_version:
        return errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    return errors.bad_request(f"invalid object type: {group or ''}/{bare}, Kind={name}")


def _duplicates(request: Request, options: WriteOptions) -> list[str]:
    if options.validation == "Ignore" or media_type(request) not in {"", "application/json"}:
        return []
    return duplicate_fields(request.body)


def _report(request: Request, faults: list[str], options: WriteOptions, refusal: Callable[[str], ApiError]) -> None:
    if not faults or options.validation == "Ignore":
        return
    if options.strict:
        raise refusal(f"strict decoding error: {', '.join(faults)}")
    request.warnings.extend(fault for fault in faults if fault not in request.warnings)


def _invalid_patch(shown: str, why: str) -> ApiError:
    return errors.invalid("", "", "", [FieldError(Fault.INVALID, "patch", shown, why)])


def _undeclared(kind: Kind, target: Target, unknown: list[str]) -> ApiError:
    what = f"{target.namespace}/{target.name}; {kind.api_version}, Kind={kind.kind}"
    lines = [f".{path}: field not declared in schema" for path in unknown]
    text = lines[0] if len(lines) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in lines)
    return ApiError(500, "", f"failed to create typed patch object ({what}): {text}")
