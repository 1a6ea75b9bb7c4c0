"""runup as it is published, on real nodes: installed from chart and image, used, updated to its next release, removed.

One story, in the order of the tests. The rights are the smallest that the documentation states (`leastPrivilege`), and
the API server's audit log shows whether they are enough.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.releases_world import events
from tests.cli.console.test_actions import READS
from tests.cli.console.test_deployed import Visitor
from tests.console.accounts import token_of
from tests.documents import documents
from tests.install.listing import settled
from tests.realcluster import releases
from tests.realcluster.cluster import HERE, RealCluster
from tests.realcluster.installing import CLUSTER_ID, CONFIG
from tests.realcluster.kube import Kube, metadata, pod_ready
from tests.realcluster.published import VERSIONS, Published, helm, published
from tests.realcluster.releases import CHANNEL, ReleaseWorld

from kubekit.kube.api_errors import NotFound
from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from kubesandbox.apiserver.initial_objects import cluster_reader
from runup.install.decide.component import COMPONENTS
from runup.process.names import OPERATOR_NAMESPACE

JSON = dict[str, Any]
ROOT = Path(__file__).parents[2]
RUNS, NEXT = "4.6.1", "4.7.1"
"""Releases of the cluster, which no other test knows."""
DEPLOYED = {
    "operator": "k8s-app=cluster-version-operator",
    "update-status": "app=update-status-controller",
    "kernel-modules": "app=kernel-module-preflight",
    "update-policy": "app=update-controller",
}
"""The pods of each component, in the order in which components are installed."""
PODS = {"kernel-modules": 2}
GONE_S = 60.0
IDLE_S = 600.0
"""The controller of policies looks every five minutes while no run is under way."""
CONSOLE = "runup-console"
ACCOUNTS = tuple(f"system:serviceaccount:{COMPONENTS[name].namespace}:" for name in DEPLOYED)
UPDATE = "update.runup.dev/v1alpha1"
STATUS = "update.openshift.io/v1alpha1"
# Of cert-manager only the kinds: the certificate is issued below.
_CERT_MANAGER = ("Issuer", "Certificate")


@dataclass
class Journey:
    """A cluster on which runup's published releases are installed."""

    cluster: RealCluster
    kube: Kube
    versions: dict[str, Published]
    images: dict[str, str]
    """The pull spec of each version's image."""
    releases: dict[str, str]
    """That of the release that the operator runs as, which is built on it."""
    world: ReleaseWorld
    since: int = 0
    """Where the API server's audit log was at the beginning."""
    before: set[str] = field(default_factory=set)
    version: str = VERSIONS[0]

    @property
    def runup(self) -> Published:
        """The version that is installed."""
        return self.versions[self.version]

    def type(self, *words: str) -> tuple[int, str]:
        """The exit code of `runup WORD...` of the installed version, and what it printed."""
        done = self.runup.runup(self.cluster.kubeconfig, *words)
        return done.returncode, done.stdout + done.stderr

    def helm(self, *words: str) -> str:
        """The output of `helm WORD...`."""
        return helm(self.cluster.kubeconfig, *words)

    def image(self, component: str = "") -> str:
        """The image of a component of the installed version."""
        return (self.releases if component == "operator" else self.images)[self.version]

    def values(self, component: str) -> list[str]:
        """The chart's values for a component of the installed version."""
        return [
            "--namespace",
            "default",
            f"--set=component={component},image={self.image(component)},leastPrivilege=true",
        ]

    def pods(self, component: str) -> Sequence[JSON]:
        """The ready pods of a component, all of them of the installed version."""
        where, labels, count = COMPONENTS[component].namespace, DEPLOYED[component], PODS.get(component, 1)

        def running() -> Sequence[JSON]:
            pods = self.kube.pods(where, labels)
            images = [each["image"] for pod in pods for each in pod["spec"]["containers"]]
            return pods if images == [self.image(component)] * count and all(map(pod_ready, pods)) else []

        found: Sequence[JSON] = self.kube.until(running, f"{component} {self.version} is ready")
        return found

    def lists(self) -> set[str]:
        """The names of all objects, the Leases of components included."""
        leases = self.kube.listed("coordination.k8s.io/v1", "Lease")
        names = {f"lease {each['metadata']['namespace']}/{each['metadata']['name']}" for each in leases}
        return names | set(settled(self.kube.client))


