"""Sets of objects on an API server: what is applied, left alone, removed and waited for, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.documents import document
from tests.servers import Server, eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Forbidden, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock
from runup.api.update_policy_v1alpha1 import FINALIZER, UpdateRun
from runup.install.control import installing, sets
from runup.install.control.installing import Manner
from runup.install.control.sets import Done, InstallError, ObjectSets, Outcome
from runup.install.decide.component import (
    KERNEL_MODULES,
    OPERATOR,
    UPDATE_POLICY,
    UPDATE_STATUS,
    Certificates,
    Options,
    Platform,
)
from runup.install.decide.inventory import Inventory, inventory_of
from runup.install.decide.refusals import CLUSTER_VERSION, Cluster, Workload
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
ROLES = Resource(
    group="rbac.authorization.k8s.io", version="v1", kind="ClusterRole", plural="clusterroles", namespaced=False
)
SLICES = Resource(
    group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", namespaced=True
)
VERSIONS = Resource(
    group="config.openshift.io", version="v1", kind="ClusterVersion", plural="clusterversions", namespaced=False
)
PART_OF = "applyset.kubernetes.io/part-of"
NUMBERS = count()
DEPLOYED = Path(__file__).parents[3] / "deploy"


def made(resource: Resource, name: str, namespace: str = "", **content: Any) -> JSON:
    """An object as a manifest has it."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


