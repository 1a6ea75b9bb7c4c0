"""Random operations: what a client may do to a ConfigMap, a Deployment and a Widget, drawn by hypothesis.

In: nothing, or a seed. Out: sequences of `Operation`, each carried out on two servers by `Pair`, which gives both
answers without what may differ (uids, times, resourceVersions). Values are few on purpose: what is of interest happens
where two writers meet in one field.
"""

from __future__ import annotations

import copy
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from tests.contract.api import JSON, Answer, Api, managed
from tests.contract.rows import GROUP, state

MANAGERS = ("one", "two", "three")
_BASES = {
    "ConfigMap": ("v1", "/api/v1/namespaces/{ns}/configmaps"),
    "Deployment": ("apps/v1", "/apis/apps/v1/namespaces/{ns}/deployments"),
    "Widget": (f"{GROUP}/v1", f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets"),
}


@dataclass(frozen=True)
class Operation:
    """One request; `body` is an object, a patch, or (for `put`) the merge patch of what is there."""

    verb: str
    kind: str
    name: str
    body: Any = None
    manager: str = "one"
    subresource: str = ""
    query: JSON = field(default_factory=dict)

    def __str__(self) -> str:
        where = "/".join(filter(None, (self.kind, self.name, self.subresource)))
        extra = " ".join(f"{key}={value}" for key, value in self.query.items())
        return f"{self.verb} {where} by {self.manager} {extra} {self.body}".replace("  ", " ")


class Pair:
    """The same on two servers; each sequence has a separate namespace."""

    def __init__(self, first: Api, second: Api) -> None:
        self.servers = (first, second)
        self._other = ThreadPoolExecutor(1)
        self._numbers = itertools.count()

    def close(self) -> None:
        """End the second server's thread."""
        self._other.shutdown()

    def namespace(self) -> str:
        """A new one on both servers."""
        name = f"random-{next(self._numbers)}"
        self._both(lambda api: api.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok())
        return name

    def do(self, operation: Operation, namespace: str) -> tuple[JSON, JSON]:
        """Both answers."""
        return self._both(lambda api: _stated(_send(api, operation, namespace), namespace))

    def _both(self, action: Any) -> tuple[Any, Any]:
        other = self._other.submit(action, self.servers[1])
        return action(self.servers[0]), other.result()


def _send(api: Api, operation: Operation, namespace: str) -> Answer:
    version, base = _BASES[operation.kind]
    collection = base.replace("{ns}", namespace)
    path = "/".join(filter(None, (collection, operation.name, operation.subresource)))
    query = {"fieldManager": operation.manager, **operation.query}
    head = {"apiVersion": version, "kind": operation.kind}
    match operation.verb:
        case "get":
            return api.get(path)
        case "list":
            return api.get(collection)
        case "delete":
            return api.delete(path, operation.body)
        case "create":
            return api.post(
                collection, _merged(operation.body, {**head, "metadata": {"name": operation.name}}), **query
            )
        case "apply":
            body = _merged(operation.body, {**head, "metadata": {"name": operation.name}})
            return api.send("PATCH", path, body, type_="application/apply-patch+yaml", **query)
        case "put":
            found = api.get(path)
            if found.code != 200:
                return found
            return api.put(path, _merged(found.body, operation.body), **query)
        case "json":
            return api.json_patch(path, *operation.body, **query)
        case verb:
            return getattr(api, verb)(path, operation.body, **query)  # type: ignore[no-any-return]


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    made = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), value)
    return made


def _stated(answer: Answer, namespace: str) -> JSON:
    stated = state(answer, None, namespace)
    if "field not declared in schema" in stated.get("message", ""):
        # A real server stops at the first such field of a Go map, another one each time.
        stated["message"] = stated["message"].partition("): ")[0]
    if isinstance(answer.body, dict) and "managedFields" in answer.body.get("metadata", {}):
        stated["managed"] = answer.body["metadata"]["managedFields"] and managed(answer.body)
    return stated


# -- values ------------------------------------------------------------------------------------------------------------

text = st.sampled_from(("1", "2", "3"))
nothing = st.none()


def _some(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries({}, optional=members)


def _of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _nullable(members: dict[str, st.SearchStrategy[Any]]) -> dict[str, st.SearchStrategy[Any]]:
    return {key: value | nothing for key, value in members.items()}


metadata = _some(
    {
        "labels": _some({"l": text, "m": text}),
        "annotations": _some({"a": text}),
        "finalizers": _of(["e.example/f"], ["e.example/f", "e.example/g"], []),
    }
)
CONFIG_MAP: dict[str, st.SearchStrategy[Any]] = {
    "metadata": metadata,
    "data": _some({"x": text, "y": text, "z": text}),
    "immutable": _of(True, False),
}
environment = st.lists(
    st.fixed_dictionaries({"name": _of("A", "B", "C")}, optional={"value": text}),
    max_size=2,
    unique_by=lambda e: e["name"],
)
container_ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": _of(80, 81)}, optional={"protocol": _of("TCP", "UDP"), "name": _of("p", "q")}
    ),
    max_size=2,
)


def _container(name: str) -> st.SearchStrategy[JSON]:
    return st.fixed_dictionaries(
        {"name": st.just(name), "image": _of("i:1", "i:2", "i")},
        optional={"env": environment, "ports": container_ports, "command": _of(["a"], ["a", "b"])},
    )


