"""The query parameters of writes, and the timeout of any request, validated as the real server does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kubesandbox.apiserver.http import body
from kubesandbox.apiserver.http.go_syntax import duration_fault
from kubesandbox.apiserver.http.list_options import Query, forbidden_cause, invalid_options, not_supported
from kubesandbox.apiserver.http.messages import Request, User, Warnings
from kubesandbox.apiserver.http.request_target import Target
from kubesandbox.apiserver.status_errors import Cause, bad_request

_VALIDATIONS = ("Ignore", "Strict", "Warn")
_MANAGER_BYTES = 128
# Subresources with long-running requests, which have no deadline.
_LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def dry_run_faults(values: Sequence[str]) -> list[Cause]:
    """Returns the faults of `dryRun`, whose only valid value is `All`."""
    return [] if set(values) <= {"All"} else [not_supported("dryRun", list(values), ("All",))]


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
    query: Query = field(default_factory=Query, compare=False)  # as it was given
    target: Target | None = None  # of the request; None for the server itself
    large: bool = False  # whether the body represents many values

    @property
    def strict(self) -> bool:
        """Reports whether unknown and duplicate fields fail the write."""
        return self.validation == "Strict"


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Returns the options of a create, update or patch; `kind` is for errors (`PatchOptions`). Raises ApiError 422."""
    query, causes = request.query, []
    if "force" in query and kind == "PatchOptions" and not apply:
        causes.append(forbidden_cause("force", "may not be specified for non-apply patch"))
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
    dry_run = query.all_of("dryRun")
    causes += dry_run_faults(dry_run)
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
        force=query.flag("force"),
        user=request.user,
        warnings=request.warnings,
        annotations=request.annotations,
        query=query,
        target=request.target,
        large=body.is_large_body(request),
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
