"""Signed releases of some hundred manifests in the cluster's registry, with components that run; and what serves them.

`ReleaseWorld` has the key, the graph of updates and the signatures; one HTTP server on the cluster's bridge serves the
last two. A release is the operator's image with `manifests/` and `release-manifests/` on top, as a real one is.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.controlplane import build as controlplane
from tests.realcluster import images
from tests.realcluster.kube import metadata

from kubekit.lang import yaml as kyaml
from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from kubekit.oci.signatures import SigningKey, generate_key
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights_file_of_release
from runup.release.control.image_build import BuiltImage, build_image, build_release, layer_of
from runup.sandbox import crds
from runup.sandbox.scenario.scenario_releases import operand_manifests, operator_manifests

JSON = dict[str, Any]
REPOSITORY = "ocp/release"
CHANNEL = "stable-5"
COMPONENTS = tuple((level, f"{name}-{level}") for level in (10, 20, 30, 50, 70) for name in ("alpha", "beta"))
"""Run level and name: two components a level."""
USER = 65532
NAMESPACES = ("openshift-config", "openshift-config-managed", "openshift-machine-config-operator")
"""Those of OpenShift's that our own manifests are in; a real release has them from its other operators."""
KUBERNETES = f"kubernetes={controlplane.version().removeprefix('v')}"
SETTINGS = 20
"""ConfigMaps of a component."""
FOLDERS = ("manifests", "release-manifests")
VERIFIER = "manifests/0000_90_cluster-version-operator_03_release-verification.configmap.yaml"
INCLUDED = {
    "include.release.openshift.io/self-managed-high-availability": "true",
    "include.release.openshift.io/single-node-developer": "true",
}
VERSION = "tests.runup.dev/version"


@dataclass(frozen=True, slots=True)
class Release:
    """A release in the registry; `image` is its pull spec by digest."""

    version: str
    image: str
    manifests: int


