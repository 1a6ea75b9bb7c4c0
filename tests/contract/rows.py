"""Rows of the contract: requests, and what a real kube-apiserver answered to them.

In: `rows/*.yaml`, one list of rows a file. Out: `Row`s, and `run`, which sends a row's requests to any server and gives
back the answer in the form in which `then` states it. `python -m tests.contract.record` writes `then` from the real
server; nobody writes it by hand, and the sandbox's answers are never recorded.

A row: `id` (a sentence); `do`, requests `[method, path, body, query]` of which all but the last must succeed (`each:
true` states every answer; a `watch` is answered by the first `events` of it); `show`, dotted paths of the answer (all
of it where absent); `then`, the answer or answers; `differs`, why the sandbox answers otherwise, which
docs/reference/sandbox-differences.md repeats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.contract.api import CRDS, JSON, Answer, Api, is_protobuf, managed

FOLDER = Path(__file__).parent / "rows"
DEFINITION = FOLDER / "definitions" / "widget.yaml"
GROUP = "contract.example.com"
_BASES = {
    "cm": "/api/v1/namespaces/{ns}/configmaps",
    "secrets": "/api/v1/namespaces/{ns}/secrets",
    "pods": "/api/v1/namespaces/{ns}/pods",
    "services": "/api/v1/namespaces/{ns}/services",
    "serviceaccounts": "/api/v1/namespaces/{ns}/serviceaccounts",
    "deploy": "/apis/apps/v1/namespaces/{ns}/deployments",
    "replicasets": "/apis/apps/v1/namespaces/{ns}/replicasets",
    "daemonsets": "/apis/apps/v1/namespaces/{ns}/daemonsets",
    "statefulsets": "/apis/apps/v1/namespaces/{ns}/statefulsets",
    "jobs": "/apis/batch/v1/namespaces/{ns}/jobs",
    "cronjobs": "/apis/batch/v1/namespaces/{ns}/cronjobs",
    "pdbs": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    "roles": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
    "rbac": "/apis/rbac.authorization.k8s.io/v1",
    "limitranges": "/api/v1/namespaces/{ns}/limitranges",
    "claims": "/api/v1/namespaces/{ns}/persistentvolumeclaims",
    "ingresses": "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
    "ingressclasses": "/apis/networking.k8s.io/v1/ingressclasses",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "mutating": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "reviews": "/apis/authorization.k8s.io/v1",
    "crds": CRDS,
    "w": f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets",
    "ns": "/api/v1/namespaces",
}
# What a message may hold that is another one at each run or in each build.
_NAMED = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"(?<=ResourceVersion in object meta: )\d+"), "RV"),
    (re.compile(r"(?<=ResourceVersion in record \()\d+"), "RV"),
    (re.compile(r"(?<=resource version: 999999999, current: )\d+"), "RV"),
    (re.compile(r"^\d+s$"), "AGE"),
    (re.compile(r'(?<=in scheme ")[^"]+'), "SCHEME"),
    # The whole object as Go writes it, with its resourceVersion.
    (re.compile(r'(?<=Invalid value: ")\{\\".*\}(?=": )'), "{...}"),
)
_EARLIER = re.compile(r"\$(\d+)((?:\.\w+)+)")
_VARYING = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")


@dataclass(frozen=True)
class Row:
    """One row of one file."""

    file: str
    id: str
    do: list[list[Any]]
    then: Any = None
    show: list[str] | None = None
    each: bool = False
    differs: str = ""

    @property
    def title(self) -> str:
        """As a test's id names it."""
        return f"{self.file}: {self.id}"


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order in which they stand."""
    return tuple(
        Row(file=path.stem, **row) for path in files() for row in yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    )


def files() -> list[Path]:
    """The files that hold rows."""
    return sorted(FOLDER.glob("*.yaml"))


def run(api: Api, row: Row, namespace: str) -> Any:
    """Send the requests; what `then` must be."""
    answers: list[Answer] = []
    for step in row.do:
        if answers and not row.each:
            answers[-1].ok()
        answers.append(_send(api, step, namespace, answers))
    stated = [state(answer, row.show, namespace) for answer in answers]
    return stated if row.each else stated[-1]


def _send(api: Api, step: list[Any], namespace: str, earlier: list[Answer]) -> Answer:
    method, path, body, query, *_ = [*step, None, None]
    head, *rest = path.split("/", 1)
    if head in _BASES:
        path = "/".join((_BASES[head], *rest))
    query = dict(query or {})
    user = api.impersonating(*query.pop("as").split()) if "as" in query else api
    manager = query.pop("manager", "")
    path, body, query = (_fill(part, namespace, earlier) for part in (path, body, query))
    if isinstance(body, str):
        body = body.encode()
    if method == "watch":
        return user.events(path, **query)
    if method == "apply":
        return user.apply(path, _named(body, path), manager or "contract", **query)
    if manager:
        query["fieldManager"] = manager
    if method in {"post", "put"}:
        return getattr(user, method)(path, _named(body, path), **query)  # type: ignore[no-any-return]
    if method == "json":
        return user.json_patch(path, *body, **query)
    if method in {"get", "delete", "merge", "strategic"}:
        return getattr(user, method)(path, *(() if body is None else (body,)), **query)  # type: ignore[no-any-return]
    return user.send(method.upper(), path, body, **query)


# Rows may leave out the two members that say the same each time.
_KINDS = {
    "configmaps": ("v1", "ConfigMap"),
    "secrets": ("v1", "Secret"),
    "pods": ("v1", "Pod"),
    "services": ("v1", "Service"),
    "serviceaccounts": ("v1", "ServiceAccount"),
    "deployments": ("apps/v1", "Deployment"),
    "widgets": (f"{GROUP}/v1", "Widget"),
}


def _named(body: Any, path: str) -> Any:
    if not isinstance(body, dict) or "kind" in body or "apiVersion" in body:
        return body
    for plural, (version, kind) in _KINDS.items():
        if re.search(rf"/{plural}(/[^/]+(/status)?)?$", path):
            return {"apiVersion": version, "kind": kind, **body}
    return body


def _fill(value: Any, namespace: str, earlier: list[Answer]) -> Any:
    """`{ns}`, and `$0.metadata.uid` of the first answer, replaced wherever they stand."""
    if isinstance(value, dict):
        return {_fill(key, namespace, earlier): _fill(item, namespace, earlier) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, namespace, earlier) for item in value]
    if not isinstance(value, str):
        return value
    value = value.replace("{ns}", namespace)
    if whole := _EARLIER.fullmatch(value):
        return _at(earlier[int(whole[1])].body, whole[2][1:])
    return _EARLIER.sub(lambda found: str(_at(earlier[int(found[1])].body, found[2][1:])), value)


def state(answer: Answer, show: list[str] | None, namespace: str) -> JSON:
    """Code, warnings and body of an answer without what differs from run to run; a failure's Status in short."""
    stated: JSON = {"code": answer.code}
    if answer.warnings:
        stated["warnings"] = list(answer.warnings)
    if is_protobuf(answer.headers):
        stated["protobuf"] = True
    body = answer.body
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        stated |= {key: body[key] for key in ("reason", "message", "details") if key in body}
        _order(stated)
    elif show is None:
        stated["body"] = without_varying(body)
    else:
        stated |= dict(_shown(body, show))
    return dict(_plain(stated, namespace))


