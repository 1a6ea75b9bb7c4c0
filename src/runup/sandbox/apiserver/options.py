"""The query parameters of reads and writes, checked as the real server checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runup.sandbox.apiserver.errors import ApiError, Cause, bad_request
from runup.sandbox.apiserver.http import Request, is_true

_VALIDATIONS = ("Ignore", "Strict", "Warn")


def _invalid_options(kind: str, causes: list[Cause]) -> ApiError:
    texts = [str(cause) for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": kind}
    message = f'{kind}.meta.k8s.io "" is invalid: {joined}'
    return ApiError(422, "Invalid", message, details=details, causes=causes)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is to be done."""

    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Warn"
    force: bool = False
    warnings: list[str] = field(default_factory=list, compare=False)  # of the answer: what is added here is sent

    @property
    def strict(self) -> bool:
        """Whether unknown and duplicate fields refuse the write."""
        return self.validation == "Strict"


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """The options of a create, update or patch; `kind` names them in errors (`PatchOptions`). Raises ApiError 422."""
    query, causes = request.query, []
    dry_run = query.get("dryRun", "")
    if dry_run not in {"", "All"}:
        causes.append(
            Cause("FieldValueNotSupported", f'Unsupported value: "{dry_run}": supported values: "All"', "dryRun")
        )
    force = query.get("force", "")
    if force and kind == "PatchOptions" and not apply:
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    manager = query.get("fieldManager", "")
    if apply and not manager:
        causes.append(Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if len(manager) > 128:
        causes.append(Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
    validation = query.get("fieldValidation", "") or "Warn"
    if validation not in _VALIDATIONS:
        supported = ", ".join(f'"{value}"' for value in _VALIDATIONS)
        text = f'Unsupported value: "{validation}": supported values: {supported}'
        causes.append(Cause("FieldValueNotSupported", text, "fieldValidation"))
    if causes:
        raise _invalid_options(kind, causes)
    return WriteOptions(bool(dry_run), manager or _agent(request), validation, is_true(force), request.warnings)


def _agent(request: Request) -> str:
    agent = request.header("user-agent").split("/")[0]
    return "".join(char for char in agent if char.isprintable())[:128] or "unknown"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list or watch asks for. `resource_version` is None when the client named none."""

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
    """The options of a list, watch or deletecollection; raises ApiError 400 or 422."""
    version = query.get("resourceVersion", "")
    if version and not version.isdigit():
        raise bad_request(f'invalid resource version: "{version}"') if not watch else _invalid_version(version)
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=_number(query, "limit") or 0,
        continue_=query.get("continue", ""),
        resource_version=int(version) if version else None,
        match=query.get("resourceVersionMatch", ""),
        timeout_s=_number(query, "timeoutSeconds"),
        bookmarks=is_true(query.get("allowWatchBookmarks", "")),
        initial_events=is_true(query.get("sendInitialEvents", "")),
    )
    if causes := list(_faults(options, query, watch=watch)):
        raise _invalid_options("ListOptions", causes)
    return options


def _invalid_version(version: str) -> ApiError:
    text = f'Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
    return ApiError(
        422,
        "Invalid",
        f"resourceVersion: {text}",
        details={},
        causes=(Cause("FieldValueInvalid", text, "resourceVersion"),),
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(
            f'unable to convert query parameter {name}: strconv.ParseInt: parsing "{text}": invalid syntax'
        ) from None


def _faults(options: ListOptions, query: Mapping[str, str], *, watch: bool) -> list[Cause]:
    if watch:
        return _watch_faults(options, query)
    faults = []
    if "sendInitialEvents" in query:
        faults.append(
            Cause("FieldValueForbidden", "Forbidden: sendInitialEvents is forbidden for list", "sendInitialEvents")
        )
    if options.match and options.continue_:
        text = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        faults.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    elif options.match and options.resource_version is None:
        text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        faults.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    elif options.match not in {"", "Exact", "NotOlderThan"}:
        text = f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan"'
        faults.append(Cause("FieldValueNotSupported", text, "resourceVersionMatch"))
    elif options.match == "Exact" and options.resource_version == 0:
        text = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        faults.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    return faults


def _watch_faults(options: ListOptions, query: Mapping[str, str]) -> list[Cause]:
    sends = "sendInitialEvents" in query
    if options.match and not sends:
        text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [Cause("FieldValueForbidden", text, "resourceVersionMatch")]
    if sends and options.match != "NotOlderThan":
        text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [Cause("FieldValueForbidden", text, "resourceVersionMatch")]
    return []
