"""The pages about what is carried as files are typed, and the one about sizes: each command, or it is said why not."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from tests.install import like_openshift
from tests.install.pages import ROOT, Shell, blocks, commands, commands_of_page, program_folder, with_deploy
from tests.kubekit.oci.registries import docker_registry, self_signed
from tests.servers import eventually
from tools.release import archives, signing

from kubekit.api.core_v1 import ConfigMap
from kubekit.kube import calls, config
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.oci.openpgp import Keyring
from kubekit.oci.signatures import SigningKey, Verification, generate_key
from kubesandbox.pytest_plugin import KubeApiFactory
from runup.release.control.image_build import build_release
from runup.release.control.signatures import read_config_maps

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.xdist_group("install pages")]
VERSION = "1.2.3"
MANIFEST = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "b"}}
MIRROR = "mirror.example:5000"
LISTEN = "0.0.0.0:8080"
BY_DIGEST = "release@sha256:..."
ASK = "runup upgrade --mode=preflight --to-image=mirror.example:5000/release@sha256:..."
EXPLAIN = "runup preflight explain NAME"
# What no test types, and why, or which test does it in other words.
NOT_TYPED = {
    "air-gapped.md": {
        "kubectl krew install --manifest=runup.yaml --archive=runup-linux-amd64.tar.gz": (
            "there is no krew here; what it does with both files is in tests/journeys/install/test_krew.py"
        ),
        "pip install --no-index --find-links DIR kube-runup": "the libraries in DIR come from the package index",
        "oc adm release mirror": "it is of OpenShift's releases, which need their registry",
        "runup preflight run --in-cluster --image mirror.example:5000/runup:1.2.3": (
            "its Job needs nodes that pull from the mirror: tests/realcluster/test_preflight_as_job.py"
        ),
        "make docs": "make check runs the same program",
        "runup check": "tests/journeys/cli/test_check.py types it",
        "runup graph serve": "the page has it with its arguments, which are typed",
    },
    "sizing.md": {
        "python -m bench": "all of them take most of an hour",
        "python -m bench day": "it takes most of an hour",
        "python -m bench memory_in_image": "it needs what `make real` needs, and the operator's image",
    },
}


@pytest.fixture
def key() -> SigningKey:
    """The publisher's."""
    return generate_key()


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """`host:port` of a registry whose certificate authority, mirror-ca.pem, nobody else knows."""
    for needed in ("skopeo", "gpg", "sha256sum"):
        if shutil.which(needed) is None:
            pytest.skip(f"there is no {needed} on this machine")
    certificate = self_signed("127.0.0.1", tmp_path)
    shutil.copy(certificate[0], tmp_path / "mirror-ca.pem")
    with docker_registry(tmp_path, certificate=certificate) as host:
        yield host


def release_files(folder: Path, key: SigningKey) -> None:
    """An image, checksums and their signature, by the names that `make release` gives them."""
    build_release(
        folder / "layout", version=VERSION, files={"release-manifests/a.yaml": yaml.safe_dump(MANIFEST).encode()}
    )
    made = folder / "made"
    made.mkdir()
    archives.pack(archives.below(folder / "layout"), made / f"runup-image-{VERSION}.oci.tar")
    sums = signing.checksums(made)
    (made / "SHA256SUMS").write_text(sums)
    (made / "SHA256SUMS.asc").write_bytes(signing.sign(key, sums.encode()))
    (made / "signing-key.asc").write_bytes(key.public)
    for path in made.iterdir():
        shutil.move(path, folder / path.name)


def other_places(mirror: str) -> dict[str, str]:
    """What this reader types in place of the page's names. Only skopeo is unknown the authority by a file."""
    return {
        MIRROR: mirror,
        "registry.example/runup": f"{mirror}/runup",
        "skopeo copy": "SSL_CERT_FILE=mirror-ca.pem skopeo copy",
        LISTEN: free_address(),
        EXPLAIN: EXPLAIN.replace("NAME", "ClusterVersionGiantHop"),
    }


def free_address() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def untyped(page: str, *shells: Shell) -> set[str]:
    """The commands of a page that nobody typed."""
    return commands_of_page(page).difference(*(shell.typed for shell in shells))


def test_a_release_is_checked(mirror: str, key: SigningKey, tmp_path: Path) -> None:
    """By the tools that the page names; a file that is another's is noticed."""
    release_files(tmp_path, key)
    shell = Shell(tmp_path / "none", program_folder(tmp_path), tmp_path, other_places(mirror))
    typed = blocks("releasing.md", "Check one")
    shell.type_all(typed)

    (tmp_path / f"runup-image-{VERSION}.oci.tar").write_bytes(b"another")
    code, said = shell.type(commands(typed)[0])
    assert (code, "FAILED" in said) == (1, True)


