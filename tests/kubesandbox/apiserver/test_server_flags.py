"""The flags of kube-apiserver that turn plugins and versions off; refusals are those of kube-apiserver 1.34.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.objects.admission import CREATE_PLUGINS, DELETE_PLUGINS, UPDATE_PLUGINS
from kubesandbox.apiserver.objects.admission_plugins import PLUGINS
from kubesandbox.apiserver.served_kinds import BUILTIN
from kubesandbox.apiserver.server import ApiServer
from kubesandbox.apiserver.server_flags import parse

PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
POD: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("enabled", "disabled", "versions", "refused"),
    [
        ("", "Nope", "", 'disable-admission-plugins plugin "Nope" is unknown'),
        ("Nope", "", "", 'enable-admission-plugins plugin "Nope" is unknown'),
        ("Priority", "Priority", "",
         r"\[Priority\] in enable-admission-plugins and disable-admission-plugins overlapped"),
        ("", "", "foo.example/v1=false", "unknown api groups foo.example"),
        ("", "", "api/foo=false", "unknown api groups api"),
        ("", "", "apps/v1=maybe",
         'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("", "", "v1=false", "kubesandbox needs v1"),
    ],
)  # fmt: skip
def test_refuses_flags(enabled: str, disabled: str, versions: str, refused: str) -> None:
    """The message names the value."""
    with pytest.raises(ValueError, match=refused):
        parse([enabled], [disabled], [versions])


@pytest.mark.parametrize(
    ("versions", "unserved"),
    [
        ("apps/v1=false", {"apps/v1"}),
        ("apps/v1/deployments=false", {"apps/v1/deployments"}),
        ("apps/v1=false,apps/v1/deployments=true", {"apps/v1", "but deployments"}),
        ("apps/v1", set()),
        ("apps/v9=false", set()),
        ("api/beta=false", set()),
        ("api/all=false,apps/v1=true", {"all", "but apps/v1"}),
    ],
)
def test_selects_versions(versions: str, unserved: set[str]) -> None:
    """A resource decides before its version, a version before all versions; the core group is always served."""
    disabled = parse(runtime_config=[versions])
    missing = {f"{kind.api_version}/{kind.plural}" for kind in BUILTIN if not disabled.serves(kind)}
    of_apps = {f"apps/v1/{kind.plural}" for kind in BUILTIN if kind.group == "apps"}
    every = {f"{kind.api_version}/{kind.plural}" for kind in BUILTIN if kind.group}
    expected = every if "all" in unserved else of_apps if "apps/v1" in unserved else set()
    expected |= {name for name in unserved if name.count("/") == 2}
    expected -= of_apps if "but apps/v1" in unserved else set()
    assert missing == expected - ({"apps/v1/deployments"} if "but deployments" in unserved else set())


def test_names_what_cannot_be_turned_on() -> None:
    """A plugin or a version that this server lacks."""
    found = parse(["AlwaysPullImages,Priority"], [], ["apps/v9=true,apps/v1=true,api/all=true"])
    assert found.warnings == ("admission plugin AlwaysPullImages", "API apps/v9")


def test_each_called_plugin_is_in_the_table() -> None:
    """Only a name of the table can be turned off."""
    called = {name for plugins in (CREATE_PLUGINS, UPDATE_PLUGINS, DELETE_PLUGINS) for name, _ in plugins}
    assert called <= {plugin.name for plugin in PLUGINS if plugin.present}


async def test_a_server_without_plugins_and_versions(tmp_path: Path) -> None:
    """Disabled plugins leave a pod alone, and a disabled version is neither listed nor served."""
    disabled = parse([], ["Priority,DefaultTolerationSeconds", "ServiceAccount"], ["batch/v1=false"])
    async with ApiServer(tmp_path, disabled=disabled) as server, Client(load(str(server.kubeconfig))) as client:
        pod = await client.send(calls.create(PODS, POD))
        assert {"priority", "tolerations"} & set(pod["spec"]) == set()
        served = await client.send(calls.list_group_versions())
        assert "apps/v1" in served
        assert "batch/v1" not in served