@pytest.fixture(scope="module")
def journey(cluster: RealCluster, kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    """Both versions of runup in the cluster's registry, and a release of the cluster built on each."""
    folder = tmp_path_factory.mktemp("published")
    versions = published()
    images = {each.version: cluster.registry.push(each.image, "published") for each in versions.values()}
    component = cluster.registry.push(releases.component_image(folder / "component"), "component")
    first = ReleaseWorld(folder / "releases", cluster.registry, HERE, versions[VERSIONS[0]].image, component)
    # The same key and signatures: the cluster's releases have one publisher, whatever runup is below them.
    second = replace(first, folder=folder / "releases-of-next", operator=versions[VERSIONS[1]].image, releases={})
    with first, second:
        of_operator = {VERSIONS[0]: first.release(RUNS).image, VERSIONS[1]: second.release(RUNS).image}
        first.release(NEXT, previous=(RUNS,))
        made = Journey(
            cluster, kube, versions, images, of_operator, first, since=cluster.plane.audit_log.stat().st_size
        )
        made.before = made.lists()
        yield made
        # A test that failed leaves objects; the next file needs the cluster as it was.
        _remove(made)


def test_the_chart_installs_every_component(journey: Journey, kube: Kube) -> None:
    """Each is ready, no pod is root or has a folder of its node, and the release of the cluster is offered another."""
    kube.apply(*map(_definition_of_cert_manager, _CERT_MANAGER))
    for component in DEPLOYED:
        journey.helm("install", component, str(journey.runup.chart), *journey.values(component))
        if component == "operator":
            _create_cluster_version(journey, kube)
    # At once: a controller that has seen no policy looks again after five minutes.
    kube.apply(*_policy_of_page())
    _issue(kube)
    for component in DEPLOYED:
        _is_restricted(journey.pods(component))
    assert journey.type("version") == (0, f"Client Version: {VERSIONS[0]}\n")
    kube.until(lambda: kube.get(STATUS, "UpdateStatus", "cluster").get("status"), "UpdateStatus has a status")


def _create_cluster_version(journey: Journey, kube: Kube) -> None:
    kube.until(lambda: _listed(kube, CONFIG, "ClusterVersion") is not None, "ClusterVersion is served")
    spec = {"clusterID": CLUSTER_ID, "channel": CHANNEL, "upstream": f"{journey.world.url}/graph"}
    kube.apply({"apiVersion": CONFIG, "kind": "ClusterVersion", "metadata": metadata("version"), "spec": spec})
    kube.until(lambda: _offered(kube), f"{NEXT} is offered")


def _policy_of_page() -> list[JSON]:
    """The page's own policy, and its calendar with a freeze for a century: the result depends on no hour of the day."""
    page = (ROOT / "docs" / "how-to" / "update-policy.md").read_text()
    policy, calendar = yaml.safe_load_all(page.split("```yaml\n")[1].split("```")[0])
    calendar["spec"]["freezes"] = [{"from": "2020-01-01", "to": "2120-01-01", "reason": "test"}]
    return [policy, calendar]


def test_a_preflight_of_the_next_release_is_reported(journey: Journey) -> None:
    """By the target's own pod, which is restricted, too."""
    _preflight(journey)
    _is_restricted(journey.kube.pods(OPERATOR_NAMESPACE, "app=cluster-version-operator-preflight"))


def test_a_policy_waits_for_its_window(journey: Journey, kube: Kube) -> None:
    """The page's own policy: a run for the offered release, and what keeps it from starting."""
    kube.until(lambda: kube.listed(UPDATE, "UpdateRun"), "the policy has a run", IDLE_S)

    def closed() -> bool:
        (run,) = kube.listed(UPDATE, "UpdateRun")
        gates = {each["name"]: each for each in run.get("status", {}).get("gates", ())}
        return bool(gates) and gates["window"]["state"] == "Closed"

    kube.until(closed, "the run waits for a window")
    (run,) = kube.listed(UPDATE, "UpdateRun")
    assert run["spec"]["target"]["version"] == NEXT
    assert run["status"]["step"] == "Waiting"
    code, text = journey.type("upgrade", "gate", run["metadata"]["name"])
    assert code == 2, text
    assert "window     closed" in text


def test_the_console_shows_the_cluster(journey: Journey, kube: Kube) -> None:
    """Behind a login, with the account and the objects of `deploy/console`."""
    kube.apply(*_console_objects(journey))
    (pod,) = kube.running(CONSOLE, f"app={CONSOLE}")
    _is_restricted([pod])
    _looks_at_the_console(journey, pod)


@pytest.mark.parametrize("version", VERSIONS[::-1], ids=["to the next release", "and back"])
def test_runup_is_updated(journey: Journey, kube: Kube, version: str) -> None:
    """Every pod is of that version, the objects of users are as before, and each component continues."""
    kept = _kept(kube)
    back = version == VERSIONS[0]
    journey.version = version
    for component in DEPLOYED:
        if back:
            journey.helm("rollback", component, "1", "--namespace", "default")
        else:
            journey.helm("upgrade", component, str(journey.runup.chart), *journey.values(component))
    for component in DEPLOYED:
        _is_restricted(journey.pods(component))
    kube.apply(*_console_objects(journey))
    kube.until(lambda: _image_of(kube, CONSOLE) == [journey.image()], f"the console is {version}")
    assert _kept(kube) == kept
    renewed = _renewed(kube)
    kube.until(lambda: all(_renewed(kube)[name] > time for name, time in renewed.items()), "every Lease is renewed")
    _preflight(journey)
    code, text = journey.type("upgrade", "status")
    assert code == 0, text
    code, text = journey.type("upgrade", "gate", _kept(kube)["UpdateRun"][0][0])
    assert code == 2, text
    (pod,) = kube.running(CONSOLE, f"app={CONSOLE}")
    _looks_at_the_console(journey, pod)


def test_nothing_that_the_components_ask_for_is_refused(journey: Journey, kube: Kube) -> None:
    """By the API server's audit log, from the installation on."""
    ours = [
        event
        for event in events(journey.cluster.plane.audit_log, journey.since)
        if event["user"]["username"].startswith(ACCOUNTS)
    ]
    assert {event["user"]["username"].split(":")[2] for event in ours} == {
        COMPONENTS[name].namespace for name in DEPLOYED
    }
    # In a namespace that is not there nobody can be given a right, and there is nothing to read.
    there = {each["metadata"]["name"] for each in kube.listed("v1", "Namespace")} | {""}
    refused = {
        (event["user"]["username"], event["verb"], event["requestURI"])
        for event in ours
        if event["responseStatus"]["code"] == 403 and event.get("objectRef", {}).get("namespace", "") in there
    }
    assert refused == set(), sorted(refused)


def test_nothing_is_left_of_it(journey: Journey) -> None:
    """Neither in the API, whatever the kind, nor on the nodes."""
    _remove(journey)
    with suppress(AssertionError):
        journey.kube.until(lambda: journey.lists() <= journey.before, "everything is gone", GONE_S)
    assert journey.lists() - journey.before == set()
    for node in journey.cluster.nodes.values():
        assert node.run("sh", "-c", "ls -d /etc/cvo /etc/runup /var/lib/runup 2>/dev/null", check=False) == ""


def _preflight(journey: Journey) -> None:
    code, text = journey.type(
        *("upgrade", "--preflight", f"--to={NEXT}", "--allow-not-recommended", "--force", "--wait", "--timeout=10m")
    )
    assert code in (0, 2, 3), text


def _remove(journey: Journey) -> None:
    """Types the steps of the page about Helm; an object that is gone already is no error."""
    kube = journey.kube
    for kind in ("UpdatePolicy", "UpdateCalendar", "UpdateRun"):
        for each in _listed(kube, UPDATE, kind) or ():
            kube.delete(UPDATE, kind, each["metadata"]["name"])
    kube.until(lambda: not _listed(kube, UPDATE, "UpdateRun"), "the runs are gone")
    for obj in reversed(_console_objects(journey)):
        kube.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    for kind, namespace in (("ClusterRoleBinding", ""), ("ClusterRole", ""), ("ServiceAccount", "default")):
        api = "v1" if kind == "ServiceAccount" else "rbac.authorization.k8s.io/v1"
        kube.delete(api, kind, "looks", namespace)
    # The operator removes what it made for the preflight's account.
    if _listed(kube, CONFIG, "ClusterVersion"):
        journey.type("upgrade", "--clear-preflight")
        rights = ("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-version-operator-preflight")
        kube.until(lambda: not kube.get(*rights), "the preflight's account has no rights")
    for component in reversed(DEPLOYED):
        journey.helm("uninstall", component, "--namespace", "default", "--ignore-not-found", "--wait")
    definitions = [obj for name in DEPLOYED for obj in _definitions(name)]
    for obj in (*definitions, *map(_definition_of_cert_manager, _CERT_MANAGER)):
        kube.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"])


def _definitions(component: str) -> list[JSON]:
    """The definitions of a component, which `helm uninstall` leaves."""
    folder = ROOT / "deploy" / "kustomize" / component
    (file,) = {*folder.glob("definitions/objects.yaml"), *folder.glob("definitions-kubernetes/objects.yaml")}
    return documents(file)


def _listed(kube: Kube, api_version: str, kind: str) -> list[JSON] | None:
    """None while the kind is not served."""
    try:
        return kube.listed(api_version, kind)
    except (LookupError, NotFound):
        return None


def _definition_of_cert_manager(kind: str) -> JSON:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.cert-manager.io"},
        "spec": {"group": "cert-manager.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _issue(kube: Kube) -> None:
    """The Secret of each Certificate, as cert-manager would write it."""
    now = SystemClock().now()
    authority = new_ca(now)
    for each in kube.listed("cert-manager.io/v1", "Certificate"):
        pair = issue_server(authority, now, each["spec"]["dnsNames"])
        place = metadata(each["spec"]["secretName"], each["metadata"]["namespace"])
        kube.apply(_tls(place, pair.cert, pair.key))


def _tls(place: JSON, cert: bytes, key: bytes) -> JSON:
    data = {"tls.crt": base64.b64encode(cert).decode(), "tls.key": base64.b64encode(key).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": place, "data": data}


_HOST = "updates.apps.cluster.example"
_AUTHORITY = new_ca(SystemClock().now())


def _console_objects(journey: Journey) -> list[JSON]:
    """`deploy/console` without OpenShift's Route and link, with its role, a user's number and the certificate."""
    file = ROOT / "deploy" / "console" / "console.yaml"
    ours = [obj for obj in documents(file) if obj["kind"] not in ("Route", "ConsoleLink")]
    for obj in ours:
        if obj["kind"] == "Deployment":
            pod = obj["spec"]["template"]["spec"]
            pod["securityContext"]["runAsUser"] = releases.USER
            pod["containers"][0]["image"] = journey.image()
    pair = issue_server(_AUTHORITY, SystemClock().now(), [_HOST])
    namespace, *others = ours
    return [namespace, cluster_reader(), _tls(metadata("console-serving-cert", CONSOLE), pair.cert, pair.key), *others]


def _looks_at_the_console(journey: Journey, pod: JSON) -> None:
    trusted = ssl.create_default_context(cadata=_AUTHORITY.cert.decode())
    # By the pod's address, as the router connects: the certificate is of the name.
    trusted.check_hostname = False
    visitor = Visitor(f"https://{pod['status']['podIP']}:8443", trusted)
    assert visitor.ask("/")[0] in (303, 401)
    token = token_of(journey.kube.client, "looks", READS)
    assert visitor.ask("/login", {"token": token, "next": "/"})[0] == 303
    path = "/clusters/this-cluster"
    journey.kube.until(lambda: "Not evaluated yet" not in visitor.ask(path)[1], "the cluster is evaluated")
    status, text = visitor.ask(path)
    assert (status, "Could not be evaluated" in text) == (200, False), text
    assert NEXT in text


def _image_of(kube: Kube, namespace: str) -> list[str]:
    return [each["image"] for pod in kube.pods(namespace) if pod_ready(pod) for each in pod["spec"]["containers"]]


def _kept(kube: Kube) -> dict[str, list[tuple[str, str]]]:
    """Names and uids of the objects that users keep."""
    kinds = (
        (CONFIG, "ClusterVersion"),
        (STATUS, "UpdateStatus"),
        (UPDATE, "UpdatePolicy"),
        (UPDATE, "UpdateCalendar"),
        (UPDATE, "UpdateRun"),
    )
    return {
        kind: [(each["metadata"]["name"], each["metadata"]["uid"]) for each in kube.listed(api, kind)]
        for api, kind in kinds
    }


def _renewed(kube: Kube) -> dict[str, str]:
    """When the leader of each component renewed its Lease."""
    spaces = [COMPONENTS[name].namespace for name in DEPLOYED]
    leases = [each for space in spaces for each in kube.listed("coordination.k8s.io/v1", "Lease", space)]
    return {each["metadata"]["name"]: str(each["spec"].get("renewTime", "")) for each in leases}


def _offered(kube: Kube) -> bool:
    status = kube.get(CONFIG, "ClusterVersion", "version").get("status", {})
    updates = [
        *(status.get("availableUpdates") or ()),
        *(each["release"] for each in status.get("conditionalUpdates", ())),
    ]
    return NEXT in [each["version"] for each in updates]


def _is_restricted(pods: Sequence[JSON]) -> None:
    assert pods
    for pod in pods:
        assert [each for each in pod["spec"]["volumes"] if "hostPath" in each] == []
        for container in pod["spec"]["containers"]:
            security = {**pod["spec"]["securityContext"], **container["securityContext"]}
            assert security["runAsNonRoot"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