def test_a_cluster_without_a_network(
    kube_api_factory: KubeApiFactory, mirror: str, key: SigningKey, tmp_path: Path
) -> None:
    """Images and a release in one's own registry, a signature that the operator takes, an update service."""
    release_files(tmp_path, key)
    _furnish(tmp_path, mirror, key)
    with kube_api_factory(node=True) as api, SyncClient(config.load(str(api.kubeconfig))) as client:
        like_openshift.furnish(client)
        places = other_places(mirror)
        shell = Shell(api.kubeconfig, program_folder(tmp_path), tmp_path, places)
        carried = commands(blocks("air-gapped.md", "Carry it over"))
        shell.type_all("\n".join(line for line in carried if line not in NOT_TYPED["air-gapped.md"]))
        shell.type_all(blocks("air-gapped.md", "On the cluster"))
        shell.type_all(blocks("air-gapped.md", "Releases and their signatures"))
        digest = (tmp_path / "pushed").read_text().splitlines()[-1].partition("@")[2]
        assert asyncio.run(_verified(api.kubeconfig, digest, key))
        later = Shell(api.kubeconfig, tmp_path, tmp_path, {BY_DIGEST: f"release@{digest}", **places})
        assert later.type(ASK)[0] == 0
        asked = client.send(calls.get_raw(like_openshift.CLUSTER_VERSION, "version"))["spec"]["desiredUpdate"]
        assert (asked["image"], asked["mode"]) == (f"{mirror}/release@{digest}", "Preflight")

    code, said = shell.type(EXPLAIN)
    assert (code, "ClusterVersionGiantHop" in said) == (0, True), said
    _update_service(shell, places[LISTEN])
    assert untyped("air-gapped.md", shell, later) == NOT_TYPED["air-gapped.md"].keys()


def test_the_memory_of_processes_is_measured(tmp_path: Path) -> None:
    """At one moment instead of an hour's: both processes have what they need at least, and less than their limits."""
    places = {"python ": f"cd {ROOT} && {sys.executable} ", "--held 60": "--held 0"}
    shell = Shell(tmp_path / "none", program_folder(tmp_path), tmp_path, places)
    code, said = shell.type("python -m bench memory --held 60")
    assert code == 0, said
    measured = json.JSONDecoder().raw_decode(said)[0]["memory"]
    most = {name: measured[name]["resident_mib"]["most"] for name in ("operator", "update_status_controller")}
    assert {name: 20 < mib < 512 for name, mib in most.items()} == dict.fromkeys(most, True), most
    assert untyped("sizing.md", shell) == NOT_TYPED["sizing.md"].keys()


def test_the_dashboard(kube_api_factory: KubeApiFactory, tmp_path: Path) -> None:
    """It is small enough for a ConfigMap, and has the label by which Grafana's sidecar finds it."""
    with kube_api_factory() as api, SyncClient(config.load(str(api.kubeconfig))) as client:
        client.send(calls.create(like_openshift.NAMESPACE, {"metadata": {"name": "monitoring"}}))
        Shell(api.kubeconfig, program_folder(tmp_path), with_deploy(tmp_path)).type_all(
            blocks("metrics.md", "The dashboard")
        )
        (found,) = client.listing(ConfigMap, "monitoring", label_selector="grafana_dashboard=1").items
    assert json.loads(found.data["runup.json"])["panels"]


def _furnish(folder: Path, mirror: str, key: SigningKey) -> None:
    """Creates the reader's files: the contents of a release, mirror sets, graph data."""
    (folder / "key.asc").write_bytes(key.secret)
    manifests = folder / "release" / "release-manifests"
    manifests.mkdir(parents=True)
    (manifests / "0000_50_own_a.yaml").write_text(yaml.safe_dump(MANIFEST))
    mirrors = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageTagMirrorSet",
        "metadata": {"name": "ours"},
        "spec": {"imageTagMirrors": [{"source": "registry.example/release", "mirrors": [f"{mirror}/release"]}]},
    }
    (folder / "mirrors.yaml").write_text(yaml.safe_dump(mirrors))
    channels = folder / "graph-data" / "channels"
    channels.mkdir(parents=True)
    (folder / "graph-data" / "version").write_text("1.1.0\n")
    (channels / "stable-5.2.yaml").write_text(yaml.safe_dump({"name": "stable-5.2", "versions": ["5.2.0"]}))
    listed = [{"version": "5.2.0", "image": f"{mirror}/release@sha256:" + "5" * 64}]
    (folder / "releases.json").write_text(json.dumps(listed))


async def _verified(kubeconfig: Path, digest: str, key: SigningKey) -> bool:
    """Whether the operator finds a signature of the digest in the cluster that the publisher's key made."""
    verification = Verification(digest, [Keyring("publisher", key.public)], now=datetime.now(UTC))
    async with Client(config.load(str(kubeconfig))) as client:
        async for source, signature in read_config_maps(client, verification):
            verification.add(signature, source)
    return verification.done


def _update_service(shell: Shell, address: str) -> None:
    """The graph is made, and served until it was asked for."""
    build, serve = commands(blocks("air-gapped.md", "Which updates there are"))
    assert shell.type(build)[0] == 0
    assert LISTEN in serve
    process = shell.start(serve)
    try:
        asked = f"http://{address}/api/upgrades_info/v1/graph?channel=stable-5.2&arch=amd64"
        nodes = eventually(lambda: _nodes(asked), "the update service answers")
    finally:
        process.terminate()
        process.wait(60)
    assert [node["version"] for node in nodes] == ["5.2.0"]


def _nodes(url: str) -> list[dict[str, str]]:
    with suppress(OSError), urllib.request.urlopen(url, timeout=30) as answer:
        nodes: list[dict[str, str]] = json.loads(answer.read())["nodes"]
        return nodes
    return []
