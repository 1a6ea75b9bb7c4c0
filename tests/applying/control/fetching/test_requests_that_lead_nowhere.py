"""A running operator gets requests for invalid or unavailable releases: it names the file, and keeps running."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.kubekit.oci.registries import Answer, Asked, Odd, odd_registry
from tests.operator.operator_world import NAMESPACES, OWN, Cluster, cluster, running

from kubekit.api.conditions import find
from kubekit.kube import calls
from kubekit.oci.layout import Layout
from kubekit.oci.signatures import SigningKey, add_signature
from runup.api.config_v1 import ClusterVersion
from runup.release.control.image_build import build_release

MANIFEST = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME, namespace: default, annotations: {a: b}}\n"
METADATA = "release-manifests/release-metadata"
REFERENCES = "release-manifests/image-references"
STREAM = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.9"}}


def files(**changes: str) -> dict[str, bytes]:
    """A release of 401 manifests, and what is changed about it; in names two underscores are a slash."""
    found = {
        f"release-manifests/0000_50_b_{number:03}.yaml": MANIFEST.replace("NAME", f"m{number}") for number in range(400)
    }
    found["manifests/0000_00_a_0.yaml"] = MANIFEST.replace("NAME", "own")
    return {name: text.encode() for name, text in {**found, **changes}.items()}


@dataclass
class Scene:
    """A cluster whose operator applies, and a registry that answers as the test says."""

    world: Cluster
    registry: Odd
    layout: Path
    payload: Path

    async def ask(self, release: dict[str, bytes], version: str = "5.0.3") -> str:
        """Ask for a signed release of these files, by image; the pull spec."""
        digest = build_release(self.layout, version=version, files=release).digest
        key = SigningKey((self.payload / "signing.key").read_bytes())
        add_signature(self.payload / "signatures", digest, key.sign(digest, "registry.example/release"))
        image = f"{self.registry.host}/ocp/release@{digest}"
        await self.world.ask({"image": image, "version": version})
        return image

    async def refused(self, reason: str) -> str:
        """Returns the message of ReleaseAccepted once it is False for the reason; nothing else may have changed."""
        version = await self.world.condition("ReleaseAccepted", "False", reason)
        assert version.status.desired.image == OWN
        assert [entry.image for entry in version.status.history] == [OWN]
        found = find(version.status.conditions, "ReleaseAccepted")
        assert found is not None
        return found.message


@asynccontextmanager
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """The operator at work, its own release applied."""
    layout = tmp_path / "layout"
    Layout.create(layout)
    async with cluster(tmp_path, times=5) as (world, manager):
        await world.client.send(
            calls.apply(NAMESPACES, {"metadata": {"name": "openshift-config-managed"}}, field_manager="test")
        )
        with odd_registry(Layout.open(layout)) as registry:
            async with running(manager(applies=True, release_source="registry")):
                await world.condition("Progressing", "False")
                yield Scene(world, registry, layout, tmp_path / "payload")


def at_rest(version: ClusterVersion) -> bool:
    """Whether nothing is asked for, and the release that is there is the accepted one."""
    accepted = find(version.status.conditions, "ReleaseAccepted")
    failing = find(version.status.conditions, "Failing")
    calm = failing is None or failing.status == "False"
    return accepted is not None and (accepted.status, accepted.reason) == ("True", "PayloadLoaded") and calm


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"release-manifests/0000_50_b_399.yaml": "kind: ["},
            "release-manifests/0000_50_b_399.yaml",
            id="bad YAML in the 400th manifest",
        ),
        pytest.param(
            {"release-manifests/0000_50_b_007.yaml": f"{MANIFEST}---\n{MANIFEST}"},
            "release-manifests/0000_50_b_007.yaml, document 2: ConfigMap default/NAME is there twice",
            id="an object twice",
        ),
        pytest.param(
            {REFERENCES: json.dumps(STREAM)},
            "version from image-references (5.0.9) differs from release-metadata (5.0.3)",
            id="another version in image-references",
        ),
    ],
)
async def test_a_release_that_is_none_disturbs_nothing(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    """ReleaseAccepted names the file; taken back, all is as before."""
    async with scene(tmp_path) as found:
        image = await found.ask(files(**changes))
        message = await found.refused("LoadPayload")
        assert message.startswith(f'Loading payload failed version="5.0.3" image="{image}" failure=')
        assert said in message
        await found.world.ask(None)
        await found.world.until(at_rest)


async def test_a_release_without_an_operator_is_none(tmp_path: Path) -> None:
    """A cluster that went there would have nobody to take it further."""
    async with scene(tmp_path) as found:
        release = {name: data for name, data in files().items() if not name.startswith("manifests/")}
        await found.ask(release)
        assert "manifests/ is missing: the operator's own manifests are there" in await found.refused("LoadPayload")


def _lies(asked: Asked) -> Answer | None:
    return Answer(200, b"{}") if "/manifests/" in asked.path else None


def _away(_: Asked) -> Answer | None:
    return Answer(503, b"busy")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param(_lies, "the registry sent another manifest, of digest sha256:44136fa3", id="a wrong digest"),
        # The registry is asked again, by the machine's clock.
        pytest.param(_away, "503", id="a registry that is away", marks=pytest.mark.slow),
    ],
)
async def test_a_registry_that_gives_nothing_disturbs_nothing(
    tmp_path: Path, rule: Callable[[Asked], Answer | None], said: str
) -> None:
    """ReleaseAccepted names the image and the registry's answer."""
    async with scene(tmp_path) as found:
        found.registry.rule = rule
        image = await found.ask(files())
        message = await found.refused("RetrievePayload")
        why = "Unable to download and prepare the update: "
        assert message.startswith(f'Retrieving payload failed version="5.0.3" image="{image}" failure={why}')
        assert said in message
        await found.world.ask(None)
        await found.world.until(at_rest)


async def test_a_whole_release_of_the_same_size_is_taken(tmp_path: Path) -> None:
    """So the others were refused for what they are."""
    async with scene(tmp_path) as found:
        image = await found.ask(files())
        await found.world.until(lambda version: version.status.desired.image == image)
