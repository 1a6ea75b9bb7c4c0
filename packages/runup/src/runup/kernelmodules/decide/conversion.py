"""Converts preflight validations between v1beta1 and v1beta2, and answers the API server's `ConversionReview`.

The specs are the same; the status is a map in v1beta1 and a list in v1beta2, and each has the words of its time
(docs/decisions/0083). Nothing is decoded: unknown fields and words pass through unchanged. KMM writes each Module
twice into the map, under `namespace/name` and for its oldest clients under the name alone, and reads it back as an
empty list; here a conversion there and back changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

JSON = dict[str, Any]

GROUP = "kmm.sigs.x-k8s.io"
OLD, NEW = f"{GROUP}/v1beta1", f"{GROUP}/v1beta2"
_MAX_QUOTED = 100
KINDS = ("PreflightValidation", "PreflightValidationOCP")
# Status, stage and running stage of v1beta2, and status and stage of v1beta1.
_WORDS = {
    ("Success", "Done", None): ("True", "Done"),
    ("Failure", "Done", None): ("False", "Requeued"),
    ("InProgress", "Image", None): ("False", "Image"),
    ("InProgress", "Image", "Build"): ("False", "Build"),
    ("InProgress", "Image", "Sign"): ("False", "Sign"),
}
_NEWER_WORDS = {old: new for new, old in _WORDS.items()}


class Unconvertible(ValueError):
    """Raised if an object cannot be converted; the message names the object and says why."""


def convert(obj: Any, desired: str) -> JSON:
    """Returns `obj` in the version `desired` (group and version); raises Unconvertible."""
    if not isinstance(obj, dict):
        raise Unconvertible(f"the object to convert is not a JSON object: {str(obj)[:_MAX_QUOTED]!r}")
    metadata = obj.get("metadata")
    kind, name = obj.get("kind"), str(metadata.get("name") if isinstance(metadata, dict) else None)
    if kind not in KINDS:
        raise Unconvertible(f"{kind} {name}: only {' and '.join(KINDS)} exist in two versions")
    given_version = obj.get("apiVersion")
    unknown = next((version for version in (given_version, desired) if version not in (OLD, NEW)), None)
    if unknown is not None:
        raise Unconvertible(f"{kind} {name}: there is no version {unknown}; there are {OLD} and {NEW}")
    converted = {**obj, "apiVersion": desired}
    status = obj.get("status")
    if given_version == desired or not isinstance(status, dict):
        return converted
    converted["status"] = _to_v1beta1(status) if desired == OLD else _to_v1beta2(status)
    return converted


def review(question: JSON) -> JSON:
    """Returns the answer to a `ConversionReview`: a failure as a whole if one object cannot be converted."""
    request = question.get("request")
    request = request if isinstance(request, dict) else {}
    desired = str(request.get("desiredAPIVersion") or "")
    try:
        objects = [convert(obj, desired) for obj in request.get("objects") or ()]
        answer: JSON = {"convertedObjects": objects, "result": {"status": "Success"}}
    except Unconvertible as error:
        answer = {"result": {"status": "Failure", "message": str(error)}}
    head = {"apiVersion": question.get("apiVersion"), "kind": "ConversionReview"}
    return {**head, "response": {"uid": request.get("uid", ""), **answer}}


def _to_v1beta1(status: JSON) -> JSON:
    other_fields = {key: value for key, value in status.items() if key != "modules"}
    modules = [module for module in status.get("modules") or () if isinstance(module, dict)]
    return {**other_fields, "crStatuses": dict(_entries_by_key(modules))} if modules else other_fields


def _entries_by_key(modules: list[JSON]) -> Iterator[tuple[str, JSON]]:
    """Yields each entry by its full key, then by its name. If two namespaces share a name, an unverified one wins."""
    entries = [(module, _older_entry(module)) for module in modules]
    for module, entry in entries:
        yield f"{module.get('namespace', '')}/{module.get('name', '')}", entry
    # The last entry of a name wins: a client that knows only names must not see success while a namesake has failed.
    for module, entry in sorted(entries, key=lambda pair: pair[1].get("verificationStatus") != "True"):
        yield str(module.get("name", "")), entry


def _to_v1beta2(status: JSON) -> JSON:
    """Returns the v1beta2 status. Keys without a namespace are dropped: they repeat a full key, or are ambiguous."""
    other_fields = {key: value for key, value in status.items() if key != "crStatuses"}
    statuses = status.get("crStatuses")
    statuses = statuses if isinstance(statuses, dict) else {}
    modules = []
    for key, entry in statuses.items():
        namespace, slash, name = key.partition("/")
        if slash and namespace and name and "/" not in name and isinstance(entry, dict):
            modules.append({**_newer_entry(entry), "namespace": namespace, "name": name})
    return {**other_fields, "modules": modules} if modules else other_fields


def _older_entry(entry: JSON) -> JSON:
    """Returns an entry of v1beta2's list in the form of v1beta1; unknown stages and statuses are left as they are."""
    words = tuple(entry.get(key) for key in ("verificationStatus", "verificationStage", "runningStage"))
    other_fields = {key: value for key, value in entry.items() if key not in ("namespace", "name")}
    if not _are_texts(words) or words not in _WORDS:
        return other_fields
    status, stage = _WORDS[words]
    other_fields.pop("runningStage", None)
    return {**other_fields, "verificationStatus": status, "verificationStage": stage}


def _newer_entry(entry: JSON) -> JSON:
    """Returns an entry of v1beta1 in the form of v1beta2; unknown words are left unchanged."""
    words = (entry.get("verificationStatus"), entry.get("verificationStage"))
    if not _are_texts(words) or words not in _NEWER_WORDS:
        return entry
    status, stage, running = _NEWER_WORDS[words]
    translated = {**entry, "verificationStatus": status, "verificationStage": stage}
    return translated if running is None else {**translated, "runningStage": running}


def _are_texts(words: tuple[Any, ...]) -> bool:
    """Returns whether each word is text or missing. A client may have sent a list, which cannot be looked up."""
    return all(word is None or isinstance(word, str) for word in words)