@dataclass
class OwnNamespace:
    """A namespace of a server, and the sets in it; `clock` passes whenever somebody waits."""

    client: SyncClient
    namespace: str
    clock: ManualClock = field(default_factory=ManualClock)
    done: list[Done] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sets = ObjectSets(self.client, self.clock, tool_version="1.2.3")

    def map(self, name: str, **data: str) -> JSON:
        """A ConfigMap of the namespace."""
        return made(CONFIG_MAPS, name, self.namespace, data=data)

    def create(self, resource: Resource, name: str, namespace: str = "", **content: Any) -> JSON:
        """An object of somebody else."""
        return self.client.send(calls.create(resource, made(resource, name, namespace, **content)))

    def apply(self, *objects: JSON, component: str = "fruit", **choices: bool) -> dict[str, str]:
        """Returns the outcome of each object of a set, by kind and name in the reported order."""
        inventory = inventory_of(component, self.namespace, objects, {"image": "i"})
        return self.results_of(lambda on_done: self.sets.apply_set(objects, inventory, on_done, **choices))

    def results_of(self, work: Any) -> dict[str, str]:
        """What `work` reports about each object."""
        done: list[Done] = []
        work(done.append)
        return {f"{each.identity.kind} {each.identity.name}": str(each.outcome) for each in done}

    def remove(self, component: str = "fruit", **choices: Any) -> dict[str, str]:
        """Returns the outcome of each object of a set that is removed."""
        (inventory,) = (each for each in self.sets.installed(component) if each.namespace == self.namespace)
        return self.results_of(lambda done: self.sets.remove_set(inventory, done, **{"definitions": False, **choices}))

    def stored(self, name: str) -> JSON:
        """A ConfigMap as the server has it."""
        return self.client.send(calls.get_raw(CONFIG_MAPS, name, self.namespace))

    def exists(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """Whether the server has it."""
        try:
            self.client.send(calls.get_raw(resource, name, namespace))
        except NotFound:
            return False
        return True


@pytest.fixture
def space(server: Server) -> Iterator[OwnNamespace]:
    """A separate namespace."""
    found = OwnNamespace(server.client, f"sets-{next(NUMBERS)}")
    found.create(NAMESPACES, found.namespace)
    yield found
    # Nobody empties a namespace here, and a set anywhere is seen by the next test.
    for resource in (CONFIG_MAPS, DEPLOYMENTS):
        for each in found.client.listing_raw(resource).items:
            place = each["metadata"]["namespace"]
            if place == found.namespace or place.startswith(f"{found.namespace}-"):
                found.client.send(calls.delete(resource, each["metadata"]["name"], place))
    found.client.send(calls.delete(NAMESPACES, found.namespace))


def test_a_set_is_created_configured_and_left_as_it_is(space: OwnNamespace) -> None:
    """In kubectl's words; each object has the set's label, and the parent says where they are."""
    role = f"{space.namespace}-role"
    objects = (space.map("a", x="1"), made(ROLES, role, rules=[]))
    assert space.apply(*objects) == {"ConfigMap a": "created", f"ClusterRole {role}": "created"}
    (inventory,) = space.sets.installed("fruit")
    assert inventory == Inventory(
        name="runup-install-fruit",
        namespace=space.namespace,
        component="fruit",
        kinds=frozenset({("", "ConfigMap"), ("rbac.authorization.k8s.io", "ClusterRole")}),
        namespaces=frozenset(),
        data={"image": "i"},
    )
    assert space.stored("a")["metadata"]["labels"] == {PART_OF: inventory.id}
    parent = space.stored("runup-install-fruit")["metadata"]
    assert parent["annotations"]["applyset.kubernetes.io/tooling"] == "runup/v1.2.3"
    assert parent["managedFields"][0]["manager"] == "runup-install"
    assert set(space.apply(*objects).values()) == {"unchanged"}
    changed = space.apply(space.map("a", x="2"), objects[1])
    assert changed == {"ConfigMap a": "configured", f"ClusterRole {role}": "unchanged"}
    assert space.stored("a")["data"] == {"x": "2"}
    assert set(space.sets.members(inventory)) == {
        Identity("", "ConfigMap", space.namespace, "a"),
        Identity("rbac.authorization.k8s.io", "ClusterRole", "", role),
    }
    assert space.remove() == {f"ClusterRole {role}": "deleted", "ConfigMap a": "deleted"}


def test_a_dry_run_foretells_and_writes_nothing(space: OwnNamespace) -> None:
    """Also of a namespace and of a kind that would be there by then; each is served only when it is applied."""
    new = f"{space.namespace}-new"
    objects = (
        made(NAMESPACES, new),
        made(CONFIG_MAPS, "in-it", new, data={}),
        {"apiVersion": "fruit.example.com/v1", "kind": "Apple", "metadata": {"name": "it", "namespace": new}},
        space.map("a", x="1"),
    )
    inventory = inventory_of("fruit", new, objects, {})
    done = space.results_of(lambda on_done: space.sets.apply_set(objects, inventory, on_done, dry_run=True))
    assert done == {
        f"Namespace {new}": "created",
        "ConfigMap in-it": "created",
        "Apple it": "created",
        "ConfigMap a": "created",
    }
    assert not space.exists(NAMESPACES, new)
    assert not space.exists(CONFIG_MAPS, "a", space.namespace)
    assert space.sets.installed("fruit") == ()
    elsewhere = (made(CONFIG_MAPS, "a", new),)
    alone = inventory_of("fruit", space.namespace, elsewhere, {})
    done = space.results_of(lambda on_done: space.sets.apply_set(elsewhere, alone, on_done, dry_run=True))
    assert done == {"ConfigMap a": "created"}, "of a namespace that somebody else is still to make"
    space.apply(space.map("a", x="1"), space.map("b"))
    foretold = space.apply(space.map("a", x="2"), dry_run=True)
    assert foretold == {"ConfigMap a": "configured", "ConfigMap b": "pruned"}
    assert space.stored("a")["data"] == {"x": "1"}
    assert space.exists(CONFIG_MAPS, "b", space.namespace)
    assert space.remove(dry_run=True) == {"ConfigMap a": "deleted", "ConfigMap b": "deleted"}
    assert space.exists(CONFIG_MAPS, "a", space.namespace)
    assert len(space.sets.installed("fruit")) == 1


def test_the_parent_is_written_once_its_namespace_is_there(space: OwnNamespace) -> None:
    """Applied objects are found from then on, even after an interruption."""
    new = f"{space.namespace}-new"
    objects = (made(NAMESPACES, new), made(CONFIG_MAPS, "a", new), made(CONFIG_MAPS, "b", new, data="no map"))
    inventory = inventory_of("pears", new, objects, {})
    with pytest.raises(Exception, match="data"):
        space.sets.apply_set(objects, inventory, space.done.append)
    assert [str(each.identity) for each in space.done] == [f"Namespace {new}", f"ConfigMap {new}/a"]
    assert [each.namespace for each in space.sets.installed("pears")] == [new]
    space.client.send(calls.delete(NAMESPACES, new))


def test_what_a_set_has_no_longer_is_pruned(space: OwnNamespace) -> None:
    """Kinds that an earlier version had, too; never a namespace, nor what has another set's label or none."""
    role = f"{space.namespace}-role"
    space.apply(space.map("a"), space.map("b"), made(ROLES, role, rules=[]))
    space.create(CONFIG_MAPS, "theirs", space.namespace)
    space.apply(space.map("of-another"), component="pears")
    done = space.apply(space.map("a"))
    assert done == {"ConfigMap a": "unchanged", "ConfigMap b": "pruned", f"ClusterRole {role}": "pruned"}
    assert [space.exists(CONFIG_MAPS, name, space.namespace) for name in ("a", "b", "theirs", "of-another")] == [
        True,
        False,
        True,
        True,
    ]
    (inventory,) = space.sets.installed("fruit")
    assert inventory.kinds == {("", "ConfigMap")}


def test_a_field_of_somebody_else_is_left_unless_it_is_forced(space: OwnNamespace) -> None:
    """The object and the flag are named."""
    space.apply(space.map("a", x="1"))
    patch = calls.merge_patch(CONFIG_MAPS, "a", {"data": {"x": "theirs"}}, space.namespace, field_manager="kubectl")
    space.client.send(patch)
    with pytest.raises(InstallError) as raised:
        space.apply(space.map("a", x="2"))
    assert raised.value.message.startswith(f"ConfigMap {space.namespace}/a: ")
    assert "kubectl" in raised.value.message
    assert raised.value.message.endswith("\nTo set these fields all the same, add --force-conflicts")
    assert space.stored("a")["data"] == {"x": "theirs"}
    assert space.apply(space.map("a", x="2"), force=True) == {"ConfigMap a": "configured"}


@pytest.mark.parametrize(
    ("api_version", "waits_s"),
    [
        pytest.param("fruit.example.com/v1", 0, id="a group that nobody serves is not waited for"),
        pytest.param("apps/v1", 5, id="a kind of a group that is served may come"),
    ],
)
def test_a_kind_that_is_not_served_is_named(
    space: OwnNamespace, api_version: str, waits_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition is served a moment after it was accepted, and not for ever later."""
    monkeypatch.setattr(sets, "SERVED_WITHIN_S", 5.0)
    apple = {"apiVersion": api_version, "kind": "Apple", "metadata": {"name": "it"}}
    group = api_version.partition("/")[0]
    with pytest.raises(InstallError) as raised:
        space.apply(apple)
    assert raised.value.message == f"Apple.{group} it: the cluster does not serve {api_version} Apple"
    assert space.clock.monotonic() == waits_s


def test_a_group_that_was_just_defined_is_waited_for(space: OwnNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its definition here serves no version of the object, as if the server had not listed the group yet."""
    monkeypatch.setattr(sets, "SERVED_WITHIN_S", 5.0)
    group = f"{space.namespace}.example.com"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": False, "storage": True, "schema": schema}
    pears = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"pears.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "pears", "kind": "Pear"},
            "versions": [version],
        },
    }
    with pytest.raises(InstallError, match="does not serve"):
        space.apply(pears, {"apiVersion": f"{group}/v1", "kind": "Pear", "metadata": {"name": "it"}})
    assert space.clock.monotonic() == 5


