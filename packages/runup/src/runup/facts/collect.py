"""Collects a dump in one pass: lists each kind, records what became of it, and writes the folder or the archive.

The record (`runup-dump.json`) says of each kind whether it is complete, forbidden, absent or failed, so that checks of
the dump know what it proves (docs/decisions/0080). Objects have only the fields that hold no secrets or that runup
reads (`collected_fields`). Nothing is left half-written: the folder gets its name at the end.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.extension_v1 import ValidatingAdmissionPolicyBinding
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from runup import __version__
from runup.api.platform_v1 import LAST_APPLIED
from runup.checks.decide.reads import type_of
from runup.dump.dump_files import COLLECTED
from runup.dump.dump_time import event_times
from runup.dump.load import is_read
from runup.facts.collected_fields import WHOLE_OBJECTS, as_text, collected_fields, reducer
from runup.facts.listers import Lister, Refused, WantedKind
from runup.process.steps import step

JSON = dict[str, Any]
_BINDINGS = resource_of(ValidatingAdmissionPolicyBinding)
_REDUCED = (
    "The objects have only the fields that are known to hold no secrets and those that runup reads, as `fields` says: "
    f"arguments, values of variables, other annotations and parameters are left out. `{WHOLE_OBJECTS}` collects all."
)
EVENTS_AT_MOST, EVENTS_SINCE = 1000, timedelta(hours=1)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
COMPLETE, PARTLY, FORBIDDEN, ABSENT, FAILED = "complete", "partly", "forbidden", "absent", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedKind:
    """A kind and its result. `lists` has a list for each requested namespace, or one for all.

    `fields` are those that the objects have, empty if they are whole.
    """

    name: str
    state: str
    resource: Resource | None = None
    fields: str = ""
    lists: tuple[tuple[str, JSON], ...] = ()
    message: str = ""
    namespaces: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of objects."""
        return sum(len(document["items"]) for _, document in self.lists)

    def row(self) -> JSON:
        """Returns the kind's row in the record."""
        row: JSON = {"resource": self.name, "state": self.state, "count": self.count}
        return row | {key: value for key in ("message", "namespaces", "fields") if (value := getattr(self, key))}


def collect_kinds(kinds: Sequence[WantedKind], lister: Lister) -> tuple[CollectedKind, ...]:
    """Lists every kind, and returns what became of each."""
    collected_by_kind: dict[str, CollectedKind] = {}
    with step("Listing kinds", len(kinds)) as current:
        for kind in kinds:
            current.detail = kind.name
            collected_by_kind[kind.name] = (
                _collect_referenced(kind, lister, collected_by_kind) if kind.lookup else _list_kind(kind, lister)
            )
            current.done += 1
    return tuple(collected_by_kind.values())


def _list_kind(kind: WantedKind, lister: Lister) -> CollectedKind:
    """Lists a kind in all of its namespaces, in the first of its versions that the server has."""
    for resource in kind.versions:
        lists: list[tuple[str, JSON]] = []
        gaps: list[str] = []
        try:
            for namespace in kind.namespaces or ("",):
                listing = lister.listed(resource, namespace, kind.selector)
                gaps += listing.incomplete
                items = [_without_content(item) for item in listing.items] if kind.metadata_only else listing.items
                items = _read_events(items) if resource.kind == "Event" else items
                lists.append((namespace, _list_document(resource, items, listing.resource_version)))
        except Refused as refused:
            last_error = refused
            if refused.state != ABSENT:
                break
            continue
        return CollectedKind(
            name=kind.name,
            state=PARTLY if gaps else COMPLETE,
            resource=resource,
            lists=tuple(lists),
            message="; ".join(dict.fromkeys(gaps)),
            namespaces=kind.namespaces,
        )
    message = "" if last_error.state == ABSENT else last_error.message
    return CollectedKind(name=kind.name, state=last_error.state, message=message)


def _read_events(items: Iterable[JSON]) -> list[JSON]:
    """Returns the events that a reader of a dump uses: the newest of the last hour, and no more than `EVENTS_AT_MOST`.

    A cluster has them by the thousand, and most are about something else.
    """
    read = [item for item in items if is_read({**item, "kind": "Event"})]
    seen = {id(item): _seen_at(item) for item in read}
    newest = sorted(read, key=lambda item: seen[id(item)], reverse=True)[:EVENTS_AT_MOST]
    # Times of the API are RFC 3339 in UTC, and sort as text.
    last = max(seen.values(), default="")[:19]
    oldest = (datetime.fromisoformat(last) - EVENTS_SINCE).isoformat() if last else ""
    return [item for item in newest if not seen[id(item)] or seen[id(item)] >= oldest]


def _seen_at(event: JSON) -> str:
    times = (*event_times(event), (event.get("metadata") or {}).get("creationTimestamp"))
    return next((time for time in times if isinstance(time, str) and _TIME.match(time)), "")