@dataclass
class ReleaseWorld:
    """`with ReleaseWorld(...) as world`: builds releases, and serves their graph and signatures."""

    folder: Path
    registry: images.Registry
    address: str
    operator: BuiltImage
    component: str
    """The pull spec of the components' image."""
    key: SigningKey = field(default_factory=generate_key)
    releases: dict[str, Release] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    signatures: dict[str, bytes] = field(default_factory=dict)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"world": self})
        self._server = ThreadingHTTPServer((self.address, 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Of what is served: `/graph`, `/signatures`."""
        return f"http://{self.address}:{self._server.server_address[1]}"

    def release(self, version: str, *, signed: bool = True, previous: tuple[str, ...] = (), **changes: Any) -> Release:
        """Builds and pushes a release to which one may update from `previous`; once a version.

        `changes`: more `files`, by path in the image, which replace those of the same name.
        """
        files = self._files(version) | dict(changes.get("files", {}))
        base = open_image(Layout.open(self.operator.layout), self.operator.tag)
        built = build_release(
            self.folder,
            version=version,
            files=files,
            image_references={"component": self.component},
            previous=previous,
            metadata={
                "url": f"https://docs.runup.example/releases/{version}",
                "io.openshift.build.versions": KUBERNETES,
            },
            base=base,
            labels=changes.get("labels"),
        )
        found = Release(version, self.registry.push(built, REPOSITORY), sum(map(_objects_in, files.items())))
        self.releases[version] = found
        self.edges += [(source, version) for source in previous]
        if signed:
            self.signatures[built.digest.replace(":", "=")] = self.key.sign(built.digest, found.image)
        return found

    def promise(self, version: str, previous: tuple[str, ...]) -> Release:
        """A release that is offered and signed, but in no registry."""
        digest = f"sha256:{hashlib.sha256(version.encode()).hexdigest()}"
        found = Release(version, f"{self.registry.host}/{REPOSITORY}@{digest}", 0)
        self.releases[version] = found
        self.edges += [(source, version) for source in previous]
        self.signatures[digest.replace(":", "=")] = self.key.sign(digest, found.image)
        return found

    def files(self, version: str) -> dict[str, bytes]:
        """The payload of a release, as its image has it."""
        return read_folders(open_image(Layout.open(self.folder), version), FOLDERS)

    def graph(self) -> JSON:
        """As an update service serves it."""
        order = list(self.releases)
        nodes = [
            {
                "version": each.version,
                "payload": each.image,
                "metadata": {"io.openshift.upgrades.graph.release.channels": CHANNEL},
            }
            for each in self.releases.values()
        ]
        edges = [[order.index(source), order.index(target)] for source, target in self.edges]
        return {"version": 1, "nodes": nodes, "edges": edges, "conditionalEdges": []}

    def _files(self, version: str) -> dict[str, bytes]:
        ours = (*operator_manifests(), *operand_manifests(), *crds.definition_files(generally_available=True))
        files = {f"manifests/{file.name}": as_admitted(file.read_bytes()) for file in ours}
        files[VERIFIER] = self._verifier()
        for name in NAMESPACES:
            path = f"release-manifests/0000_00_{name}_00_namespace.yaml"
            files[path] = kyaml.dump(_object("v1", "Namespace", name=name, namespace="", version=version)).encode()
        for level, name in COMPONENTS:
            for number, obj in enumerate(component(name, version, self.component)):
                path = f"release-manifests/0000_{level}_{name}_{number:02}_{obj['kind'].lower()}.yaml"
                files[path] = kyaml.dump(obj).encode()
        return rights_file_of_release.with_rights_file(files, own_rights())

    def _verifier(self) -> bytes:
        annotations = INCLUDED | {"release.openshift.io/verification-config-map": ""}
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata("release-verification", "openshift-config-managed", annotations=annotations),
            "data": {
                "verifier-public-key-test": self.key.public.decode(),
                "store-test": f"{self.url}/signatures",
            },
        }
        return kyaml.dump(obj).encode()


class _Handler(BaseHTTPRequestHandler):
    world: ClassVar[ReleaseWorld]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        data: bytes | None = None
        if path == "/graph":
            data = json.dumps(self.world.graph()).encode()
        elif path.startswith("/signatures/") and path.endswith("/signature-1"):
            data = self.world.signatures.get(path.split("/")[2])
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_: Any) -> None:
        """Nothing: the registry and the operator log what matters."""


def component(name: str, version: str, image: str) -> Iterator[JSON]:
    """A component's manifests: an operator that runs, its rights, and what a component has besides."""
    rules = [
        {"apiGroups": ["config.openshift.io"], "resources": ["clusteroperators"], "verbs": ["get"]},
        {"apiGroups": ["config.openshift.io"], "resources": ["clusteroperators/status"], "verbs": ["patch"]},
    ]
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    account = [{"kind": "ServiceAccount", "name": name, "namespace": name}]
    rbac = "rbac.authorization.k8s.io/v1"
    yield _object("v1", "Namespace", name=name, namespace="", version=version)
    yield _object("v1", "ServiceAccount", name=name, namespace=name, version=version)
    yield _object(rbac, "ClusterRole", name=name, namespace="", version=version, rules=rules)
    yield _object(rbac, "ClusterRoleBinding", name=name, namespace="", version=version, roleRef=bound, subjects=account)
    for number in range(SETTINGS):
        data = {"of": version, "text": f"{name} {number}" * 50}
        yield _object("v1", "ConfigMap", name=f"settings-{number:02}", namespace=name, version=version, data=data)
    yield _object(
        "v1",
        "Service",
        name=name,
        namespace=name,
        version=version,
        spec={"selector": {"app": name}, "ports": [{"port": 80}]},
    )
    yield _deployment(name, version, image)
    status = {"versions": [{"name": "operator", "version": version}]}
    yield _object(
        "config.openshift.io/v1", "ClusterOperator", name=name, namespace="", version=version, spec={}, status=status
    )


def component_image(layout: Path) -> BuiltImage:
    """Python, and what a component's operator runs."""
    base = images.python_base()
    program = Path(__file__).with_name("component.py").read_bytes()
    return build_image(
        layout,
        [layer_of({"app/component.py": program})],
        tag="component",
        config=Execution(entrypoint=("/usr/bin/python3", "-u", "/app/component.py")),
        base=open_image(Layout.open(base.layout), base.tag),
    )


def _deployment(name: str, version: str, image: str) -> JSON:
    container = {
        "name": "operator",
        "image": image,
        "args": [f"{name}={version}"],
        "env": [{"name": "RELEASE_VERSION", "value": version}],
        "resources": {"requests": {"cpu": "5m", "memory": "20Mi"}},
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
    }
    pod = {
        "serviceAccountName": name,
        "containers": [container],
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER},
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _object("apps/v1", "Deployment", name=name, namespace=name, version=version, spec=spec)


def _object(api_version: str, kind: str, name: str, namespace: str, version: str, **rest: Any) -> JSON:
    about = metadata(name, namespace, annotations=INCLUDED | {VERSION: version})
    return {"apiVersion": api_version, "kind": kind, "metadata": about, **rest}


def _objects_in(file: tuple[str, bytes]) -> int:
    name, data = file
    if not name.startswith(("manifests/", "release-manifests/")) or not name.endswith(".yaml"):
        return 0
    return sum(1 for obj in kyaml.load_all(data) if obj)


def as_admitted(data: bytes) -> bytes:
    """A manifest, with what OpenShift's admission adds to pods that shall not be root: a user's number."""
    objects = [obj for obj in kyaml.load_all(data) if obj]
    for obj in objects:
        if obj["kind"] == "Deployment":
            context = obj["spec"]["template"]["spec"]["securityContext"]
            if context.get("runAsNonRoot"):
                context.setdefault("runAsUser", USER)
    return kyaml.dump_all(objects).encode()


def objects_of(files: Mapping[str, bytes]) -> Iterator[JSON]:
    """Every object of YAML files, in the order of their names."""
    for name in sorted(files):
        if name.endswith(".yaml"):
            yield from (obj for obj in kyaml.load_all(files[name]) if obj)
