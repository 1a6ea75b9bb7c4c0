"""Objects of every kind that the server publishes in which one field has an odd value: empty, null, negative, huge."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.contract.rows import rows

from kubesandbox.apiserver.http.messages import Request, Response, User
from kubesandbox.apiserver.schema import builtin_table
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]
Path = tuple[str | int, ...]

ADMIN = User("kubernetes-admin", "", ("system:masters", "system:authenticated"))
ODD: tuple[Any, ...] = (
    *("", None, -1, 0, 1.5, True, [], {}, [None], {"": None}, ["", ""], [{}, {}]),
    *(2**31, -(2**63), 2**63, 10**40, "1e999999", "-1", " ", "x" * 300, "\N{PILE OF POO}", "a/b/c", "0", "8%", "-1%"),
    *("9999-99-99T99:99:99Z", "::", "{", "*"),
)
_CONTENT_TYPES = {
    "POST": "application/json",
    "PUT": "application/json",
    "APPLY": "application/apply-patch+yaml",
    "MERGE": "application/merge-patch+json",
}
WAYS = tuple(_CONTENT_TYPES)
# Seconds of a processor that one request may hold the event loop.
MAX_HELD_S = 0.2
# A real server answers these with 500, too.
_UPSTREAMS_OWN = (
    "failed to create typed patch object",
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint: parsing",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a kind, by its path in an object."""

    kind: Kind
    path: Path

    def __str__(self) -> str:
        return f"{self.kind.group}/{self.kind.version} {self.kind.kind} {'.'.join(map(str, self.path))}"


def places_of(kind: Kind, schema: JSON | None = None) -> Iterator[Place]:
    """Yields every field of a kind; of a custom one by its `schema`. Types inside themselves are entered once."""
    if schema is not None:
        paths = _schema_paths(schema, ())
    else:
        paths = _type_paths(builtin_table.full_name(kind.group, kind.version, kind.kind), (), ())
    yield from (Place(kind, path) for path in paths if path)


def _type_paths(word: str, path: Path, outer: tuple[str, ...]) -> Iterator[Path]:
    yield path
    if word[:2] in {"[]", "{}"}:
        yield from _type_paths(word[2:], (*path, 0 if word[:2] == "[]" else "k"), outer)
    elif (entry := builtin_table.find_type(word)) and word not in outer:
        for field in entry.fields:
            yield from _type_paths(field.type, (*path, field.name), (*outer, word))


def _schema_paths(schema: JSON, path: Path) -> Iterator[Path]:
    yield path
    for name, inner in (schema.get("properties") or {}).items():
        yield from _schema_paths(inner, (*path, name))
    if schema.get("items"):
        yield from _schema_paths(schema["items"], (*path, 0))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _schema_paths(schema["additionalProperties"], (*path, "k"))


def base_objects() -> dict[str, JSON]:
    """Returns an object of each kind that a real server accepted, by the kind's name: the contract's rows have them."""
    found: dict[str, JSON] = {}
    for row in rows():
        for method, _path, *body in row.do:
            if method == "post" and body and isinstance(body[0], dict) and isinstance(body[0].get("kind"), str):
                found.setdefault(body[0]["kind"], body[0])
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    workload = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    return found | {
        "Pod": {"spec": {"containers": [container]}},
        **dict.fromkeys(("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"), workload),
        "Job": {"spec": {"template": {**template, "spec": {"containers": [container], "restartPolicy": "Never"}}}},
    }


def odd_object(place: Place, base: JSON, value: Any) -> JSON:
    """Returns `base` with `value` at the place; objects and lists on the way are made where they do not exist."""
    obj = copy.deepcopy(base)
    obj |= {"apiVersion": f"{place.kind.group}/{place.kind.version}".strip("/"), "kind": place.kind.kind}
    obj.setdefault("metadata", {})["name"] = "odd"
    holder: Any = obj
    for part, following in zip(place.path, (*place.path[1:], None), strict=True):
        if isinstance(part, int) and not holder:
            holder.append(None)
        if following is None:
            holder[part] = value
            break
        inner = holder[part] if isinstance(part, int) else holder.get(part)
        wanted = list if isinstance(following, int) else dict
        if not isinstance(inner, wanted):
            inner = holder[part] = wanted()
        holder = inner
    return obj


async def send(server: ApiServer, place: Place, obj: JSON, way: str, **query: str) -> Response:
    """Sends an object to the server's application as the administrator, in one of `WAYS`."""
    kind = place.kind
    path = f"{f'/apis/{kind.group}' if kind.group else '/api'}/{kind.version}"
    path += f"{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}{'' if way == 'POST' else '/odd'}"
    method = way if way in {"POST", "PUT"} else "PATCH"
    query |= {"fieldManager": "m", "force": "true"} if way == "APPLY" else {}
    headers = (("Content-Type", _CONTENT_TYPES[way]), ("Accept", "application/json"))
    request = Request.parse(method, f"{path}?{urlencode(query)}", headers, json.dumps(obj).encode())
    return await server._app.handle(request, ADMIN)  # noqa: SLF001 - without a socket


async def fault_of(server: ApiServer, place: Place, base: JSON, value: Any, way: str) -> str:
    """Returns what is wrong with the answer to an object with an odd value, or an empty string."""
    obj = odd_object(place, base, value)
    # A second time, since the process may have collected its garbage during the first.
    for _ in range(2):
        began_s = time.thread_time()
        answer = await send(server, place, obj, way, dryRun="All")
        if (held_s := time.thread_time() - began_s) <= MAX_HELD_S:
            break
    else:
        return f"{way} {place} = {value!r:.40}: held the event loop for {held_s:.2f} s of a processor"
    message = json.loads(answer.body).get("message", "") if answer.status >= 400 else ""
    if answer.status < 500 or message.startswith(_UPSTREAMS_OWN):
        return ""
    return f"{way} {place} = {value!r:.40}: {answer.status} {message:.200}"
