"""The kernels of a release, out of its image and its driver toolkit's; and as whom registries are asked."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.kubekit.oci.layered import Made, layout_in, put_image, put_index
from tests.kubekit.oci.registries import Answer, docker_registry, odd_registry

from kubekit.api.core_v1 import ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import Terminal, Waiting
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.oci.access import Access
from kubekit.oci.credentials import AuthFile, Credentials, Login
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubesandbox.apiserver.server import ApiServer
from runup.api.kmm_v1beta1 import TLSOptions
from runup.kernelmodules.control.image_stage import verify_image
from runup.kernelmodules.control.module_check import kernels_of, toolkit_of_release
from runup.kernelmodules.control.registries import ClusterRegistries, GivenRegistries
from runup.kernelmodules.decide.module_state import ImageQuestion, ReleaseQuestion
from runup.kernelmodules.decide.toolkit import REFERENCES_FILE, TOOLKIT_FILE, Flavour
from runup.kernelmodules.decide.verdict import ExaminationOutcome
from runup.release.control.registry_access import SECRETS

NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
REGISTRIES = GivenRegistries(Access(attempts=1))
X86, ARM = "5.14.0-427.el9_4.x86_64", "5.14.0-427.el9_4.aarch64"


def toolkit_release(kernel: str, real_time: str = "") -> bytes:
    """What a driver toolkit says about itself."""
    return json.dumps({"KERNEL_VERSION": kernel, "RHEL_VERSION": "9.4", "RT_KERNEL_VERSION": real_time}).encode()


def names(toolkit: str) -> bytes:
    """What a release says about its images."""
    return json.dumps({"spec": {"tags": [{"name": "driver-toolkit", "from": {"name": toolkit}}]}}).encode()


def put_toolkit(layout: Layout) -> str:
    """A driver toolkit for two architectures; its digest."""
    base = [Made("usr/bin/gcc", b"x" * 100_000)]
    amd = put_image(layout, base, [Made(TOOLKIT_FILE, toolkit_release(X86, f"{X86}+rt"))])
    arm = put_image(layout, base, [Made(TOOLKIT_FILE, toolkit_release(ARM))], architecture="arm64")
    return put_index(layout, amd, arm).digest


async def test_the_kernels_of_a_release(tmp_path: Path) -> None:
    """One for each architecture that is asked for, with the toolkit that says so; of real time where that is asked."""
    layout = layout_in(tmp_path)
    with odd_registry(layout) as odd:
        toolkit = f"{odd.host}/ocp/dtk@{put_toolkit(layout)}"
        made = put_image(layout, [Made("base")], [Made(REFERENCES_FILE, names(toolkit))], [Made("last")])
        release = f"{odd.host}/ocp/release@{made.digest}"
        found = await kernels_of(ReleaseQuestion(release, (Flavour("amd64"), Flavour("arm64"))), REGISTRIES)
        rt = await kernels_of(ReleaseQuestion(release, (Flavour("amd64", real_time=True),)), REGISTRIES)
        no_rt = await kernels_of(ReleaseQuestion(release, (Flavour("amd64", True), Flavour("arm64", True))), REGISTRIES)
    assert [(one.architecture, one.kernel_version, one.dtk_image) for one in found.kernels] == [
        ("amd64", X86, toolkit),
        ("arm64", ARM, toolkit),
    ]
    assert [one.kernel_version for one in rt.kernels] == [f"{X86}+rt"]
    assert (no_rt.kernels, no_rt.problem.startswith("arm64 real-time: rt_kernel_version is missing")) == ((), True)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param({"etc/motd": b""}, "which is not a release image", id="no references"),
        pytest.param({REFERENCES_FILE: b"{}"}, "failed to find driver-toolkit entry", id="no toolkit among them"),
        pytest.param({REFERENCES_FILE: names("HOST/ocp/dtk:gone")}, "manifest unknown", id="a toolkit that is gone"),
        pytest.param({REFERENCES_FILE: names("HOST/ocp/dtk@ITSELF")}, "is not present in the image", id="no toolkit"),
    ],
)
async def test_a_release_that_does_not_say(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    """Terminal: only another release image helps."""
    layout = layout_in(tmp_path)
    other = put_image(layout, [Made("nothing")])

    def rule(asked: Any) -> Answer | None:
        return Answer(404) if asked.path.endswith("/gone") else None

    with odd_registry(layout, rule) as odd:
        filled = {
            path: data.replace(b"HOST", odd.host.encode()).replace(b"ITSELF", other.digest.encode())
            for path, data in files.items()
        }
        made = put_image(layout, [Made(path, data) for path, data in filled.items()])
        with pytest.raises(Terminal, match=said):
            await toolkit_of_release(f"{odd.host}/ocp/release@{made.digest}", REGISTRIES)


@pytest.mark.parametrize("image", ["127.0.0.1:1/ocp/release:1"])
async def test_a_registry_that_is_away_is_waited_for(image: str) -> None:
    """Waiting, and the same as text in a status."""
    with pytest.raises(Waiting, match="cannot be reached"):
        await toolkit_of_release(image, REGISTRIES)
    found = await kernels_of(ReleaseQuestion(image), REGISTRIES)
    assert found.problem.startswith(f"failed to get image spec from image {image}: ")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A cluster with a namespace for Modules, and its own."""
    async with ApiServer(tmp_path / "apiserver") as server, Client(config.load(str(server.kubeconfig))) as made:
        for name in ("drivers", "openshift-config"):
            await made.send(calls.create(NAMESPACES, {"metadata": {"name": name}}))
        yield made


