"""`runup check` of a server: each question is asked, and what is unknown is said to be so; nothing is changed."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Ran, Run
from tests.cli.rights import LOOKER, let_looker
from tests.servers import Server

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup import __version__
from runup.clusterversion.control.prerequisite_probe import installed
from runup.clusterversion.decide.check_prerequisites import Installed

NAMESPACE = "openshift-config-managed"
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
DEPLOYMENTS = resource_of(Deployment)
BINDINGS = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
)
VERIFICATION = {"release.openshift.io/verification-config-map": ""}


class _Refusing(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        if self.path in ("/v2/", "/signatures", "/a"):
            self.send_error(401)
        else:  # whoever knows nothing there hangs up
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """A registry that answers, if only that one must log in."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def asked(run: Run, kubeconfig: Path, *words: str) -> tuple[Ran, dict[str, tuple[str, str]]]:
    """Returns the output, and each row's result and text by its name."""
    ran = run("check", "-o", "json", "--kubeconfig", kubeconfig, *words)
    rows = json.loads(ran.out)["checks"]
    return ran, {f"{row['name']} {row['message'].partition(' ')[0]}": (row["result"], row["message"]) for row in rows}


def test_places_are_reached_from_here(server: Server, run: Run, registry: str) -> None:
    """Each registry is queried once, as is a signature store of the cluster; a refusal counts as an answer."""
    stores = [{"url": f"http://{registry}/signatures"}, {"url": "http://127.0.0.1:1/none"}]
    desired = {"version": "5.0.0", "image": f"{registry}/release@sha256:1"}
    other = {"version": "5.0.1", "image": f"{registry}/other@sha256:2"}
    conditional = {"release": {"version": "5.1.0", "image": "127.0.0.1:2/x@sha256:3"}, "risks": [], "conditions": []}
    risk = {"name": "R", "message": "m", "url": "https://example.com", "matchingRules": [{"type": "Always"}]}
    server.set_cluster_version(
        spec={"channel": "stable-5.0", "signatureStores": stores},
        status={
            "desired": desired,
            "availableUpdates": [other],
            "conditionalUpdates": [{**conditional, "risks": [risk]}],
        },
    )
    before = server.cluster_version()
    ran, rows = asked(run, server.kubeconfig)
    assert ran.code == 3
    assert rows[f"registry http://{registry}/v2/"] == ("ok", f"http://{registry}/v2/ answers from here")
    assert rows["registry http://127.0.0.1:2/v2/"] == (
        "unknown",
        "http://127.0.0.1:2/v2/ does not answer from here: [Errno 111] Connection refused",
    )
    assert rows[f"signature store http://{registry}/signatures"][0] == "ok"
    assert rows["signature store http://127.0.0.1:1/none"][0] == "unknown"
    assert [name for name in rows if name.startswith(("registry", "signature"))].count(
        f"registry http://{registry}/v2/"
    ) == 1
    assert rows["preflight field the"] == ("ok", "the server takes spec.desiredUpdate.mode (asked by a dry run)")
    assert rows["gate ClusterUpdatePreflight the"][0] == "unknown"
    assert rows["rights you"] == ("ok", "you may do everything that the commands need")
    assert server.cluster_version() == before


def test_without_stores_of_its_own_those_of_the_release_are_asked(server: Server, run: Run, registry: str) -> None:
    """They are in ConfigMaps that say so; others are nobody's store."""
    for name, marks, data in (
        ("ours", VERIFICATION, {"store-a": f"http://{registry}/a", "verifier-public-key": "x"}),
        ("other", {}, {"store-b": f"http://{registry}/b"}),
    ):
        _put(server, name, marks, data)
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "nowhere"}})
    _, rows = asked(run, server.kubeconfig)
    assert [name for name in rows if name.startswith(("registry", "signature"))] == [
        f"signature store http://{registry}/a"
    ]
    assert rows["update service no"][0] == "problem"


def _put(server: Server, name: str, annotations: dict[str, str], data: dict[str, str]) -> None:
    try:
        server.client.send(calls.get_raw(NAMESPACES, NAMESPACE))
    except NotFound:
        server.client.send(
            calls.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        )
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    server.client.send(calls.apply(resource_of(ConfigMap), body, field_manager="test", force=True))


@pytest.mark.parametrize(
    ("of", "said"),
    [
        pytest.param("old_server", 'unknown field "spec.desiredUpdate.mode"', id="an older release, which has no such"),
        pytest.param("closed_server", "desiredUpdate", id="a release whose gate is closed"),
    ],
)
def test_a_server_that_does_not_take_the_field(of: str, said: str, request: pytest.FixtureRequest, run: Run) -> None:
    """The server's own words, and exit code 2."""
    found: Server = request.getfixturevalue(of)
    found.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "nowhere"}})
    ran, rows = asked(run, found.kubeconfig)
    (field,) = [row for name, row in rows.items() if name.startswith("preflight field")]
    assert ran.code == 2
    assert field[0] == "problem"
    assert field[1].startswith("the server does not take spec.desiredUpdate.mode: ")
    assert said in field[1]


def test_a_cluster_without_a_version_yet(server: Server, run: Run) -> None:
    """The dry run asks for one that nobody has; nothing is known about places."""
    server.set_cluster_version()
    _, rows = asked(run, server.kubeconfig)
    assert rows["cluster its"] == ("ok", "its ClusterVersion says no version yet")
    assert rows["preflight field the"][0] == "ok"