def test_what_is_there_is_not_created_again(space: OwnNamespace) -> None:
    """Nor looked at; a dry run says the same and writes nothing."""

    def created(obj: JSON, **choices: bool) -> dict[str, str]:
        return space.results_of(lambda on_done: space.sets.create(obj, on_done, **choices))

    assert created(space.map("a", x="1"), dry_run=True) == {"ConfigMap a": "created"}
    assert created(space.map("a", x="1")) == {"ConfigMap a": "created"}
    assert created(space.map("a", x="2")) == {"ConfigMap a": "unchanged"}
    assert space.stored("a")["data"] == {"x": "1"}
    unknown = {"apiVersion": "fruit.example.com/v1", "kind": "Apple", "metadata": {"name": "it"}}
    assert created(unknown, dry_run=True) == {"Apple it": "created"}
    with pytest.raises(InstallError, match=r"does not serve fruit\.example\.com/v1 Apple"):
        created(unknown)


def test_a_set_is_removed_with_what_its_members_left(space: OwnNamespace) -> None:
    """Objects that lost the set's label stay; missing ones are no error. The parent is deleted last."""
    role, left = f"{space.namespace}-role", f"{space.namespace}-left"
    space.apply(space.map("a"), space.map("b"), made(ROLES, role, rules=[]))
    space.create(ROLES, left, rules=[])
    space.client.send(calls.merge_patch(CONFIG_MAPS, "b", {"metadata": {"labels": {PART_OF: None}}}, space.namespace))

    def besides() -> Iterator[Identity]:
        assert not space.exists(CONFIG_MAPS, "a", space.namespace)
        yield from space.sets.named("rbac.authorization.k8s.io", "ClusterRole", left)
        yield Identity("", "ConfigMap", space.namespace, "gone")
        yield Identity("fruit.example.com", "Apple", "", "of a kind that nobody serves")

    done = space.remove(besides=besides)
    assert list(done) == [
        "ConfigMap a",
        f"ClusterRole {role}",
        f"ClusterRole {left}",
        "ConfigMap gone",
        "Apple of a kind that nobody serves",
    ]
    assert set(done.values()) == {"deleted"}
    assert space.exists(CONFIG_MAPS, "b", space.namespace)
    assert not space.exists(ROLES, left)
    assert space.sets.installed("fruit") == ()


