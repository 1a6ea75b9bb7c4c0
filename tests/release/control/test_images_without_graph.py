"""A preflight of an image that no update graph knows: its version comes out of the image, in the registry."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from tests.kubekit.oci.registries import odd_registry
from tests.operator.operator_world import Cluster, cluster, running

from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.signatures import SigningKey, add_signature
from runup.operator.manager import Manager
from runup.preflight.decide import preflight_deployment
from runup.release.control.image_build import build_image, build_release, layer_of
from runup.release.control.registry_access import MIRROR_KINDS, SECRETS
from runup.sandbox.processes.services import Registry

CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)


@dataclass
class Scene:
    """A cluster at work, and a registry whose images are signed by the cluster's key."""

    world: Cluster
    registry: Registry
    layout: Path
    payload: Path

    def signed(self, digest: str) -> str:
        """The pull spec of an image of the registry, once it is signed."""
        key = SigningKey((self.payload / "signing.key").read_bytes())
        add_signature(self.payload / "signatures", digest, key.sign(digest, "registry.example/release"))
        return f"{self.registry.host}/ocp/release@{digest}"

    def release(self, version: str) -> str:
        """A signed release in the registry."""
        files = {"release-manifests/a.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"}
        return self.signed(build_release(self.layout, version=version, files=files).digest)

    async def failed(self, reason: str) -> str:
        """What PreflightFailed says, once it is for that reason."""
        version = await self.world.condition("PreflightFailed", "True", reason)
        found = find(version.status.conditions, "PreflightFailed")
        assert found is not None
        return found.message


@asynccontextmanager
async def scene(tmp_path: Path, users: dict[str, str] | None = None) -> AsyncIterator[Scene]:
    """A managing operator at work next to a registry."""
    async with cluster(tmp_path) as (world, manager), Registry(tmp_path / "registry", users=users) as registry:
        operator: Manager = manager()
        async with running(operator):
            yield Scene(world, registry, tmp_path / "registry", tmp_path / "payload")


async def test_the_version_is_read_out_of_the_image(tmp_path: Path) -> None:
    """The preflight starts without anybody having said which version the image is."""
    async with scene(tmp_path) as at:
        image = at.release("5.3.7")
        await at.world.ask({"mode": "Preflight", "image": image})
        await at.world.started("5.3.7")
        deployment = await at.world.deployment()
        assert deployment is not None
        assert deployment.spec.template.spec.containers[0].image == image
        assert deployment.metadata.labels[preflight_deployment.TARGET_LABEL] == "5.3.7"


async def test_another_version_than_stated_is_refused(tmp_path: Path) -> None:
    """The image's word counts; nothing of it was started."""
    async with scene(tmp_path) as at:
        await at.world.ask({"mode": "Preflight", "image": at.release("5.3.7"), "version": "5.3.8"})
        assert "is release 5.3.7, not 5.3.8" in await at.failed("VersionMismatch")
        assert await at.world.deployment() is None


@pytest.mark.slow
async def test_an_unsigned_image_is_not_asked_for(tmp_path: Path) -> None:
    """No request reaches the registry: what is in there is nobody's word yet."""
    async with scene(tmp_path) as at:
        built = build_release(tmp_path / "unsigned", version="5.3.7", files={})
        with odd_registry(Layout.open(tmp_path / "unsigned")) as odd:
            await at.world.ask({"mode": "Preflight", "image": f"{odd.host}/ocp/release@{built.digest}"})
            assert "is not trusted, so nothing was started" in await at.failed("ImageVerificationFailed")
            assert odd.asked == []


async def test_an_image_that_is_no_release(tmp_path: Path) -> None:
    """Signed and readable, but without release-metadata."""
    async with scene(tmp_path) as at:
        built = build_image(at.layout, [layer_of({"etc/motd": b"hello"})], tag="other", config=Execution())
        await at.world.ask({"mode": "Preflight", "image": at.signed(built.digest)})
        said = await at.failed("TargetUnreadable")
        assert "the image has no file release-manifests/release-metadata" in said
        assert "or set version together with image" in said


async def test_a_tag_names_the_way_out(tmp_path: Path) -> None:
    """It could change between check and update."""
    async with scene(tmp_path) as at:
        await at.world.ask({"mode": "Preflight", "image": f"{at.registry.host}/ocp/release:5.3.7"})
        assert "use name@sha256:..." in await at.failed("TagNotDigest")


async def test_an_unreachable_registry_names_the_way_out(tmp_path: Path) -> None:
    """One clear text, and the stated version as the last resort."""
    async with scene(tmp_path) as at:
        digest = at.release("5.3.7").partition("@")[2]
        await at.world.ask({"mode": "Preflight", "image": f"127.0.0.1:1/ocp/release@{digest}"})
        said = await at.failed("TargetUnreadable")
        assert "registry 127.0.0.1:1 cannot be reached" in said
        assert "name a mirror in an ImageDigestMirrorSet, or set version together with image" in said


@pytest.mark.slow
async def test_a_pull_secret_heals_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text names the Secret; once it has the registry the preflight starts by itself."""
    monkeypatch.setattr("runup.clusterversion.decide.work.RECHECK", timedelta(seconds=0.2))
    async with scene(tmp_path, users={"ann": "word"}) as at:
        await at.world.ask({"mode": "Preflight", "image": at.release("5.3.7")})
        said = await at.failed("TargetUnreadable")
        assert "wants credentials" in said
        assert "add the registry to the pull secret openshift-config/pull-secret" in said
        auth = base64.b64encode(b"ann:word").decode()
        secret = base64.b64encode(json.dumps({"auths": {at.registry.host: {"auth": auth}}}).encode()).decode()
        await at.world.client.send(
            calls.create(
                SECRETS,
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "pull-secret", "namespace": "openshift-config"},
                    "type": "kubernetes.io/dockerconfigjson",
                    "data": {".dockerconfigjson": secret},
                },
            )
        )
        await at.world.started("5.3.7")


async def test_the_clusters_mirrors_are_asked(tmp_path: Path) -> None:
    """A source that cannot be reached is read through the mirror that an ImageDigestMirrorSet names."""
    async with scene(tmp_path) as at:
        resource = MIRROR_KINDS[0]
        await at.world.client.send(calls.create(CRDS, _definition(resource)))
        entries = [{"source": "127.0.0.1:1/ocp", "mirrors": [f"{at.registry.host}/copy"]}]
        await at.world.until_created(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": "mirrors"},
                "spec": {"imageDigestMirrors": entries},
            },
        )
        digest = at.release("5.3.7").partition("@")[2]
        await at.world.ask({"mode": "Preflight", "image": f"127.0.0.1:1/ocp/release@{digest}"})
        await at.world.started("5.3.7")


def _definition(resource: Resource) -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Cluster",
            "names": {
                "kind": resource.kind,
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "listKind": f"{resource.kind}List",
            },
            "versions": [version],
        },
    }
