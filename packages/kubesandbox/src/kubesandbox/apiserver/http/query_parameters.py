"""The query parameters of reads and writes, validated as the real server does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesandbox.apiserver.http.go_syntax import duration_fault
from kubesandbox.apiserver.http.messages import Request, Target, User, Warnings, is_true
from kubesandbox.apiserver.status_errors import ApiError, Cause, bad_request

_VALIDATIONS = ("Ignore", "Strict", "Warn")
_MANAGER_BYTES = 128
# Subresources with long-running requests, which have no deadline.
_LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def not_supported(name: str, value: Any, supported: Iterable[str]) -> Cause:
    """Returns the cause for a value (a string, or a list of strings) that the field does not support."""
    words = ", ".join(f'"{word}"' for word in supported)
    text = f"Unsupported value: {json.dumps(value, separators=(',', ':'))}: supported values: {words}"
    return Cause("FieldValueNotSupported", text, name)


def dry_run_faults(values: Sequence[str]) -> list[Cause]:
    """Returns the faults of `dryRun`, whose only valid value is `All`."""
    return [] if set(values) <= {"All"} else [not_supported("dryRun", list(values), ("All",))]


def _forbidden_cause(name: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", name)


def invalid_options(kind: str, causes: list[Cause]) -> ApiError:
    """Returns the 422 for invalid options of a request."""
    texts = [str(cause) for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": kind}
    message = f'{kind}.meta.k8s.io "" is invalid: {joined}'
    return ApiError(422, "Invalid", message, details=details, causes=causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write."""

    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Warn"
    force: bool = False
    user: User | None = None  # who writes; None for the server itself
    warnings: Warnings = field(default_factory=Warnings, compare=False)  # of the answer: what is added here is sent
    annotations: dict[str, str] = field(default_factory=dict, compare=False)  # of the audit log
    query: Mapping[str, str] = field(default_factory=dict, compare=False)  # as it was given

    @property
    def strict(self) -> bool:
        """Reports whether unknown and duplicate fields fail the write."""
        return self.validation == "Strict"


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Returns the options of a create, update or patch; `kind` is for errors (`PatchOptions`). Raises ApiError 422."""
    query, causes = request.query, []
    force = query.get("force", "")
    if force and kind == "PatchOptions" and not apply:
        causes.append(_forbidden_cause("force", "may not be specified for non-apply patch"))
    manager = query.get("fieldManager", "")
    if apply and not manager:
        causes.append(Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if len(manager.encode()) > _MANAGER_BYTES:
        text = f"Too long: may not be more than {_MANAGER_BYTES} bytes"
        causes.append(Cause("FieldValueTooLong", text, "fieldManager"))
    for at, character in enumerate(manager):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            causes.append(Cause("FieldValueInvalid", f"Invalid value: {json.dumps(manager)}: {why}", "fieldManager"))
    dry_run = query.get("dryRun", "")
    causes += dry_run_faults([dry_run] if dry_run else [])
    validation = query.get("fieldValidation", "") or "Warn"
    if validation not in _VALIDATIONS:
        causes.append(not_supported("fieldValidation", validation, ("", *_VALIDATIONS)))
    if causes:
        raise invalid_options(kind, causes)
    # The default field manager is the user agent's first part, as in k8s.io/apiserver (managerOrUserAgent).
    agent = "".join(char for char in request.header("user-agent").split("/")[0] if char.isprintable())
    return WriteOptions(
        dry_run=bool(dry_run),
        manager=manager or agent[:128] or "unknown",
        validation=validation,
        force=is_true(force),
        user=request.user,
        warnings=request.warnings,
        annotations=request.annotations,
        query=query,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or watch. `resource_version` is None when the client set none."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: int | None = None
    match: str = ""
    timeout_s: float | None = None
    bookmarks: bool = False
    initial_events: bool = False


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Returns the options of a list, watch or deletecollection. Raises ApiError 400 or 422."""
    version = query.get("resourceVersion", "")
    limit, timeout_s = _parse_number(query, "limit") or 0, _parse_number(query, "timeoutSeconds")
    if causes := _match_faults(query, watch=watch):
        raise invalid_options("ListOptions", causes)
    if version and not version.isdigit():
        text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise ApiError(500, "", text) if watch else bad_request(f"invalid resource version: {text}")
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(0, limit),
        continue_=query.get("continue", ""),
        resource_version=int(version) if version else None,
        match=query.get("resourceVersionMatch", ""),
        timeout_s=timeout_s,
        bookmarks=is_true(query.get("allowWatchBookmarks", "")),
        initial_events=is_true(query.get("sendInitialEvents", "")),
    )


def check_timeout(target: Target, query: Mapping[str, str]) -> None:
    """Raises ApiError 400 if `timeout` is not a duration, for any resource.

    Watches and other long-running requests ignore it (k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go).
    """
    text = query.get("timeout", "")
    if not text or target.verb in {"watch", "proxy"} or target.subresource in _LONG_RUNNING:
        return
    if why := duration_fault(text):
        raise bad_request(f"invalid timeout specified in the request URL - {why}")


def _parse_number(query: Mapping[str, str], name: str) -> int | None:
    """Returns a parameter as an integer, None if it is absent. Raises ApiError (400)."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _match_faults(query: Mapping[str, str], *, watch: bool) -> list[Cause]:
    """Returns the faults of resourceVersionMatch and sendInitialEvents, as ValidateListOptions words them."""
    name, faults = "resourceVersionMatch", []
    sends, match, version = "sendInitialEvents" in query, query.get(name, ""), query.get("resourceVersion", "")
    if watch:
        if sends and match != "NotOlderThan":
            faults.append(_forbidden_cause(name, f"sendInitialEvents requires setting {name} to NotOlderThan"))
        if match and not sends:
            why = f"{name} is forbidden for watch unless sendInitialEvents is provided"
            faults.append(_forbidden_cause(name, why))
        if match and match != "NotOlderThan":
            faults.append(not_supported(name, match, ("NotOlderThan",)))
        # A watch without a revision sends initial events, and gets a match by default (SetListOptionsDefaults).
        if query.get("continue") and (match or (not sends and version in {"", "0"})):
            faults.append(_forbidden_cause(name, f"{name} is forbidden when continue is provided"))
        return faults
    if match and not version:
        faults.append(_forbidden_cause(name, f"{name} is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        faults.append(_forbidden_cause(name, f"{name} is forbidden when continue is provided"))
    if match and match not in {"Exact", "NotOlderThan"}:
        faults.append(not_supported(name, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        faults.append(_forbidden_cause(name, f'{name} "exact" is forbidden for resourceVersion "0"'))
    if sends:
        faults.append(_forbidden_cause("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return faults