def test_what_is_held_is_named_after_a_while(space: OwnNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """With who holds it; the parent stays, so that the uninstallation can be typed again."""
    monkeypatch.setattr(sets, "GONE_WITHIN_S", 5.0)
    space.apply(space.map("a"))
    held = {"metadata": {"finalizers": ["example.com/held", "example.com/too"]}}
    space.client.send(calls.merge_patch(CONFIG_MAPS, "a", held, space.namespace))
    with pytest.raises(InstallError) as raised:
        space.remove()
    what = f"ConfigMap {space.namespace}/a is being deleted and does not go"
    assert raised.value.message == f"{what}: example.com/held, example.com/too"
    assert space.clock.monotonic() == 5
    assert len(space.sets.installed("fruit")) == 1
    let_go = calls.merge_patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, space.namespace)
    space.client.send(let_go)
    assert space.remove() == {}


def test_owners_are_sets_or_nobody(space: OwnNamespace) -> None:
    """Of what exists alone."""
    space.apply(space.map("a"))
    space.create(CONFIG_MAPS, "theirs", space.namespace)
    (inventory,) = space.sets.installed("fruit")
    ours, theirs, absent = (Identity("", "ConfigMap", space.namespace, name) for name in ("a", "theirs", "absent"))
    unserved = Identity("fruit.example.com", "Apple", "", "it")
    assert space.sets.owners((ours, theirs, absent, unserved)) == {ours: inventory.id, theirs: ""}
    assert space.sets.read(absent) is None
    assert space.sets.read(unserved) is None


LABELS = {"app": "web"}
AVAILABLE = {"type": "Available", "status": "True", "reason": "R", "message": "m"}
READY = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}


def deployment(namespace: str, name: str = "web") -> JSON:
    """A Deployment of one pod."""
    pod = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "registry.example/web"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": pod}
    return made(DEPLOYMENTS, name, namespace, spec=spec)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        pytest.param({**READY, "conditions": [AVAILABLE]}, "", id="healthy"),
        pytest.param(
            {**READY, "conditions": [{**AVAILABLE, "type": "Progressing", "reason": "ReplicaSetUpdated"}]},
            "waiting on Deployment.apps {ns}/web, which is not available",
            id="nobody says whether it is available",
        ),
        pytest.param(
            {**READY, "conditions": [{**AVAILABLE, "status": "False"}]},
            "waiting on Deployment.apps {ns}/web, which is not available",
            id="it rolls out, and is not available",
        ),
        pytest.param({**READY, "replicas": 0, "conditions": [AVAILABLE]}, "no pod yet", id="no pod"),
        pytest.param({}, "observed generation 0 of 1", id="nobody has looked at it"),
    ],
)
def test_what_is_not_healthy_in_time_is_named(space: OwnNamespace, status: JSON, says: str) -> None:
    """By the rules for a release; a workload alone is waited for."""
    wanted = deployment(space.namespace)
    space.apply(space.map("a"), wanted)
    if status:
        call = calls.merge_patch(DEPLOYMENTS, "web", {"status": status}, space.namespace, subresource="status")
        space.client.send(call)
    if not says:
        installing.wait(space.client, space.sets, space.clock, (space.map("a"), wanted), timeout_s=0)
        return
    with pytest.raises(InstallError) as raised:
        installing.wait(space.client, space.sets, space.clock, (space.map("a"), wanted), timeout_s=3)
    assert raised.value.message.startswith("after 3 s: ")
    assert says.format(ns=space.namespace) in raised.value.message
    assert space.clock.monotonic() == 3