async def put_secret(client: Client, namespace: str, name: str, host: str, word: str, old: bool = False) -> None:
    """A pull secret for `host`."""
    auths = {host: {"auth": base64.b64encode(f"ann:{word}".encode()).decode()}}
    key, kind, data = (
        (".dockercfg", "dockercfg", auths) if old else (".dockerconfigjson", "dockerconfigjson", {"auths": auths})
    )
    secret = {
        "metadata": {"name": name, "namespace": namespace},
        "type": f"kubernetes.io/{kind}",
        "data": {key: base64.b64encode(json.dumps(data).encode()).decode()},
    }
    await client.send(calls.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret}))


async def test_pull_secrets(tmp_path: Path, client: Client) -> None:
    """The Module's, the builder's, the cluster's; a wrong password and one that is not there are reported."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("opt/lib/modules/6.1.0/a.ko")])
    with docker_registry(tmp_path, {"ann": "word"}) as host:
        pushing = Access(credentials=Credentials((AuthFile("test", {host: Login("ann", "word")}),)))
        RegistryClient(pushing).push(layout, made.digest, parse(f"{host}/kmods/a:1"))
        registries = ClusterRegistries(client, Access(attempts=1, inner=frozenset({host})))

        async def outcome(secret: str = "") -> tuple[ExaminationOutcome, str]:
            asked = ImageQuestion(
                image=f"{host}/kmods/a:1",
                kernel="6.1.0",
                dir_name="/opt",
                module_names=("a",),
                tls=TLSOptions(),
                namespace="drivers",
                secret=secret,
            )
            found = await verify_image(asked, registries)
            return found.outcome, found.message

        assert "none are known" in (await outcome())[1]
        assert "the pull secret drivers/pull is not there" in (await outcome("pull"))[1]
        await put_secret(client, "drivers", name="wrong", host=host, word="else")
        what, said = await outcome("wrong")
        assert (what, "refused reading kmods/a with the credentials given" in said) == (ExaminationOutcome.FAILED, True)
        await put_secret(client, "drivers", name="pull", host=host, word="word")
        assert (await outcome("pull"))[0] is ExaminationOutcome.VERIFIED
        await put_secret(client, "drivers", name="builder-dockercfg-1", host=host, word="word", old=True)
        account = {
            "metadata": {"name": "builder", "namespace": "drivers"},
            "imagePullSecrets": [{"name": "builder-dockercfg-1"}],
        }
        await client.send(calls.create(resource_of(ServiceAccount), account))
        assert (await outcome())[0] is ExaminationOutcome.VERIFIED
        assert (await outcome("gone"))[0] is ExaminationOutcome.FAILED
        await put_secret(client, "openshift-config", name="pull-secret", host=host, word="word")
        assert (await outcome("gone"))[0] is ExaminationOutcome.VERIFIED


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        pytest.param(401, ExaminationOutcome.UNKNOWN, id="refused: a login may exist"),
        pytest.param(404, ExaminationOutcome.UNKNOWN, id="not there, which is what some registries say to nobody"),
        pytest.param(200, ExaminationOutcome.VERIFIED, id="public"),
    ],
)
async def test_secrets_that_may_not_be_read(tmp_path: Path, status: int, outcome: ExaminationOutcome) -> None:
    """Whoever may not read Secrets has not been informed of the image by a refusal; the right that lacks is named."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("opt/lib/modules/6.1.0/a.ko")])
    refusal = Answer(status, b"", {"WWW-Authenticate": "Basic realm=x"})
    async with ApiServer(tmp_path / "apiserver") as server:
        nobody = replace(config.load(str(server.kubeconfig)), headers=(("Impersonate-User", "nobody"),))
        async with Client(nobody) as client:
            with odd_registry(layout, lambda _asked: None if status == 200 else refusal) as odd:
                image = f"{odd.host}/kmods/a@{made.digest}"
                asked = ImageQuestion(
                    image=image,
                    kernel="6.1.0",
                    dir_name="/opt",
                    module_names=("a",),
                    tls=TLSOptions(),
                    namespace="drivers",
                    secret="pull",
                )
                found = await verify_image(
                    asked, ClusterRegistries(client, Access(attempts=1, inner=frozenset({odd.host})))
                )
    assert found.outcome is outcome
    assert ("the pull secret drivers/pull could not be read: " in found.message) == (
        outcome is ExaminationOutcome.UNKNOWN
    )
