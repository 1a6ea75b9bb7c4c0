"""The query of a request, and the options of a list, watch or deletecollection, as the real server decodes them.

`Query` has Go's rules (net/url, ParseQuery). `decode_list_options` parses the two selectors with the other options, so
that authorization and the handler read one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from kubesandbox.apiserver.http.selectors import FieldTerm, Requirement, parse_field_terms, parse_labels
from kubesandbox.apiserver.status_errors import ApiError, Cause, bad_request

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INT64 = 1 << 63


def unescape(text: str) -> str | None:
    """Returns percent-encoded text decoded, with U+FFFD for bytes that are not UTF-8; None for a broken escape."""
    return None if _BROKEN_ESCAPE.search(text) else unquote_to_bytes(text).decode(errors="replace")


class Query(dict[str, str]):
    """The first value of each query parameter by its name; a pair that Go does not read is left out."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._all: dict[str, list[str]] = {}
        for pair in text.split("&"):
            name, _, value = (unescape(part) for part in pair.replace("+", " ").partition("="))
            if pair and ";" not in pair and name is not None and value is not None:
                self.setdefault(name, value)
                self._all.setdefault(name, []).append(value)

    def all_of(self, name: str) -> list[str]:
        """Returns each value of a parameter that may be repeated."""
        return self._all.get(name, [])

    def flag(self, name: str) -> bool:
        """Returns whether a flag is set: to any value, even to none, but `0` and `false`."""
        return self.get(name, "0").lower() not in {"0", "false"}


def not_supported(name: str, value: Any, supported: Iterable[str]) -> Cause:
    """Returns the cause for a value (a string, or a list of strings) that the field does not support."""
    words = ", ".join(f'"{word}"' for word in supported)
    text = f"Unsupported value: {json.dumps(value, separators=(',', ':'))}: supported values: {words}"
    return Cause("FieldValueNotSupported", text, name)


def forbidden_cause(name: str, why: str) -> Cause:
    """Returns the cause for a field that must not be set."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", name)


def invalid_options(kind: str, causes: list[Cause]) -> ApiError:
    """Returns the 422 for invalid options of a request."""
    texts = [str(cause) for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": kind}
    message = f'{kind}.meta.k8s.io "" is invalid: {joined}'
    return ApiError(422, "Invalid", message, details=details, causes=causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list, watch or deletecollection. `initial_events` is None when the client did not set it."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTerm, ...] = ()
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    timeout_s: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None

    @property
    def resource_version(self) -> int | None:
        """The revision, None when the client set none."""
        return int(self.version) if self.version else None

    @property
    def exact_name(self) -> str | None:
        """The name that the field selector requires (fields.Selector, RequiresExactMatch); None without one."""
        return next((term.value for term in self.fields if term.equal and term.path == "metadata.name"), None)


def decode_list_options(query: Query) -> ListOptions:
    """Returns the options of a query. Raises ApiError 400 if one of them cannot be read."""
    return ListOptions(
        bookmarks=query.flag("allowWatchBookmarks"),
        version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        timeout_s=parse_number(query, "timeoutSeconds"),
        limit=max(parse_number(query, "limit") or 0, 0),
        continue_=query.get("continue", ""),
        initial_events=query.flag("sendInitialEvents") if "sendInitialEvents" in query else None,
        labels=parse_labels(query.get("labelSelector", "")),
        fields=parse_field_terms(query.get("fieldSelector", "")),
    )


def check_list_options(options: ListOptions, *, watch: bool) -> None:
    """Raises ApiError 422 for options that exclude each other."""
    if causes := _match_faults(options, watch=watch):
        raise invalid_options("ListOptions", causes)


def check_version(version: str, *, of_list: bool = False) -> None:
    """Raises ApiError 500 (of a list 400) for a resourceVersion that is not a revision."""
    is_number = re.fullmatch("[0-9]+", version)
    if version and (not is_number or len(version.lstrip("0")) > 20 or int(version) >= 1 << 64):
        why = "value out of range" if is_number else "invalid syntax"
        text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": {why}'
        raise bad_request(f"invalid resource version: {text}") if of_list else ApiError(500, "", text)


def parse_number(query: Mapping[str, str], name: str) -> int | None:
    """Returns a parameter as an int64, None if it is absent. Raises ApiError (400)."""
    if name not in query:
        return None
    text = query[name]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -_INT64 <= int(text) < _INT64:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def _match_faults(options: ListOptions, *, watch: bool) -> list[Cause]:
    """Returns the faults of resourceVersionMatch and sendInitialEvents, as ValidateListOptions words them."""
    name, faults = "resourceVersionMatch", []
    sends, match, version = options.initial_events is not None, options.match, options.version
    if watch:
        if sends and match != "NotOlderThan":
            faults.append(forbidden_cause(name, f"sendInitialEvents requires setting {name} to NotOlderThan"))
        if match and not sends:
            why = f"{name} is forbidden for watch unless sendInitialEvents is provided"
            faults.append(forbidden_cause(name, why))
        if match and match != "NotOlderThan":
            faults.append(not_supported(name, match, ("NotOlderThan",)))
        # A watch without a revision sends initial events, and gets a match by default (SetListOptionsDefaults).
        if options.continue_ and (match or (not sends and version in {"", "0"})):
            faults.append(forbidden_cause(name, f"{name} is forbidden when continue is provided"))
        return faults
    if match and not version:
        faults.append(forbidden_cause(name, f"{name} is forbidden unless resourceVersion is provided"))
    if match and options.continue_:
        faults.append(forbidden_cause(name, f"{name} is forbidden when continue is provided"))
    if match and match not in {"Exact", "NotOlderThan"}:
        faults.append(not_supported(name, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        faults.append(forbidden_cause(name, f'{name} "exact" is forbidden for resourceVersion "0"'))
    if sends:
        faults.append(forbidden_cause("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return faults
