"""Rules that all kinds share: metadata set by the server, generations, and when two states are the same. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]

IMPORTED = "sandbox.runup.dev/imported"
"""Label of objects that came out of a dump; no controller of the sandbox touches them."""
# Only the server sets these: values from clients are replaced by the stored ones.
_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")
# Seeded by the system once: asking it for each UID took a tenth of a create's time. A UID is unique, not secret.
_RANDOM = random.Random()  # noqa: S311
# The bits of a UUID that are random, and those that say its version and variant (RFC 9562, section 5.4).
_UUID_VERSION_4 = 0x4000_8000_0000_0000_0000
_UUID_FREE = ~0xF000_C000_0000_0000_0000


def new_uid() -> str:
    """Returns a random UUID (version 4), for an object or a request."""
    # As uuid.UUID(int=..., version=4) would print it, in a third of the time.
    text = f"{_RANDOM.getrandbits(128) & _UUID_FREE | _UUID_VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def rfc3339(moment: datetime, unit: str = "seconds") -> str:
    """Returns a time in UTC such as `2026-01-31T12:00:00Z`, to the second or to the `unit` of `isoformat`.

    The year keeps its four digits, which strftime drops before 1000.
    """
    return f"{moment.replace(tzinfo=None).isoformat(timespec=unit)}Z"


def meta(obj: JSON) -> JSON:
    """Returns the object's metadata, which is added if it does not exist."""
    value = obj.get("metadata")
    if not isinstance(value, dict):
        value = obj["metadata"] = {}
    return value


def key_of(obj: JSON) -> str:
    """Returns an object's key: `namespace/name`, or the name only."""
    metadata = meta(obj)
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata.get("name", "")


def encoder_of(kind: Kind) -> Callable[[JSON], bytes]:
    """Returns the function that encodes objects of a kind as bytes.

    Custom resources have their keys sorted, as Go writes maps. Built-in kinds begin with kind and apiVersion, so that a
    list can omit them from its items by cutting a prefix (as a real server does).
    """
    if kind.custom:
        return lambda obj: orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
    return lambda obj: orjson.dumps(
        {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]} | obj
    )


def list_bytes(kind: Kind, metadata: JSON, raws: list[bytes]) -> bytes:
    """Returns a list of stored objects without decoding them."""
    if kind.custom:
        head = b'{"apiVersion":"%b","items":[' % kind.api_version.encode()
        tail = b'],"kind":"%b","metadata":%b}' % (kind.list_name.encode(), orjson.dumps(metadata))
        return head + b",".join(raws) + tail
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        kind.list_name.encode(),
        kind.api_version.encode(),
        orjson.dumps(metadata),
    )
    # Items of a list of a built-in kind have no kind and apiVersion.
    type_prefix = b'{"kind":"%b","apiVersion":"%b",' % (kind.kind.encode(), kind.api_version.encode())
    start = len(type_prefix)
    items = [b"{" + raw[start:] if raw.startswith(type_prefix) else raw for raw in raws]
    return b"".join((head, b",".join(items), b"]}"))


def stamp_new(kind: Kind, obj: JSON, *, uid: str, now: datetime) -> None:
    """Sets the metadata that the server sets on a new object."""
    metadata = meta(obj)
    for key in _SERVER_SET:
        if key != "generation":  # of kinds that do not count it, whatever the client says
            metadata.pop(key, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = rfc3339(now)
    if kind.generation or kind.custom:
        metadata["generation"] = 1


def stamp_restored(kind: Kind, obj: JSON, now: datetime) -> None:
    """Sets the uid, creation time and generation that a restored object lacks."""
    metadata = meta(obj)
    metadata.pop("resourceVersion", None)
    metadata.setdefault("uid", new_uid())
    metadata.setdefault("creationTimestamp", rfc3339(now))
    if kind.generation or kind.custom:
        metadata.setdefault("generation", 1)


def carry_over(kind: Kind, new: JSON, old: JSON) -> None:
    """Restores metadata that an update cannot change, and increments the generation if the desired state changed."""
    new_meta, old_meta = meta(new), meta(old)
    for key in _SERVER_SET:
        if key in old_meta:
            new_meta[key] = old_meta[key]
        else:
            new_meta.pop(key, None)
    new_meta["resourceVersion"] = old_meta.get("resourceVersion", "")
    new_meta["name"] = old_meta["name"]
    if old_meta.get("generateName") and "generateName" not in new_meta:
        new_meta["generateName"] = old_meta["generateName"]
    if old_meta.get("namespace"):
        new_meta["namespace"] = old_meta["namespace"]
    counts = kind.generation or kind.custom
    if counts and "generation" in old_meta and desired_state(kind, new) != desired_state(kind, old):
        new_meta["generation"] = int(old_meta["generation"]) + 1


def desired_state(kind: Kind, obj: JSON) -> JSON:
    """Returns the part of an object whose changes increment its generation."""
    if kind.custom:
        left_out = {"metadata", "apiVersion", "kind", *(("status",) if kind.has_status else ())}
        return {key: value for key, value in obj.items() if key not in left_out}
    if kind.resource == "priorityclasses.scheduling.k8s.io":  # its registry counts no changes
        return {}
    if kind.group == "admissionregistration.k8s.io" or "spec" not in obj:
        left_out = {"metadata", "apiVersion", "kind", "status"}
        return {key: value for key, value in obj.items() if key not in left_out}
    if kind.resource == "deployments.apps":  # of these the annotations count too (registry/apps/deployment/strategy.go)
        return {"spec": obj.get("spec"), "annotations": meta(obj).get("annotations")}
    return {"spec": obj.get("spec")}


def is_same_state(a: JSON, b: JSON) -> bool:
    """Returns whether two states differ only in revision and the times in managedFields, so that no write is needed."""
    return _without_revision(a) == _without_revision(b)


def _without_revision(obj: JSON) -> JSON:
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "resourceVersion"}
    if fields := metadata.get("managedFields"):
        metadata["managedFields"] = [{key: value for key, value in entry.items() if key != "time"} for entry in fields]
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value not in ({}, [], None)}}


def drop_empty_meta(obj: JSON) -> None:
    """Removes empty metadata members (null, empty strings, maps and lists), as a typed decoder does."""
    metadata = meta(obj)
    for key in [key for key, value in metadata.items() if value is None or value in ({}, [], "")]:
        del metadata[key]
