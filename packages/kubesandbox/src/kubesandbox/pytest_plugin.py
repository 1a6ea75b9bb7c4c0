"""Pytest plugin: the fixtures `kube_api` and `kube_api_factory`, each a Kubernetes API server in its own process.

Pytest imports this module in every project that has the package installed, so it imports nothing but pytest and the
standard library; a server is started only for a test that requests it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from kubesandbox.testing import KubeApi

Scope = Literal["session", "package", "module", "class", "function"]
KubeApiFactory = Callable[..., "AbstractContextManager[KubeApi]"]
MARKER = "kube_api"
# The folder of the server that the workers of pytest-xdist share.
_SHARED = pytest.StashKey[Path]()
_SCOPES: tuple[Scope, ...] = ("function", "class", "module", "package", "session")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the settings of pytest.ini or pyproject.toml."""
    parser.addini("kube_api_crds", "folders of CustomResourceDefinitions that `kube_api` serves", "paths", [])
    parser.addini("kube_api_scope", f"scope of the fixture `kube_api`: {', '.join(_SCOPES)}", "string", "function")
    parser.addini("kube_api_node", "whether `kube_api` has a node on which pods are declared ready", "bool", False)
    parser.addini("kube_api_shared", "whether all workers of pytest-xdist share the server of a session", "bool", False)
    parser.addini("kube_api_kubernetes_version", "version of Kubernetes that `kube_api` behaves as", "string", "")
    parser.addini("kube_api_feature_gates", "feature gates of `kube_api`, such as A=true,B=false", "string", "")
    parser.addini("kube_api_controllers", "whether controllers run next to the API server of `kube_api`", "bool", True)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker. Raises UsageError for a shared server whose scope is not the session."""
    if config.getini("kube_api_shared") and config.getini("kube_api_scope") != "session":
        raise pytest.UsageError("kube_api_shared needs kube_api_scope = session")
    arguments = "crds=(), node=False, controllers=True, kubernetes_version='', feature_gates=''"
    description = f"{MARKER}({arguments}): what the API server of this test's `kube_api` has"
    config.addinivalue_line("markers", description)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuses markers for a server that several tests share, since the first test would decide for the others."""
    if config.getini("kube_api_scope") == "function":
        return
    marked = next((item for item in items if item.get_closest_marker(MARKER)), None)
    if marked is not None:
        problem = f"{marked.nodeid} has the marker {MARKER}, but kube_api_scope is {config.getini('kube_api_scope')}"
        raise pytest.UsageError(f"{problem}: use kube_api_factory there, or leave the scope at function")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Starts the shared server, in the process that starts the workers of pytest-xdist, and names it to each."""
    config: pytest.Config = node.config
    if not config.getini("kube_api_shared"):
        return
    if _SHARED not in config.stash:
        from kubesandbox import testing

        stack = ExitStack()
        config.add_cleanup(stack.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kube_api-")))
        config.stash[_SHARED] = folder
        stack.enter_context(testing.kube_api(folder, **_settings(config)))
    node.workerinput[MARKER] = str(config.stash[_SHARED])


def _settings(config: pytest.Config) -> dict[str, Any]:
    """Returns the arguments of a server that the settings ask for."""
    return {
        "crds": [config.rootpath / folder for folder in config.getini("kube_api_crds")],
        "node": config.getini("kube_api_node"),
        "controllers": config.getini("kube_api_controllers"),
        "kubernetes_version": config.getini("kube_api_kubernetes_version"),
        "feature_gates": config.getini("kube_api_feature_gates"),
    }


def _fixture_scope(fixture_name: str, config: pytest.Config) -> Scope:
    """Returns the scope that `kube_api_scope` names."""
    # pytest passes it by keyword to a dynamic scope, so the name of the parameter is fixed.
    del fixture_name
    scope_name = config.getini("kube_api_scope")
    scope = next((scope for scope in _SCOPES if scope == scope_name), None)
    if scope is None:
        raise pytest.UsageError(f"kube_api_scope is {scope_name!r}; choose one of {', '.join(_SCOPES)}")
    return scope


@pytest.fixture(scope="session")
def kube_api_factory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KubeApiFactory:
    """Starts API servers: `with kube_api_factory(crds=["config/crd"]) as api: ...`, also in fixtures of any scope.

    Arguments that are not given are taken from the settings. Paths are relative to pytest's root folder, as in the
    settings.
    """
    config = request.config

    def start(
        *,
        crds: Iterable[str | os.PathLike[str]] | None = None,
        node: bool | None = None,
        controllers: bool | None = None,
        kubernetes_version: str | None = None,
        feature_gates: str | None = None,
    ) -> AbstractContextManager[KubeApi]:
        """Starts a server; what is not given is as in the pytest configuration."""
        from kubesandbox import testing

        given = {
            "crds": None if crds is None else [config.rootpath / folder for folder in crds],
            "node": node,
            "controllers": controllers,
            "kubernetes_version": kubernetes_version,
            "feature_gates": feature_gates,
        }
        chosen = _settings(config) | {name: value for name, value in given.items() if value is not None}
        return testing.kube_api(tmp_path_factory.mktemp("kube_api"), **chosen)

    return start


@pytest.fixture
def kube_api_restored(kube_api: KubeApi) -> Iterator[KubeApi]:
    """`kube_api`, whose objects are at the end what they were at the beginning of the test.

    With a wide `kube_api_scope`, tests share a server and do not see the objects of each other.
    """
    snapshot = kube_api.snapshot()
    try:
        yield kube_api
    finally:
        kube_api.restore(snapshot)


@pytest.fixture(scope=_fixture_scope)
def kube_api(request: pytest.FixtureRequest, kube_api_factory: KubeApiFactory) -> Iterator[KubeApi]:
    """A Kubernetes API server: `kubeconfig`, `server`, `namespace()`, `load()` and more, see `KubeApi`.

    Each test has its own, or several share one by the setting `kube_api_scope`.
    """
    marker = request.node.get_closest_marker(MARKER)
    shared = getattr(request.config, "workerinput", {}).get(MARKER)
    if shared is not None:
        from kubesandbox.testing import KubeApi

        api = KubeApi(Path(shared))
        yield api
        api.close()
        return
    options: dict[str, Any] = marker.kwargs if marker is not None else {}
    if marker is not None and marker.args:
        raise pytest.UsageError(f"the marker {MARKER} takes names: crds=[...], node=..., controllers=...")
    with kube_api_factory(**options) as api:
        yield api