WAITING = {"name": "c", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param(
            {"containerStatuses": [{**WAITING, "state": {"waiting": {"reason": "ErrImagePull", "message": "denied"}}}]},
            "ErrImagePull: denied",
            id="a container waits",
        ),
        pytest.param(
            {"containerStatuses": [{**WAITING, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
            id="and does not say why",
        ),
        pytest.param(
            {
                "containerStatuses": [
                    {
                        **WAITING,
                        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
                        "lastState": {"terminated": {"exitCode": 2, "message": "usage: x\nerror: no such flag\n"}},
                    }
                ]
            },
            "CrashLoopBackOff: back-off 40s; it ended with code 2: error: no such flag",
            id="what it said as it ended",
        ),
        pytest.param(
            {
                "containerStatuses": [
                    {
                        **WAITING,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 137}},
                    }
                ]
            },
            "CrashLoopBackOff; it ended with code 137",
            id="it was killed",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "Initialized", "status": "True", "message": "all is well"},
                    {"type": "Ready", "status": "False"},
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"},
                ],
            },
            "Unschedulable: no node",
            id="no node takes it",
        ),
        pytest.param({"phase": "Pending"}, "Pending", id="nobody has looked at it"),
    ],
)
def test_pods_say_why_their_deployment_is_not_available(space: OwnNamespace, status: JSON, words: str) -> None:
    """Those of its labels alone."""
    wanted = deployment(space.namespace)
    space.apply(wanted)
    spec = wanted["spec"]["template"]["spec"]
    for name, labels in (("web-1", LABELS), ("other", {"app": "other"})):
        pod = made(PODS, name, space.namespace, spec=spec)
        pod["metadata"]["labels"] = labels
        space.client.send(calls.create(PODS, pod))
        space.client.send(calls.merge_patch(PODS, name, {"status": status}, space.namespace, subresource="status"))
    with pytest.raises(InstallError) as raised:
        installing.wait(space.client, space.sets, space.clock, (wanted,), timeout_s=0)
    assert raised.value.message.partition("\n")[2] == f"pod web-1: {words}"


def test_a_cluster_is_observed_before_an_installation(space: OwnNamespace) -> None:
    """Its version and ports, who keeps its definitions, and Deployments that have the component's name, anywhere."""
    before = installing.server(space.client, space.sets)
    assert before.version >= (1, 29)
    assert {"apps", "config.openshift.io"} <= before.groups
    ports = [{"name": "https", "port": 7443, "protocol": "TCP"}]
    labels = {"kubernetes.io/service-name": "kubernetes"}
    for marks, also in ((labels, (7443,)), ({"kubernetes.io/service-name": "web"}, ())):
        each = made(SLICES, "of-a-test", "default", addressType="IPv4", endpoints=[], ports=ports)
        each["metadata"]["labels"] = marks
        space.client.send(calls.create(SLICES, each))
        seen = installing.server(space.client, space.sets).api_ports
        space.client.send(calls.delete(SLICES, "of-a-test", "default"))
        assert seen == tuple(sorted((*before.api_ports, *also)))
    for name in (OPERATOR.deployment, "another"):
        space.client.send(calls.create(DEPLOYMENTS, deployment(space.namespace, name)))
    found = installing.state(space.client, space.sets, component=OPERATOR, objects=(), cluster=before)
    image = "registry.example/web"
    assert [each for each in found.workloads if each.namespace == space.namespace] == [
        Workload(namespace=space.namespace, name=OPERATOR.deployment, image=image, replicas=1, part_of="")
    ]
    assert found.owners[CLUSTER_VERSION] == ""
    assert (found.version, found.groups, found.api_ports) == (before.version, before.groups, before.api_ports)


OPTIONS = Options(
    image="registry.example/runup@sha256:" + "5" * 64, namespace="set by a test", platform=Platform.KUBERNETES
)