def _without_content(item: JSON) -> JSON:
    """Returns the object with its metadata alone, and without the annotation that may hold a copy of its content."""
    metadata = {key: value for key, value in item.get("metadata", {}).items() if key != "managedFields"}
    notes = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    kept: JSON = {key: item[key] for key in ("apiVersion", "kind") if key in item}
    return {**kept, "metadata": {**metadata, "annotations": notes}}


def _collect_referenced(kind: WantedKind, lister: Lister, collected_by_kind: dict[str, CollectedKind]) -> CollectedKind:
    """Returns the objects that others refer to; they are all that a check reads of the kind."""
    assert kind.lookup is not None
    assert kind.lookup.of is not None
    resource, of = kind.versions[0], collected_by_kind.get(kind.lookup.of.name)
    if of is None or of.state not in (COMPLETE, ABSENT):
        problem = f"which are needed is not known: {kind.lookup.of.name} could not be listed"
        return CollectedKind(name=kind.name, state=FAILED, message=problem)
    referring = (item for _, document in of.lists for item in document["items"])
    names = {kind.lookup.names(codec.convert(type_of(kind.lookup.of), item)) for item in referring}
    try:
        looked_up = [lister.named(resource, *name) for name in sorted(names) if all(name)]
    except Refused as refused:
        return CollectedKind(name=kind.name, state=refused.state, message=refused.message)
    items = [obj for obj in looked_up if obj is not None]
    lists = (("", _list_document(resource, items, "")),)
    return CollectedKind(name=kind.name, state=COMPLETE, resource=resource, lists=lists)


def with_known_fields(kinds: Iterable[CollectedKind], others: Iterable[Resource]) -> tuple[CollectedKind, ...]:
    """Returns the kinds with the fields that hold no secrets or that runup reads.

    `others` are the reads of checks that are not built in; the fields that they name are kept.
    """
    kinds, others = tuple(kinds), tuple(others)
    bindings = (
        item for kind in kinds if kind.name == _BINDINGS.name for _, each in kind.lists for item in each["items"]
    )
    policies_deny = any("Deny" in ((item.get("spec") or {}).get("validationActions") or ()) for item in bindings)
    reduced_kinds = []
    for kind in kinds:
        resource = kind.resource
        if resource is None:
            reduced_kinds.append(kind)
            continue
        fields = collected_fields(resource, [each for each in others if each.name == kind.name])
        reduced = reducer(resource, fields, policies_deny=policies_deny)
        lists = tuple(
            (namespace, {**document, "items": list(map(reduced, document["items"]))})
            for namespace, document in kind.lists
        )
        reduced_kinds.append(replace(kind, lists=lists, fields=as_text(fields)))
    return tuple(reduced_kinds)


def _list_document(resource: Resource, items: list[JSON], version: str) -> JSON:
    """Returns the List object of these items, as the API server would send it."""
    head = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List"}
    return {**head, "metadata": {"resourceVersion": version}, "items": items}


@dataclass(frozen=True, slots=True)
class Redaction:
    """Words of the user that must not be in the dump, each replaced by the same word everywhere."""

    words: tuple[str, ...] = field(default_factory=tuple)

    def of(self, text: str) -> str:
        """Returns JSON text without the words."""
        # The longest first: one may be part of another.
        for number, word in sorted(enumerate(self.words, 1), key=lambda entry: -len(entry[1])):
            text = text.replace(msgspec.json.encode(word).decode()[1:-1], f"redacted-{number}")
        return text


def write(
    kinds: Iterable[CollectedKind],
    target: Path,
    now: datetime,
    redaction: Redaction,
    *,
    archive: bool,
    kubernetes: str = "",
) -> Path:
    """Writes the dump to the folder `target`, or to an archive of that name, and returns its path.

    `kubernetes` is the API server's version, empty if it did not say it. Raises InputError if there is something of
    that name.
    """
    name = target.name.removesuffix(".tgz").removesuffix(".tar.gz")
    path = target.with_name(f"{name}.tar.gz") if archive else target
    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=path.parent))
    try:
        folder = scratch / name
        folder.mkdir()
        kinds = tuple(kinds)
        documents = {
            f"{kind.name}{f'@{namespace}' if namespace else ''}.json": document
            for kind in kinds
            for namespace, document in kind.lists
        }
        # The last file records what the dump is.
        documents[COLLECTED] = {
            "collectedBy": f"runup {__version__}",
            "collectedTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            **({"kubernetesVersion": kubernetes} if kubernetes else {}),
            **({"note": _REDUCED} if any(kind.fields for kind in kinds) else {}),
            "kinds": [kind.row() for kind in kinds],
        }
        for file, document in documents.items():
            text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
            (folder / file).write_text(redaction.of(text) + "\n", encoding="utf-8")
        if archive:
            packed = scratch / path.name
            with tarfile.open(packed, "w:gz") as tar:
                tar.add(folder, arcname=name)
            packed.replace(path)
        else:
            if path.exists():
                path.rmdir()
            folder.replace(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return path


def refuse_existing(path: Path) -> None:
    """Raises InputError if `path` exists and is not an empty folder."""
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise InputError(f"{path} exists; name a folder that does not, so that objects of two times are not mixed")
