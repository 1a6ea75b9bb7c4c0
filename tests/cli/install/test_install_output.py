"""`runup install` and `runup uninstall` as typed, on a server without controllers: their lines, and their refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.cli.commands import Run
from tests.servers import Server

from kubekit.api.scheme import Resource
from kubekit.kube import calls

IMAGE = "registry.example/runup@sha256:" + "5" * 64
# A namespace that is somebody else's, since nobody empties one here.
NAMESPACE = "status-of-a-test"
CONTROLLER = "deployment.apps/update-status-controller"
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
INSTALL = ("install", "update-status", "--image", IMAGE, "--namespace", NAMESPACE)
UNINSTALL = ("uninstall", "update-status", "--namespace", NAMESPACE, "--definitions")


@pytest.fixture
def namespace(server: Server) -> Iterator[None]:
    """The namespace, in which nothing is left afterwards."""
    server.client.send(calls.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    yield
    server.client.send(calls.delete(NAMESPACES, NAMESPACE))


@pytest.mark.slow
@pytest.mark.usefixtures("namespace")
def test_each_object_is_a_line(server: Server, run: Run) -> None:
    """As kubectl writes them; a dry run says that it is one, and writes nothing."""
    where = ("--kubeconfig", server.kubeconfig)
    made = f"{CONTROLLER} in {NAMESPACE} created"
    tried = run(*INSTALL, "--dry-run=server", *where)
    assert tried.code == 0, tried.err
    assert f"{made} (server dry run)" in tried.out.splitlines()
    done = run(*INSTALL, *where)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [line.removesuffix(" (server dry run)") for line in tried.out.splitlines()]
    assert f"namespace/{NAMESPACE} left to its owner" in done.out.splitlines()
    foretold = run(*UNINSTALL, "--dry-run=server", *where)
    gone = f"{CONTROLLER} in {NAMESPACE} deleted"
    assert f"{gone} (server dry run)" in foretold.out.splitlines(), foretold.err
    removed = run(*UNINSTALL, *where)
    assert removed.code == 0, removed.err
    assert gone in removed.out.splitlines()
    again = run(*UNINSTALL, *where)
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith("error: update-status is not installed by `runup install`: ")


@pytest.mark.slow
def test_objects_are_printed_by_what_the_cluster_is(server: Server, run: Run) -> None:
    """Where flags leave it to the cluster; with all flags nobody is asked."""
    where = ("--kubeconfig", server.kubeconfig)
    for words in (where, ("--platform", "kubernetes", "--monitoring", "off")):
        printed = run("install", "update-status", "--image", IMAGE, "-o", "yaml", *words)
        assert (printed.code, printed.err) == (0, "")
        kinds = [obj["kind"] for obj in yaml.safe_load_all(printed.out)]
        assert {"Namespace", "Deployment"} <= set(kinds)
        assert IMAGE in printed.out


def test_definitions_of_the_operator_go_only_with_yes(run: Run) -> None:
    """With ClusterVersion goes all that it owns; nobody is asked before that is said."""
    refused = run("uninstall", "operator", "--definitions", "--kubeconfig", "/nonexistent/config")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith("add --yes if that is what you want, or leave --definitions out\n")