def _order(failure: JSON) -> None:
    """Several faults come in the order of a Go map, another one each time: they are sorted, and stated once."""
    causes = failure.get("details", {}).get("causes", [])
    if len(causes) > 1:
        failure["details"] = {
            **failure["details"],
            "causes": sorted(causes, key=lambda c: (c.get("field", ""), c["message"])),
        }
        failure["message"] = failure["message"].partition("[")[0] + "[...]"
    head, several, lines = failure["message"].partition("errors:\n")
    if several:
        failure["message"] = head + several + "\n".join(sorted(lines.split("\n")))


def _shown(body: Any, show: list[str]) -> Iterator[tuple[str, Any]]:
    for path in show:
        if path == "managed":
            yield path, managed(body)
        elif (found := _at(body, path)) is not _NONE:
            yield path, found


_NONE = object()


def _at(value: Any, path: str) -> Any:
    """`a.0.b`; `*` gives the list of what is below each item."""
    first, _, rest = path.partition(".")
    if first == "*":
        return [_at(item, rest) if rest else item for item in value]
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        found = value[int(first)]
    elif isinstance(value, dict) and first in value:
        found = value[first]
    else:
        return _NONE
    return _at(found, rest) if rest else found


def without_varying(value: Any) -> Any:
    """Objects without the members that a server makes up."""
    if isinstance(value, list):
        return [without_varying(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_varying(item) for key, item in value.items()}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {key: item for key, item in metadata.items() if key not in _VARYING}
    return kept


def _plain(value: Any, namespace: str) -> Any:
    """Without what differs from run to run: uids, times, the namespace's name, continue tokens."""
    if isinstance(value, dict):
        return {
            _plain(key, namespace): "TOKEN" if key.endswith("continue") and item else _plain(item, namespace)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_plain(item, namespace) for item in value]
    if value is _NONE:
        return None
    if not isinstance(value, str):
        return value
    for pattern, name in _NAMED:
        value = pattern.sub(name, value)
    return value.replace(namespace, "NS")


def text(value: Any) -> str:
    """As a failed comparison shows it."""
    return json.dumps(value, indent=1, sort_keys=True)
