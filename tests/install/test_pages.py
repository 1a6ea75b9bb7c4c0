"""The pages about installing are typed, command by command, in their order, on a cluster as they describe it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.install import like_openshift
from tests.install.listing import settled
from tests.install.pages import DOCS, Shell, blocks, program_folder, text_of, with_deploy

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.client_sync import SyncClient
from kubesandbox.pytest_plugin import KubeApiFactory
from runup.api.config_v1 import ClusterVersion
from runup.process.names import OPERATOR_NAMESPACE

MAPS, VERSIONS = resource_of(ConfigMap), resource_of(ClusterVersion)

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.xdist_group("install pages")]


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runup` as it is here."""
    return program_folder(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def plain(kube_api_factory: KubeApiFactory, bin_folder: Path, tmp_path: Path) -> Iterator[tuple[Shell, SyncClient]]:
    """A shell next to a cluster that has nothing of OpenShift."""
    with kube_api_factory(node=True) as api, SyncClient(config.load(str(api.kubeconfig))) as client:
        yield Shell(api.kubeconfig, bin_folder, with_deploy(tmp_path)), client


def test_on_openshift(kube_api_factory: KubeApiFactory, bin_folder: Path, tmp_path: Path) -> None:
    """The first thing that the page offers, next to the operator that is there."""
    with kube_api_factory(node=True) as api, SyncClient(config.load(str(api.kubeconfig))) as client:
        like_openshift.furnish(client)
        shell = Shell(api.kubeconfig, bin_folder, with_deploy(tmp_path))
        shell.type_all(blocks("install.md", "On OpenShift, next to its own operator"))
        code, said = shell.type("runup install operator --image registry.example/release@sha256:" + "5" * 64)
        assert code == 1
        assert "keeps this cluster's ClusterVersion" in said


def test_from_installing_to_removing(plain: tuple[Shell, SyncClient]) -> None:
    """Install, look, upgrade, remove: afterwards the cluster is as before."""
    shell, client = plain
    before = set(settled(client))
    for page, section in (
        ("install.md", "On any other Kubernetes"),
        ("upgrade.md", "The operator and its releases"),
        ("upgrade.md", "Upgrading what is installed"),
    ):
        shell.type_all(blocks(page, section))
    shell.type("runup install kernel-modules --image registry.example/runup:0.1.0")
    shell.type_all(blocks("uninstall.md", "Removing it"))
    shell.type("runup uninstall update-status --definitions")
    assert set(settled(client)) - before == set()


def test_what_was_saved_is_restored_on_another_cluster(
    kube_api_factory: KubeApiFactory, bin_folder: Path, tmp_path: Path
) -> None:
    """Whose objects have other uids, and whose own ConfigMaps stay as they are."""
    save, restore = re.findall(
        r"^```sh\n(.*?)^```", (DOCS / "how-to" / "backup.md").read_text(), re.MULTILINE | re.DOTALL
    )
    folder, found = with_deploy(tmp_path), []
    for block in (save, restore):
        with kube_api_factory(node=True) as api, SyncClient(config.load(str(api.kubeconfig))) as client:
            shell = Shell(api.kubeconfig, bin_folder, folder)
            shell.type_all("runup install operator --image registry.example/release@sha256:" + "5" * 64)
            if block == save:
                client.send(calls.create(MAPS, kept("preflight-history", "saved")))
                client.send(calls.merge_patch(VERSIONS, "version", {"spec": {"channel": "saved"}}))
            client.send(calls.create(MAPS, kept("another", "save" if block == save else "restore")))
            shell.type_all(block)
            spec = client.send(calls.get_raw(VERSIONS, "version"))["spec"]
            maps = client.send(calls.list_raw(MAPS, OPERATOR_NAMESPACE)).items
            values = {each["metadata"]["name"]: each["data"].get("shown") for each in maps}
            found.append((spec, values["preflight-history"], values["another"]))
    assert found[0][0] == found[1][0]
    assert [each[1:] for each in found] == [("saved", "save"), ("saved", "restore")]


def kept(name: str, shown: str) -> dict[str, Any]:
    """A ConfigMap next to the operator."""
    return {"metadata": {"name": name, "namespace": OPERATOR_NAMESPACE}, "data": {"shown": shown}}


def test_with_kustomize(plain: tuple[Shell, SyncClient]) -> None:
    """Applied and deleted by kubectl alone."""
    shell, client = plain
    before = set(settled(client))
    shell.type_all(blocks("install.md", "With kustomize"))
    assert set(settled(client)) - before == set()


def test_with_helm(plain: tuple[Shell, SyncClient]) -> None:
    """Installed and uninstalled by Helm; kubectl removes the definitions."""
    shell, client = plain
    before = set(settled(client))
    shell.type("IMAGE=registry.example/runup:0.1.0")
    shell.type_all(blocks("install.md", "With Helm"))
    assert set(settled(client)) - before == set()


def test_no_block_is_left_untyped() -> None:
    """Every `sh` block of these pages is in a section that a test above types."""
    typed = {
        ("install.md", "On OpenShift, next to its own operator"),
        ("install.md", "On any other Kubernetes"),
        ("install.md", "With kustomize"),
        ("install.md", "With Helm"),
        ("backup.md", "Without a backup of etcd"),
        ("upgrade.md", "Upgrading what is installed"),
        ("upgrade.md", "The operator and its releases"),
        ("uninstall.md", "Removing it"),
    }
    found = set()
    for page in ("install.md", "upgrade.md", "uninstall.md", "backup.md", "sizing.md"):
        text = text_of(page)
        for section in re.findall(r"^##? (.+)$", text, re.MULTILINE):
            if blocks(page, section):
                found.add((page, section))
    assert found == typed
