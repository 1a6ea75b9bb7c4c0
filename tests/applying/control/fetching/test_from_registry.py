"""Releases straight from a registry: whole ones, broken ones, and registries that are away, slow or lie."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.kubekit.oci.registries import REAL, Answer, Asked, odd_registry, writing
from tests.operator.operator_world import cluster

from kubekit.kube.client import Client
from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded
from runup.applying.control.release_source import FromRegistry
from runup.release.control.image_build import build_image, build_release, layer_of
from runup.release.control.release_images import ReleaseImages

OWN = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: own-{{.ClusterProfile}}, annotations: {a: b}}\n"
OTHER = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: other, annotations: {a: b}}\n"
FILES = {"manifests/0000_00_a_0.yaml": OWN, "release-manifests/0000_50_b_0.yaml": OTHER}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A cluster's, which has no pull secret and no mirrors."""
    async with cluster(tmp_path / "cluster") as (world, _):
        yield world.client


def source(client: Client, within_s: float = 90.0) -> FromRegistry:
    """Returns the source under test."""
    return FromRegistry(ReleaseImages(client), profile="p", within_s=within_s)


def built(folder: Path, files: dict[str, bytes], version: str = "5.2.0") -> tuple[Layout, str]:
    """A release upon a base image that has files of the same folders; its layout and digest."""
    base = build_image(
        folder, [layer_of({"manifests/0000_00_a_1.yaml": OWN, "bin/x": b"x"})], tag="b", config=Execution()
    )
    image = open_image(Layout.open(folder), "b")
    done = build_release(folder, version=version, files=files, base=image if files else None)
    assert base.digest != done.digest
    return Layout.open(folder), done.digest


@pytest.mark.parametrize("registry", REAL.values(), ids=REAL)
async def test_a_release_is_read_without_being_kept(
    client: Client, tmp_path: Path, registry: Callable[[Path], AbstractContextManager[str]]
) -> None:
    """All of its layers count, the one below too."""
    layout, digest = built(tmp_path / "layout", FILES)
    with registry(tmp_path) as host:
        RegistryClient(writing(host)).push(layout, digest, parse(f"{host}/ocp/release:5.2.0"))
        loader = source(client)
        release = Release(image=f"{host}/ocp/release@{digest}")
        found = await loader.load(release)
    names = [manifest.identity.name for manifest in found.manifests]
    assert (found.version, names) == ("5.2.0", ["own-p", "own-p", "other"])


BROKEN = {"release-manifests/0000_50_b_1.yaml": b"kind: [", "manifests/0000_00_a_0.yaml": OWN}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(
            {"release-manifests/0000_50_b_0.yaml": OTHER},
            "is not a release image: manifests/ is missing: the operator's own manifests are there",
            id="no manifests of the operator",
        ),
        pytest.param(BROKEN, "release-manifests/0000_50_b_1.yaml", id="YAML that is none"),
        pytest.param(
            FILES | {"release-manifests/0000_50_b_0.yaml": OTHER + b"---\n" + OTHER},
            "release-manifests/0000_50_b_0.yaml, document 2: ConfigMap other is there twice",
            id="an object twice",
        ),
        pytest.param(
            FILES
            | {
                "release-manifests/image-references": b'{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", '
                b'"metadata": {"name": "5.1.0"}}'
            },
            "version from image-references (5.1.0) differs from release-metadata (5.2.0)",
            id="image-references of another version",
        ),
        pytest.param(FILES | {"release-manifests/release-metadata": b"kind: x"}, "release-metadata: ", id="metadata"),
    ],
)
async def test_what_is_no_release(client: Client, tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    """One error of loading that names the file."""
    done = build_release(tmp_path / "layout", version="5.2.0", files=files)
    with odd_registry(Layout.open(tmp_path / "layout")) as registry, pytest.raises(NotLoaded) as raised:
        await source(client).load(Release(image=f"{registry.host}/a/b@{done.digest}"))
    assert raised.value.reason == "LoadPayload"
    assert said in raised.value.message


def _other_bytes(layout: Layout, digest: str) -> Callable[[Asked], Answer | None]:
    """A registry whose layers are of another content than their digest."""

    def rule(asked: Asked) -> Answer | None:
        usual = layout.blob(asked.path.rpartition("/")[2]) if "/blobs/" in asked.path else None
        if usual is None or usual.stat().st_size < 500:
            return None
        data = bytearray(usual.read_bytes())
        data[len(data) // 2] ^= 0xFF
        return Answer(200, bytes(data))

    return rule


def _other_manifest(layout: Layout, digest: str) -> Callable[[Asked], Answer | None]:
    return lambda asked: Answer(200, b"{}") if "/manifests/" in asked.path else None


def _away(layout: Layout, digest: str) -> Callable[[Asked], Answer | None]:
    return lambda _: Answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param(_other_bytes, "has other content than its digest says", id="layers that are others"),
        pytest.param(_other_manifest, "the registry sent another manifest", id="a manifest that is another"),
        pytest.param(_away, "manifest unknown; correct the image, or its mirror", id="an image that is not there"),
    ],
)
async def test_a_registry_that_lies(
    client: Client, tmp_path: Path, rule: Callable[..., Callable[[Asked], Answer | None]], said: str
) -> None:
    """One error of retrieving that names the image; what was asked for can be asked for again."""
    layout, digest = built(tmp_path / "layout", FILES)
    with odd_registry(layout, rule(layout, digest)) as registry:
        loader = source(client)
        image = f"{registry.host}/a/b@{digest}"
        with pytest.raises(NotLoaded) as raised:
            await loader.load(Release(image=image))
        assert raised.value.reason == "RetrievePayload"
        assert raised.value.message.startswith("Unable to download and prepare the update: ")
        assert registry.host in raised.value.message
        assert said in raised.value.message
        registry.rule = lambda _: None
        assert (await loader.load(Release(image=image))).version == "5.2.0"


async def test_a_registry_that_does_not_answer(client: Client, tmp_path: Path) -> None:
    """The time is up, and nobody waits for the thread that still asks."""
    layout, digest = built(tmp_path / "layout", FILES)
    over = threading.Event()

    def hang(_: Asked) -> Answer | None:
        over.wait(90)
        return None

    with odd_registry(layout, hang) as registry:
        try:
            with pytest.raises(NotLoaded, match=r"it was not read within 0\.2 s"):
                await source(client, within_s=0.2).load(Release(image=f"{registry.host}/a/b@{digest}"))
        finally:
            over.set()