containers = st.lists(_of("c", "d", "e"), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(_container(name) for name in names)).map(list)
)
pods = st.fixed_dictionaries(
    {"metadata": st.just({"labels": {"x": "y"}}), "spec": st.fixed_dictionaries({"containers": containers})}
)
DEPLOYMENT: dict[str, st.SearchStrategy[Any]] = {
    "replicas": _of(0, 1, 3),
    "minReadySeconds": _of(0, 5),
    "paused": st.booleans(),
    "strategy": _of({"type": "Recreate"}, {"type": "RollingUpdate"}, {"rollingUpdate": {"maxSurge": 1}}),
    "revisionHistoryLimit": _of(0, 2),
}
deployment = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"selector": st.just({"matchLabels": {"x": "y"}}), "template": pods}, optional=DEPLOYMENT
        )
    },
    optional={"metadata": metadata},
)
deployment_patch = _some(
    {
        "metadata": metadata,
        "spec": _some({**_nullable(DEPLOYMENT), "template": _some({"spec": _some({"containers": containers})})}),
    }
)
WIDGET: dict[str, st.SearchStrategy[Any]] = {
    "replicas": _of(0, 2),
    "color": _of("red", "blue", "black"),
    "size": _of(0, 1, 5, 11, "5"),
    "ratio": _of(0, 0.5, 2),
    "name": _of("ab", "A", "abcdef"),
    "maybe": text | nothing,
    "fallback": text | nothing,
    "port": _of(80, "http"),
    "low": _of(1, 5),
    "high": _of(2, 6),
    "fixed": _of("f", "g"),
    "said": _of("a", "b"),
    "grows": _of(1, 2),
    "open": _some({"known": _of(1, 2), "other": _of([1], {"a": None}, "x")}),
    "free": _of(1, "x", [1, 2], {"a": {"b": 1}}),
    "labels": _some({"a": text, "b": text}),
    "whole": _some({"a": text, "b": text}),
    "nested": _some({"must": text, "deep": _some({"value": _of(1, 2)})}),
    "tags": st.lists(_of("a", "b", "c"), max_size=3),
    "words": st.lists(_of("a", "b"), max_size=2),
    "ports": st.lists(
        st.fixed_dictionaries({"number": _of(1, 2, 2000)}, optional={"protocol": _of("TCP", "UDP"), "note": text}),
        max_size=3,
    ),
    "either": _some({"a": _of(1), "b": _of(1)}),
    "odd": text,
}
widget = st.fixed_dictionaries({"spec": _some(WIDGET)}, optional={"metadata": metadata})
widget_patch = _some({"metadata": metadata, "spec": _some(_nullable(WIDGET))})
status = _some(
    {
        "phase": _of("Good", "Bad", "Odd"),
        "replicas": _of(1),
        "conditions": st.lists(
            st.fixed_dictionaries({"type": _of("A", "B"), "status": _of("True", "False")}), max_size=2
        ),
    }
)

_OBJECTS = {"ConfigMap": _some(CONFIG_MAP), "Deployment": deployment, "Widget": widget}
_PATCHES = {
    "ConfigMap": _some(_nullable({**CONFIG_MAP, "data": _some(_nullable({"x": text, "y": text, "z": text}))})),
    "Deployment": deployment_patch,
    "Widget": widget_patch,
}
# Partial objects are what managers apply.
_APPLIED = {
    "ConfigMap": _some(CONFIG_MAP),
    "Deployment": deployment | deployment_patch,
    "Widget": widget | widget_patch,
}
_POINTERS = {
    "ConfigMap": _of("/data/x", "/data/y", "/metadata/labels/l", "/metadata/finalizers/0", "/metadata/finalizers/-"),
    "Deployment": _of("/spec/replicas", "/spec/template/spec/containers/0/image", "/spec/paused", "/metadata/labels/l"),
    "Widget": _of(
        "/spec/tags/0", "/spec/tags/-", "/spec/color", "/spec/ports/0/note", "/spec/labels/a", "/spec/words/-"
    ),
}
_STEPS = st.fixed_dictionaries(
    {"op": _of("add", "remove", "replace", "test"), "value": _of("1", "red", "e.example/h", 2)}
)
_DRY = st.just({}) | st.just({}) | st.just({"dryRun": "All"})
_VALIDATED = st.just({}) | _of({"fieldValidation": "Strict"}, {"fieldValidation": "Ignore"}, {"dryRun": "All"})
_FORCED = _of({}, {}, {"force": "true"}, {"force": "true", "dryRun": "All"})


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """One operation on one of five objects."""
    kind, name = draw(
        _of(("ConfigMap", "a"), ("ConfigMap", "b"), ("Deployment", "a"), ("Widget", "a"), ("Widget", "b"))
    )
    manager = draw(_of(*MANAGERS))
    verb = draw(
        _of("create", "apply", "apply", "apply", "put", "merge", "json", "strategic", "delete", "list", "status")
    )
    match verb:
        case "create":
            return Operation(verb, kind, name, draw(_OBJECTS[kind]), manager, query=draw(_VALIDATED))
        case "apply":
            return Operation(verb, kind, name, draw(_APPLIED[kind]), manager, query=draw(_FORCED))
        case "put" | "merge":
            return Operation(verb, kind, name, draw(_PATCHES[kind]), manager, query=draw(_VALIDATED))
        case "strategic":
            return Operation(verb, kind, name, draw(_PATCHES[kind]), manager, query=draw(_DRY))
        case "json":
            return Operation(verb, kind, name, draw(st.lists(_pointed(kind), min_size=1, max_size=2)), manager)
        case "status":
            by = draw(_of("apply", "merge"))
            return Operation(by, "Widget", "a", {"status": draw(status)}, manager, "status", draw(_FORCED))
        case _:
            return Operation(verb, kind, name)


def _pointed(kind: str) -> st.SearchStrategy[JSON]:
    return st.tuples(_STEPS, _POINTERS[kind]).map(lambda both: {**both[0], "path": both[1]})