def test_an_installation_leaves_what_others_made(space: OwnNamespace) -> None:
    """And says so; what speaks against it is said before anything is written."""
    options = replace(OPTIONS, namespace=space.namespace)
    objects = (made(NAMESPACES, space.namespace), space.map("a"))
    known = Cluster(version=(1, 34), groups=frozenset())

    def install(cluster: Cluster, **choices: bool) -> dict[str, str]:
        return space.results_of(
            lambda on_done: installing.install(
                space.client,
                space.sets,
                space.clock,
                component=UPDATE_STATUS,
                objects=objects,
                options=options,
                observed_cluster=cluster,
                manner=Manner(**choices),
                on_done=on_done,
            )
        )

    with pytest.raises(InstallError, match=r"^the cluster is Kubernetes 1\.28; 1\.29 is the oldest"):
        install(replace(known, version=(1, 28)))
    assert not space.exists(CONFIG_MAPS, "a", space.namespace)
    done = {f"Namespace {space.namespace}": str(Outcome.LEFT), "ConfigMap a": "created"}
    assert install(known, dry_run=True) == done
    assert space.sets.installed("update-status") == ()
    assert install(known) == done
    (inventory,) = space.sets.installed("update-status")
    assert inventory.data == {"version": "1.2.3", "image": OPTIONS.image, "platform": "kubernetes"}
    removed = space.results_of(
        lambda on_done: installing.uninstall(space.sets, UPDATE_STATUS, None, on_done, definitions=False, dry_run=False)
    )
    assert removed == {"ConfigMap a": "deleted"}


def test_a_certificate_of_our_own_is_kept_while_it_is_good(space: OwnNamespace) -> None:
    """Made next to the first account; none without a Service, and none where somebody else makes it."""
    account = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
    service = Resource(group="", version="v1", kind="Service", plural="services", namespaced=True)
    objects = (
        space.map("a"),
        made(account, "it", space.namespace),
        made(service, "it", space.namespace, spec={"ports": [{"port": 443}]}),
    )
    own = replace(OPTIONS, namespace=space.namespace, certificates=Certificates.OWN)

    def applied(options: Options, *objects: JSON) -> tuple[JSON, ...]:
        return installing.install(
            space.client,
            space.sets,
            space.clock,
            component=KERNEL_MODULES,
            objects=objects,
            options=options,
            observed_cluster=Cluster(version=(1, 34), groups=frozenset()),
            manner=Manner(),
            on_done=space.done.append,
        )

    assert [each["kind"] for each in applied(replace(own, certificates=Certificates.SERVICE_CA), *objects)] == [
        "ConfigMap",
        "ServiceAccount",
        "Service",
    ]
    assert [each["kind"] for each in applied(own, *objects[:2])] == ["ConfigMap", "ServiceAccount"]
    first = applied(own, *objects)
    assert [each["kind"] for each in first] == ["ConfigMap", "Secret", "ServiceAccount", "Service"]
    assert first[1]["metadata"]["name"] == "kernel-module-preflight-serving-cert"
    assert applied(own, *objects)[1]["data"] == first[1]["data"]
    space.clock.jump(100 * 365 * 86_400)
    assert applied(own, *objects)[1]["data"] != first[1]["data"]


def test_the_operator_of_a_plain_cluster_gets_a_cluster_version(space: OwnNamespace) -> None:
    """With a separate random name, once; what preflights left goes when it is uninstalled."""
    options = replace(OPTIONS, namespace=space.namespace)
    before = space.exists(VERSIONS, "version")

    def install(options: Options) -> dict[str, str]:
        return space.results_of(
            lambda on_done: installing.install(
                space.client,
                space.sets,
                space.clock,
                component=OPERATOR,
                objects=(space.map("a"),),
                options=options,
                observed_cluster=Cluster(version=(1, 34), groups=frozenset()),
                manner=Manner(take_over=True),
                on_done=on_done,
            )
        )

    assert install(replace(options, platform=Platform.OPENSHIFT)) == {"ConfigMap a": "created"}
    first = "unchanged" if before else "created"
    assert install(options) == {"ConfigMap a": "unchanged", "ClusterVersion version": first}
    assert install(options)["ClusterVersion version"] == "unchanged"
    numbers = {installing.first_cluster_version()["spec"]["clusterID"] for _ in range(2)}
    assert {len(number) for number in numbers} == {36}
    assert len(numbers) == 2
    space.create(ROLES, "cluster-version-operator-preflight", rules=[])
    removed = space.results_of(
        lambda done: installing.uninstall(space.sets, OPERATOR, space.namespace, done, definitions=False, dry_run=False)
    )
    assert removed == {"ConfigMap a": "deleted", "ClusterRole cluster-version-operator-preflight": "deleted"}


