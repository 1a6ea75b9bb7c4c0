"""A release fetched by its own Pod on a node that runs it: the programs copy, and the operator reads what they left."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest
from tests.journeys.conftest import Sandbox

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import AlreadyExists
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.oci import credentials
from kubekit.oci.access import Access
from kubekit.oci.images import THIN_LABEL, Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.config_v1 import Release
from runup.applying.control.release_source import PODS, FromPod
from runup.applying.decide import retrieval_pod
from runup.release.control.image_build import build_image, layer_of, release_metadata
from runup.release.decide.payload import Payload

NAMESPACE = "openshift-cluster-version-operator"
PRIORITIES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses", namespaced=False
)
TYPE = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
MANIFEST = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME, annotations: {a: b}}\n"
REFERENCES = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.9.0"}}
# What a release's image has of its distribution; the sandbox's have nothing but Python.
PROGRAMS = {
    "sh": "import glob, shutil, sys\n[shutil.rmtree(path) for path in glob.glob('*')]",
    "mkdir": "import os, sys\nos.mkdir(sys.argv[1])",
    "cp": "import shutil, sys\nshutil.copytree(sys.argv[2], sys.argv[3])",
    "mv": "import os, sys\nos.rename(sys.argv[1], sys.argv[2])",
}


def files() -> dict[str, bytes]:
    """A release with these programs."""
    found = {f"usr/bin/{name}": f"#!/usr/bin/env python3\n{text}\n".encode() for name, text in PROGRAMS.items()}
    found["manifests/0000_00_a_0.yaml"] = MANIFEST.replace(b"NAME", b"own")
    found["release-manifests/0000_50_b_0.yaml"] = MANIFEST.replace(b"NAME", b"other")
    found["release-manifests/release-metadata"] = release_metadata("5.9.0", (), (), {})
    found["release-manifests/image-references"] = json.dumps(REFERENCES).encode()
    return found


async def fetched(sandbox: Sandbox, image: str) -> tuple[Payload, list[str]]:
    """The release, and what is left of Pods."""
    async with Client(config.load(str(sandbox.kubeconfig))) as client:
        priority = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": retrieval_pod.PRIORITY_CLASS},
            "value": 1000,
        }
        with suppress(AlreadyExists):
            await client.send(calls.create(PRIORITIES, TYPE | priority))
        node = (await client.send(calls.list_raw(NODES))).items[0]["metadata"]["name"]
        folder = sandbox.data / "nodes" / node / retrieval_pod.PAYLOADS.lstrip("/")
        loader = FromPod(client, SystemClock(), namespace=NAMESPACE, node=node, folder=folder)
        payload = await loader.load(Release(image=image, version="5.9.0"))
        left = await client.send(calls.list_raw(PODS, NAMESPACE, label_selector=retrieval_pod.SELECTOR))
        return payload, [pod["metadata"]["name"] for pod in left.items]


def test_the_nodes_programs_copy_a_release(clean: Sandbox, tmp_path: Path) -> None:
    """From the registry through the node's folder to the operator; no Pod stays that did its work."""
    ready = clean.data / "ready.json"
    runner = json.loads(ready.read_text())["runner"] if ready.is_file() else "process"
    if runner == "process":
        pytest.skip("needs runc or bubblewrap: a plain process has no folder of the node at its own path")
    programs = frozenset(f"usr/bin/{name}" for name in PROGRAMS)
    thin = Execution(labels={THIN_LABEL: "thin"})
    built = build_image(tmp_path / "layout", [layer_of(files(), programs)], tag="release", config=thin)
    # The node runs what comes from its own registry.
    host = clean.cluster_version().status.desired.image.partition("/")[0]
    access = Access(credentials=credentials.load_credentials(str(clean.data / "registry-auth.json")))
    RegistryClient(access).push(Layout.open(tmp_path / "layout"), built.digest, parse(f"{host}/runup/release:5.9.0"))
    payload, left = asyncio.run(fetched(clean, f"{host}/runup/release@{built.digest}"))
    assert [manifest.identity.name for manifest in payload.manifests] == ["own", "other"]
    assert payload.version == "5.9.0"
    assert left == []