@pytest.fixture
def component(server: Server, run: Run) -> Iterator[Installed]:
    """The UpdateStatus controller, whose pod is declared available as a node would."""
    where = ("--namespace", "checked", "--kubeconfig", server.kubeconfig)
    image = f"registry.example/runup@sha256:{'5' * 64}"
    # Nothing removes a namespace here: it is somebody else's, and stays.
    server.client.send(
        calls.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "checked"}})
    )
    done = run("install", "update-status", "--image", image, *where)
    assert done.code == 0, done.out + done.err
    found = next(iter(installed(server.client)))
    shown = {"observedGeneration": 100, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    server.client.send(
        calls.merge_patch(DEPLOYMENTS, found.deployment, {"status": shown}, "checked", subresource="status")
    )
    yield found
    assert run("uninstall", "update-status", "--definitions", "--yes", *where).code == 0


def test_a_component_is_asked_about(server: Server, run: Run, component: Installed) -> None:
    """Its account's rights are those that the server's authorizer gives it; who may not ask hears so."""
    server.set_cluster_version()
    assert component.ready == 0
    ready = f"runup {__version__} in namespace checked, 1 of 1 pods ready"
    row = "component update-status runup"
    assert asked(run, server.kubeconfig)[1][row] == ("ok", f"{ready}, its account has its rights")
    verbs = dict.fromkeys(("clusterversions.config.openshift.io", "deployments.apps", "configmaps"), ("get", "list"))
    let_looker(server.client, verbs)
    result, text = asked(run, server.kubeconfig, "--as", LOOKER)[1][row]
    assert result == "unknown"
    assert 'cannot create resource "subjectaccessreviews"' in text
    server.client.send(calls.delete(BINDINGS, component.deployment))
    assert asked(run, server.kubeconfig)[1][row] == (
        "problem",
        f"{ready}; its account may not watch nodes, update updatestatuses.update.openshift.io/status",
    )


def test_who_may_do_nothing_is_told_what_is_lacking(server: Server, run: Run) -> None:
    """A user without a role: the cluster cannot be read, each right is named, and no place is asked."""
    server.set_cluster_version(spec={"channel": "stable-5.0"})
    ran, rows = asked(run, server.kubeconfig, "--as", "nobody")
    assert ran.code == 2
    (cluster,) = [row for name, row in rows.items() if name.startswith("cluster ")]
    assert cluster[0] == "problem"
    assert "is forbidden" in cluster[1]
    ran = run("check", "--kubeconfig", server.kubeconfig, "--as", "nobody")
    assert "runup needs" not in ran.out
    assert ran.out.count("add-cluster-role-to-user cluster-reader USER") == 10
    lacking = [line.strip() for line in ran.out.splitlines() if "you may not" in line]
    assert lacking == [
        "problem  rights: you may not get clusterversions.config.openshift.io",
        "problem  rights: you may not patch clusterversions.config.openshift.io",
        "problem  rights: you may not watch clusterversions.config.openshift.io",
        "unknown  rights: remedies and past preflights may be incomplete, because you may not get configmaps",
        "unknown  rights: the state of preflights may be incomplete, because you may not get "
        "leases.coordination.k8s.io",
        "unknown  rights: `upgrade status` may be incomplete, because you may not list "
        "clusteroperators.config.openshift.io",
        "unknown  rights: `upgrade status` may be incomplete, because you may not list "
        "machineconfigpools.machineconfiguration.openshift.io",
        "unknown  rights: `upgrade status` may be incomplete, because you may not list nodes",
        "unknown  rights: `upgrade status` may be incomplete, because you may not list pods",
        "unknown  rights: `upgrade status` may be incomplete, because you may not list "
        "certificatesigningrequests.certificates.k8s.io",
    ]


def test_a_server_that_does_not_answer(run: Run, tmp_path: Path) -> None:
    """One row, and exit code 1: the others would only repeat it."""
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "current-context": "c"}
    config |= {"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u"}]}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    ran, rows = asked(run, tmp_path / "config")
    assert ran.code == 1
    assert list(rows) == ["server http://127.0.0.1:1:"]
    assert "refused" in rows["server http://127.0.0.1:1:"][1]


def test_whom_this_machine_does_not_trust_is_told_apart(server: Server, run: Run, tmp_path: Path) -> None:
    """The cluster may trust it."""
    now = datetime.now(UTC)
    pair = issue_server(new_ca(now), now)
    (tmp_path / "crt").write_bytes(pair.cert)
    (tmp_path / "key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as service:
        service.socket = context.wrap_socket(service.socket, server_side=True)
        thread = threading.Thread(target=service.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{service.server_address[1]}/a"
        try:
            server.set_cluster_version(spec={"signatureStores": [{"url": url}]})
            _, rows = asked(run, server.kubeconfig)
        finally:
            service.shutdown()
            thread.join()
    result, said = rows[f"signature store {url}"]
    assert result == "unknown"
    assert said.startswith(f"{url} does not answer from here: its certificate is not trusted here (")


def test_who_may_not_patch_cannot_be_told_of_the_field(server: Server, run: Run) -> None:
    """The dry run is a patch like any other."""
    server.set_cluster_version()
    let_looker(server.client, {"clusterversions.config.openshift.io": ("get",)})
    _, rows = asked(run, server.kubeconfig, "--as", LOOKER)
    result, said = rows["preflight field whether"]
    assert result == "unknown"
    assert said.startswith("whether the server takes spec.desiredUpdate.mode: ")
    assert 'User "looker" cannot patch resource "clusterversions"' in said
