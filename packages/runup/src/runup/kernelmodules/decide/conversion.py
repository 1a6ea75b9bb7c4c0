"""Converts preflight validations between v1beta1 and v1beta2, and answers the API server's `ConversionReview`.

The specs are the same; the status is a map in v1beta1 and a list in v1beta2, and each has the words of its time
(docs/decisions/0083). Nothing is decoded: unknown fields and words pass through unchanged. KMM writes each Module
twice into the map, under `namespace/name` and for its oldest clients under the name alone, and reads it back as an
empty list; here a conversion there and back changes nothing.
"""

from __future__ import annotations

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
    old, new = "crStatuses", "modules"
    other_fields = {key: value for key, value in status.items() if key != (new if desired == OLD else old)}
    if desired == OLD:
        given = [module for module in status.get(new) or () if isinstance(module, dict)]
        entries: JSON = {old: _by_key(given)} if given else {}
    else:
        statuses = status.get(old)
        listed = _listed(statuses if isinstance(statuses, dict) else {})
        entries = {new: listed} if listed else {}
    converted["status"] = {**other_fields, **entries}
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


def _by_key(modules: list[JSON]) -> JSON:
    """Returns v1beta1's map: each entry under its full key and, for KMM's oldest clients, under its name alone."""
    by_key, entries = {}, []
    for module in modules:
        words = tuple(module.get(key) for key in ("verificationStatus", "verificationStage", "runningStage"))
        entry = {key: value for key, value in module.items() if key not in ("namespace", "name")}
        # Unknown stages and statuses are left as they are.
        if _are_texts(words) and words in _WORDS:
            entry.pop("runningStage", None)
            entry["verificationStatus"], entry["verificationStage"] = _WORDS[words]
        by_key[f"{module.get('namespace', '')}/{module.get('name', '')}"] = entry
        entries.append((str(module.get("name", "")), entry))
    # The last entry of a name wins: a client that knows only names must not see success while a namesake has failed.
    return by_key | dict(sorted(entries, key=lambda named: named[1].get("verificationStatus") != "True"))


def _listed(statuses: JSON) -> list[JSON]:
    """Returns v1beta2's list. Keys without a namespace are dropped: they repeat a full key, or are ambiguous."""
    modules = []
    for key, entry in statuses.items():
        namespace, slash, name = key.partition("/")
        if not (slash and namespace and name and "/" not in name and isinstance(entry, dict)):
            continue
        translated = dict(entry)
        words = (entry.get("verificationStatus"), entry.get("verificationStage"))
        if _are_texts(words) and words in _NEWER_WORDS:
            status, stage, running = _NEWER_WORDS[words]
            translated |= {"verificationStatus": status, "verificationStage": stage}
            translated |= {} if running is None else {"runningStage": running}
        modules.append({**translated, "namespace": namespace, "name": name})
    return modules


def _are_texts(words: tuple[Any, ...]) -> bool:
    """Returns whether each word is text or missing. A client may have sent a list, which cannot be looked up."""
    return all(word is None or isinstance(word, str) for word in words)
