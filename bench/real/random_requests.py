"""`python -m bench random_requests [--seconds N] [--seed N]`: odd paths, selectors and bodies for both API servers.

In: how long, and which requests. Out: JSON on stdout: the seed, requests, their codes, and each kind of difference in
code, reason and names of objects, with how often it was met and the shortest request that shows it. Differences that
docs/reference/sandbox-differences.md explains are counted apart. Exit code 1 if there is any other. Needs the programs
of `make e2e`.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import click
from tests.contract.api import Api
from tests.contract.conftest import define_widgets
from tests.contract.raw import Answer, Raw, Request
from tests.contract.rows import GROUP
from tests.controlplane import build
from tests.controlplane.plane import ControlPlane
from tests.servers import api_server

from bench.fuzz.changes import changed_bytes, changed_document, drawn, encoded

# Requests in the same two namespaces; then others are made.
_BATCH = 60
_RBAC = "rbac.authorization.k8s.io"
_POD = {"containers": [{"name": "c", "image": "i"}]}
# By resource: the path to its version, apiVersion and kind, and what its objects have.
_KINDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "configmaps": ("/api/v1", "v1", "ConfigMap", {"data": {"a": "b"}}),
    "secrets": ("/api/v1", "v1", "Secret", {"data": {"a": "Yg=="}}),
    "pods": ("/api/v1", "v1", "Pod", {"spec": _POD}),
    "services": ("/api/v1", "v1", "Service", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
    "serviceaccounts": ("/api/v1", "v1", "ServiceAccount", {}),
    "deployments": (
        "/apis/apps/v1", "apps/v1", "Deployment",
        {
            "spec": {
                "selector": {"matchLabels": {"x": "y"}},
                "template": {"metadata": {"labels": {"x": "y"}}, "spec": _POD},
            }
        },
    ),
    "roles": (
        f"/apis/{_RBAC}/v1", f"{_RBAC}/v1", "Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "poddisruptionbudgets": (
        "/apis/policy/v1", "policy/v1", "PodDisruptionBudget",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"x": "y"}}}},
    ),
    "widgets": (f"/apis/{GROUP}/v1", f"{GROUP}/v1", "Widget", {"spec": {"replicas": 1}}),
}  # fmt: skip
_CLUSTER = (
    *("/api/v1/namespaces", "/api/v1/nodes", f"/apis/{_RBAC}/v1/clusterroles", f"/apis/{GROUP}/v1", "/apis", "/api"),
    *("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/healthz", "/version", "/readyz/ping", "/metrics"),
    *("/openapi/v3", "/apis/apps", "/apis/apps/v1", "/api/v1", "/api/v2/pods", "/apis/none.example/v1/things", "/"),
)
_NAMES = ("allowed", "allowed", "allowed", "other", "none", "", "A_b", "a.b", "x" * 260, "..", "%2e", "a%2Fb", "a;b=c")
_SUBRESOURCES = ("", "", "", "", "status", "scale", "log", "finalize", "token", "eviction", "none", "status/x")
_METHODS = (
    *("GET",) * 20,
    *("POST",) * 8,
    *("PUT",) * 5,
    *("PATCH",) * 6,
    *("DELETE", "DELETE", "DELETE", "HEAD", "HEAD", "OPTIONS", "get"),
)
_FIELDS = ("metadata.name", "metadata.namespace", "status.phase", "spec.nodeName", "type", "a", "", " metadata.name")
_VALUES = ("allowed", "other", "", "Running", "a\\,b", "a\\", "\\\\", "a=b", "\\=", "a\\b", "é", "x" * 70, "A b", "-a")
_LABELS = ("x", "a.b/c", "", "A b", "/", "a/b/c", "x" * 64, "in", "notin", "é")
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "watch": ("", "0", "1", "false", "FALSE", "true", "x"),
    "limit": ("1", "0", "-1", "x", "", "1.5", "+1", "9" * 30, "1_0"),
    "timeoutSeconds": ("1", "x", "", "0", "-1", "9" * 30),
    "resourceVersion": ("0", "x", "-1", "9" * 40, "", "+1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "continue": ("x", "e30", "", "a b"),
    "sendInitialEvents": ("true", "false", ""),
    "allowWatchBookmarks": ("true", "x"),
    "dryRun": ("All", "", "x", "all"),
    "fieldManager": ("a", "x" * 129, "a\nb", ""),
    "fieldValidation": ("Strict", "Ignore", "Warn", "x", ""),
    "force": ("true", "false", "", "1"),
    "gracePeriodSeconds": ("0", "x", "", "-1", "1.5"),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "x", ""),
    "orphanDependents": ("true", "", "x"),
    "timeout": ("1s", "x", "", "1", "9" * 20 + "s"),
    "pretty": ("true",),
    "unknown": ("x",),
}
_TYPES = (
    *("application/json",) * 8,
    *("application/yaml", "text/plain", "", "application/json;charset=utf-8", "application/xml", "APPLICATION/JSON"),
)
_PATCHES = ("merge-patch+json", "merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
_ACCEPTS = ("application/json",) * 6 + ("*/*", "text/html", "application/yaml", "a b", "application/json;as=Table", "")
_WORDS = (b"null", b'"a":', b"{}", b"[", b'{"a":', b"\xff", b"\\ud800", b"\0", b"1e999", b"---\n", b"&a ", b"*a")


@dataclass(frozen=True)
class Explained:
    """A difference that is known: what it is, why, and whether the answers of both servers to a request show it."""

    what: str
    why: str
    shows: Callable[[Request, Answer, Answer], bool]


# The table of docs/reference/sandbox-differences.md is written from these.
EXPLAINED = (
    Explained(
        "a method in small letters is refused with 400",
        "the HTTP library refuses it; Go's reads it as another method",
        lambda request, _, second: request.method == "get" and second.code == 400,
    ),
    Explained(
        "`/metrics` is not served",
        "the sandbox has no metrics",
        lambda request, *_: unquote_to_bytes(request.uri).startswith(b"/metrics"),
    ),
    Explained(
        "a Service without an address is created where the range of addresses is full",
        "no addresses are allocated",
        lambda _, first, second: "range is full" in first.message and second.code < 500,
    ),
    Explained(
        "JSON that is not UTF-8, or has half of a surrogate pair, is refused with 400",
        "kube-apiserver stores U+FFFD in its place",
        lambda *answers: bool(re.search("surrogate|valid UTF-8", answers[2].message)),
    ),
    Explained(
        "a YAML body with more than one document is refused with 400",
        "kube-apiserver reads the first document",
        lambda *answers: "<document start>" in answers[2].message,
    ),
    Explained(
        "a custom resource of another kind, with further faults, is refused for its kind",
        "kube-apiserver validates the kind after the name",
        lambda request, first, second: (
            GROUP.encode() in request.uri and request.method != "GET" and {first.code, second.code} == {400, 422}
        ),
    ),
    Explained(
        "HEAD of a custom group's discovery is refused with 405",
        "no client sends it",
        lambda request, *_: request.method == "HEAD" and request.uri.count(b"/") < 4,
    ),
    Explained(
        "a control character in JSON is named in the error",
        "kube-apiserver's YAML form of the error fails",
        lambda _, first, second: "control characters" in first.message + second.message,
    ),
    Explained(
        "kube-apiserver closes the connection at a JSON patch that removes the whole object",
        "the sandbox answers 400",
        lambda _, first, __: not first.code,
    ),
)


@dataclass
class Kind:
    """Differences of one kind, and the shortest request that shows it."""

    request: Request
    first: Answer
    second: Answer
    count: int = 0


@dataclass
class Survey:
    """What came of the requests so far."""

    requests: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Kind] = field(default_factory=dict)

    def take(self, request: Request, first: Answer, second: Answer) -> None:
        """Counts a request and the answers of both servers."""
        self.requests += 1
        self.codes[first.code] += 1
        if b"/namespaces/r" not in request.uri:
            # Of the whole cluster each server has objects of its own.
            first, second = replace(first, names=()), replace(second, names=())
        if first == second:
            return
        for difference in EXPLAINED:
            if difference.shows(request, first, second):
                self.explained[difference.what] += 1
                return
        place = re.sub(rb"(?<=namespaces/)r[0-9]+-\w+|[?].*|allowed|other", b"", request.uri)[:60].decode("latin-1")
        name = f"{request.method} {place} {first.code} {first.reason} / {second.code} {second.reason}"
        kind = self.kinds.setdefault(name, Kind(request, first, second))
        kind.count += 1
        if len(str(request)) < len(str(kind.request)):
            kind.request, kind.first, kind.second = request, first, second


class Place:
    """Two namespaces with objects, the same on both servers; `admin` may do anything in them, `reader` little."""

    def __init__(self, servers: tuple[Api, Api], number: int) -> None:
        self.namespaces = (f"r{number}-one", f"r{number}-two")
        for api in servers:
            self._fill(api)

    def _fill(self, api: Api) -> None:
        for namespace in self.namespaces:
            api.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).ok()
            for plural, (path, version, kind, rest) in _KINDS.items():
                for name in ("allowed", "other"):
                    metadata = {"name": name, "labels": {"x": name}}
                    body = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
                    api.post(f"{path}/namespaces/{namespace}/{plural}", body).ok()
        one = f"/apis/{_RBAC}/v1/namespaces/{self.namespaces[0]}"
        rule = {"apiGroups": ["*"], "resources": ["*"], "resourceNames": ["allowed"], "verbs": ["get", "list", "watch"]}
        api.post(f"{one}/roles", {"metadata": {"name": "reader"}, "rules": [rule]}).ok()
        for kind, role, user in (("ClusterRole", "cluster-admin", "nsadmin"), ("Role", "reader", "reader")):
            binding = {
                "metadata": {"name": user},
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
                "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
            }
            api.post(f"{one}/rolebindings", binding).ok()


def make(drawn: random.Random, namespaces: tuple[str, str]) -> Request:
    """Returns a request for one of the namespaces; one that writes has no rights outside of the first."""
    method = drawn.choice(_METHODS)
    plural = drawn.choice(tuple(_KINDS))
    user, query = drawn.choice(("nsadmin", "nsadmin", "reader")), _query(drawn)
    if method in {"POST", "PUT", "PATCH"} and drawn.random() < 0.7:
        # The body is what is odd.
        name = "" if method == "POST" else "/allowed"
        path, user = f"{_KINDS[plural][0]}/namespaces/{namespaces[0]}/{plural}{name}", "nsadmin"
        query = query if drawn.random() < 0.3 else ""
    else:
        path = _path(drawn, plural, namespaces)
        while drawn.random() < 0.35:
            path = _odd_path(drawn, path)
    if method in {"GET", "HEAD", "OPTIONS"} and drawn.random() < 0.4:
        user = ""
    headers = [("Impersonate-User", user.encode())] if user else []
    body = b""
    if method in {"POST", "PUT", "PATCH"} or drawn.random() < 0.03:
        type_, body = _body(drawn, method, plural)
        headers += [("Content-Type", type_.encode())] if type_ else []
    headers += [("Accept", drawn.choice(_ACCEPTS).encode())] if drawn.random() < 0.4 else []
    return Request(method, (path + query).encode(errors="replace"), headers, body)


def _path(drawn: random.Random, plural: str, namespaces: tuple[str, str]) -> str:
    if drawn.random() < 0.1:
        return drawn.choice(_CLUSTER)
    version = _KINDS[plural][0]
    watch = "/watch" if drawn.random() < 0.07 else ""
    namespace = drawn.choice((namespaces[0],) * 6 + (namespaces[1], "none", ""))
    place = f"/namespaces/{namespace}" if drawn.random() < 0.92 else ""
    resource = plural if drawn.random() < 0.93 else drawn.choice(("namespaces", "nodes", "clusterroles", "status", "x"))
    return f"{version}{watch}{place}/{resource}" + "".join(
        f"/{part}" for part in (drawn.choice(_NAMES), drawn.choice(_SUBRESOURCES)) if part and drawn.random() < 0.75
    )


def _odd_path(drawn: random.Random, path: str) -> str:
    parts = path.split("/")
    at = drawn.randrange(len(parts))
    match drawn.randrange(9):
        case 0:
            parts.insert(at, drawn.choice(("", "", "..", ".", "watch", "namespaces", "proxy", "%2F", "a")))
        case 1:
            parts[at] = "".join(f"%{byte:02x}" for byte in parts[at].encode())
        case 2:
            parts[at] = parts[at].upper()
        case 3:
            parts[at] += drawn.choice((";", ";a=b", "%20", "%00", "%ff", "%zz", "%", ".", "#a", "%0a"))
        case 4:
            del parts[at]
        case 5:
            parts.append("")
        case 6:
            return path.replace("/", "%2F", 1) if drawn.random() < 0.3 else "%2F".join(path.rsplit("/", 1))
        case 7:
            parts[at] = drawn.choice(("v1beta1", "api", "apis", "-", "status", "watch"))
        case _:
            parts.insert(at, parts[at])
    return "/" + "/".join(parts).removeprefix("/")


def _query(drawn: random.Random) -> str:
    pairs = []
    while drawn.random() < 0.5:
        match drawn.randrange(4):
            case 0:
                pairs.append(("fieldSelector", _field_selector(drawn)))
            case 1:
                pairs.append(("labelSelector", _label_selector(drawn)))
            case _:
                name = drawn.choice(tuple(_PARAMETERS))
                pairs.append((name, drawn.choice(_PARAMETERS[name])))
    if not pairs:
        return ""
    safe = drawn.choice(("", "=!,", "\\"))
    joined = drawn.choice(("&",) * 9 + (";", "&&")).join(f"{name}={_quoted(value, safe)}" for name, value in pairs)
    if drawn.random() < 0.03:
        joined += drawn.choice(("%zz", "&%zz=1", "=", "&=", "&watch"))
    return f"?{joined}"


def _quoted(text: str, safe: str) -> str:
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._" + safe
    return "".join(
        each if each in plain else "".join(f"%{byte:02X}" for byte in each.encode(errors="replace")) for each in text
    )


def _field_selector(drawn: random.Random) -> str:
    terms = [
        drawn.choice(_FIELDS[:5] if drawn.random() < 0.8 else _FIELDS)
        + drawn.choice(("=", "=", "==", "!=", "", "===", "=!", ">"))
        + drawn.choice(_VALUES)
        for _ in range(drawn.choice((1, 1, 2, 3)))
    ]
    return drawn.choice((",", ",", ",", ",,", "\\,", " , ")).join(terms)


def _label_selector(drawn: random.Random) -> str:
    terms = []
    for _ in range(drawn.choice((1, 1, 2, 3))):
        key, value = drawn.choice(_LABELS), drawn.choice(_VALUES)
        terms.append(
            drawn.choice(
                (
                    *(f"{key}={value}", f"{key}!={value}", f"{key} in ({value},a)", f"{key} notin (a)", key, f"!{key}"),
                    *(f"{key}>{value}", f"{key}<1", f"{key} in", f"{key} in (", f"{key}=={value}", f"({key})", value),
                )
            )
        )
    return drawn.choice((",", ",", ",,", " ")).join(terms)


def _body(drawn: random.Random, method: str, plural: str) -> tuple[str, bytes]:
    _, version, kind, rest = _KINDS[plural]
    if method == "PATCH":
        type_ = "application/" + drawn.choice(_PATCHES)
        change: Any = {"metadata": {"labels": {"y": "z"}}, **(rest if drawn.random() < 0.5 else {})}
        if "apply" in type_:
            change = {"apiVersion": version, "kind": kind, **change}
        elif "json-patch" in type_:
            path = drawn.choice(("/metadata/labels/x", "/data/a", "/spec", "/", "", "/none/a", "/metadata/name", "a"))
            change = [{"op": drawn.choice(("add", "remove", "replace", "test", "x")), "path": path, "value": "v"}]
    else:
        name = drawn.choice(("new", "new", "allowed", "", "A_b"))
        change, type_ = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}, drawn.choice(_TYPES)
    chance = drawn.random()
    if chance < 0.2:
        return type_, encoded(change)
    if chance < 0.75:
        return type_, encoded(changed_document(drawn, change))[: 1 << 20]
    return type_, changed_bytes(drawn, encoded(change), _WORDS, 1 << 16)


@click.command()
@click.option("--seconds", default=600.0, show_default=True)
@click.option("--seed", type=int, default=None, help="Which requests; another number each time where none is given.")
@click.option("--show", default=40, show_default=True, help="How many kinds of differences to print.")
def main(seconds: float, seed: int | None, show: int) -> None:
    """Send odd requests to both servers, and count what differs."""
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder) / "real", build.build()) as plane,
        api_server(Path(folder) / "sandbox") as kubeconfig,
    ):
        started = time.monotonic()
        survey = survey_requests((str(plane.kubeconfig), str(kubeconfig)), seed, seconds)
    ranked = sorted(survey.kinds.items(), key=lambda item: -item[1].count)
    result = {
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
        "requests": survey.requests,
        "codes": dict(sorted(survey.codes.items())),
        "explained": dict(survey.explained),
        "differences": sum(kind.count for kind in survey.kinds.values()),
        "kinds": [
            {
                "kind": name,
                "count": kind.count,
                "request": str(kind.request),
                "kube-apiserver": str(kind.first),
                "sandbox": str(kind.second),
            }
            for name, kind in ranked[:show]
        ],
    }
    print(json.dumps(result, indent=2))
    sys.exit(1 if survey.kinds else 0)


def survey_requests(kubeconfigs: tuple[str, str], seed: int, seconds: float) -> Survey:
    """Returns what came of the requests that fit into so many seconds."""
    servers = (Api("kube-apiserver", kubeconfigs[0]), Api("sandbox", kubeconfigs[1]))
    for api in servers:
        define_widgets(api)
    first, second = Raw(kubeconfigs[0]), Raw(kubeconfigs[1])
    survey, until = Survey(), time.monotonic() + seconds
    with ThreadPoolExecutor(1) as other:
        while time.monotonic() < until:
            index = survey.requests
            if index % _BATCH == 0:
                place = Place(servers, index // _BATCH)
            request = make(drawn("requests", seed, index), place.namespaces)
            answer = other.submit(second.send, request)
            survey.take(request, first.send(request), answer.result())
    first.close()
    second.close()
    return survey


if __name__ == "__main__":
    main()