@pytest.mark.slow
def test_61_runs_of_update_policies_do_not_hold_their_definition(space: OwnNamespace) -> None:
    """The controller is removed as well, so the uninstallation removes its finalizer, and no other one."""
    file = DEPLOYED / "update-policy" / "01_updateruns.crd.yaml"
    space.apply(document(file), component="update-policy")
    runs = resource_of(UpdateRun)
    target = {"version": "5.1.0", "image": "example.com/release@sha256:" + "5" * 64}
    names = [f"{space.namespace}-{each}" for each in "ab"]
    for name, finalizers in zip(names, ([FINALIZER], [FINALIZER, "example.com/other"]), strict=True):
        body = made(runs, name, spec={"target": target})
        eventually(lambda body=body: was_created(space, runs, body), "the kind is served")
        space.client.send(calls.merge_patch(runs, name, {"metadata": {"finalizers": finalizers}}))

    def uninstall(**choices: bool) -> dict[str, str]:
        chosen = {"definitions": True, "dry_run": False, **choices}
        return space.results_of(
            lambda done: installing.uninstall(space.sets, UPDATE_POLICY, space.namespace, done, **chosen)
        )

    uninstall(dry_run=True)
    assert space.client.send(calls.get_raw(runs, names[0]))["metadata"]["finalizers"] == [FINALIZER]
    with pytest.raises(InstallError, match="does not go"):
        uninstall()
    assert not space.exists(runs, names[0])
    assert space.client.send(calls.get_raw(runs, names[1]))["metadata"]["finalizers"] == ["example.com/other"]
    space.client.send(calls.merge_patch(runs, names[1], {"metadata": {"finalizers": None}}))
    uninstall()


def was_created(space: OwnNamespace, resource: Resource, body: JSON) -> bool:
    """Whether an object was created: its kind may not be served yet."""
    try:
        space.client.send(calls.create(resource, body))
    except NotFound:
        return False
    return True


def test_which_installation_is_meant(space: OwnNamespace) -> None:
    """Nothing is removed by a guess."""

    def uninstall(namespace: str | None, **choices: bool) -> dict[str, str]:
        chosen = {"definitions": False, "dry_run": False, **choices}
        return space.results_of(
            lambda done: installing.uninstall(space.sets, KERNEL_MODULES, namespace, done, **chosen)
        )

    for namespace, definitions in ((None, False), (space.namespace, False), (space.namespace, True)):
        with pytest.raises(InstallError) as raised:
            uninstall(namespace, definitions=definitions)
        assert raised.value.message == (
            "kernel-modules is not installed by `runup install`: "
            "no namespace has a ConfigMap runup-install-kernel-modules"
        )
    other = f"{space.namespace}-other"
    space.create(NAMESPACES, other)
    space.apply(space.map("a"), component="kernel-modules")
    with pytest.raises(InstallError) as raised:
        uninstall(other)
    assert raised.value.message == f"kernel-modules is not installed in namespace {other}; it is in {space.namespace}"
    parent = space.stored("runup-install-kernel-modules")
    metadata = {key: parent["metadata"][key] for key in ("name", "labels", "annotations")}
    for name in (metadata["name"], "of-another-name"):
        body = {**parent, "metadata": {**metadata, "name": name, "namespace": other}}
        space.client.send(calls.create(CONFIG_MAPS, body))
    with pytest.raises(InstallError) as raised:
        uninstall(None)
    assert raised.value.message == (
        f"kernel-modules is installed in namespaces {space.namespace}, {other}: name one with --namespace"
    )
    assert uninstall(space.namespace) == {"ConfigMap a": "deleted"}
    assert uninstall(other) == {}
    space.client.send(calls.delete(NAMESPACES, other))


def test_who_may_not_list_deployments_cannot_tell_whether_another_operator_runs(server: Server) -> None:
    """That is said about the operator, which would fight with it; the others end with the server's words."""
    nobody = replace(config.load(str(server.kubeconfig)), headers=(("Impersonate-User", "nobody"),))
    with SyncClient(nobody) as client:
        ours = ObjectSets(server.client, ManualClock(), tool_version="1.2.3")
        known = Cluster(version=(1, 34), groups=frozenset())
        found = installing.state(client, ours, component=OPERATOR, objects=(), cluster=known)
        assert (found.workloads, found.user_reads_workloads) == ((), False)
        with pytest.raises(Forbidden):
            installing.state(client, ours, component=UPDATE_STATUS, objects=(), cluster=known)
