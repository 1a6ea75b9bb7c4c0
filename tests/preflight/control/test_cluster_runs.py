"""A preflight as a Job of the cluster: how it is followed, what is reported of it, and what is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.preflight.decide.test_kept_reports import report
from tests.servers import Server

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, Event, Pod, ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import ManualClock
from runup.api.preflight_reads_v1 import Right
from runup.preflight.control import cluster_runs
from runup.preflight.control.cluster_runs import ClusterRun
from runup.preflight.decide import cluster_run
from runup.preflight.decide.cluster_run import CONFIG_MAP, JOB, NAMESPACE, Checking, Run
from runup.preflight.decide.preflight_deployment import report_map
from runup.preflight.decide.service_account import ROLE
from runup.process.names import NOBODY
from runup.process.plan import Apply
from runup.report.report import FILE_NAME, encode

JSON = dict[str, Any]
PODS = resource_of(Pod)
ID = "preflight-1700000000-00000000aa"
RUN = Run(
    id=ID, checking=Checking(image="registry.example/runup"), rights=(), started=ManualClock().now(), timeout_s=10
)
CONTAINER = {"name": "preflight", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}


class Steps(ManualClock):
    """A clock that does the next of `steps` whenever somebody waits; `waits` are the seconds of each."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = list(steps)
        self.waits: list[float] = []

    def pause(self, seconds: float) -> None:
        """See `Clock.pause`."""
        self.waits.append(seconds)
        super().pause(seconds)
        if self.steps:
            self.steps.pop(0)()


class Scene:
    """A run in the cluster, with what its Job's controller and its process would write."""

    def __init__(self, client: SyncClient) -> None:
        self.client = client
        self.notified: list[str] = []

    def start(self, *steps: Callable[[], object]) -> ClusterRun:
        """The run, started; `steps` happen while it is waited for."""
        self.clock = Steps(*steps)
        found = ClusterRun(self.client, RUN, self.clock, self.notified.append)
        found.start()
        return found

    def set_pod(self, **state: JSON) -> None:
        """The Job's pod with the state of its container."""
        capabilities = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        spec = {
            "containers": [{"name": "preflight", "image": "i", "securityContext": capabilities}],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        }
        metadata = {"name": "it", "namespace": NAMESPACE, "labels": {"job-name": RUN.name}}
        try:
            self.client.send(calls.get_raw(PODS, "it", NAMESPACE))
        except NotFound:
            self.client.send(calls.create(PODS, {"metadata": metadata, "spec": spec}))
        status = {"containerStatuses": [{**CONTAINER, "state": state}]} if state else {"phase": "Pending"}
        self.client.send(calls.merge_patch(PODS, "it", {"status": status}, NAMESPACE, subresource="status"))

    def report(self, text: str | None) -> None:
        """What the process writes."""
        data = {} if text is None else {FILE_NAME: text}
        metadata = {"name": report_map(ID), "namespace": NAMESPACE}
        self.client.send(calls.apply(CONFIG_MAP, {"metadata": metadata, "data": data}, field_manager="process"))

    def delete(self, resource: Resource, name: str) -> None:
        """Whatever became of it."""
        try:
            self.client.send(calls.delete(resource, name, NAMESPACE))
        except NotFound:
            return


@pytest.fixture
def scene(server: Server) -> Iterator[Scene]:
    """A cluster in which nothing is left afterwards."""
    found = Scene(server.client)
    yield found
    for resource, name in ((PODS, "it"), (CONFIG_MAP, report_map(ID))):
        found.delete(resource, name)
    cluster_runs.delete_all(server.client, cluster_run.deletions(RUN))


GOOD = encode(report(1, preflightID=ID)).decode()


def test_a_run_is_followed_to_its_report(scene: Scene) -> None:
    """Each thing that it waits for is reported once; a report that continues is no end."""
    going_on = encode(report(1, preflightID=ID, status="running")).decode()
    run = scene.start(
        lambda: scene.set_pod(waiting={"reason": "ErrImagePull", "message": "denied"}),
        lambda: scene.set_pod(waiting={"reason": "ImagePullBackOff", "message": "denied"}),
        lambda: scene.set_pod(running={"startedAt": "2026-01-01T00:00:00Z"}),
        lambda: scene.report(None),
        lambda: scene.report(going_on),
        lambda: scene.report(GOOD),
    )
    end = run.follow()
    assert (end.state, end.report) == ("reported", report(1, preflightID=ID))
    assert scene.notified == [
        "its pod starts",
        "its image could not be pulled (ErrImagePull): denied; make its registry or a mirror reachable for the nodes, "
        "or name another",
        "the checks run",
    ]
    assert scene.clock.waits == [0.5] * 6


@pytest.mark.parametrize(
    ("step", "says"),
    [
        pytest.param(
            lambda scene: scene.delete(JOB, RUN.name), "its Job was deleted by somebody else", id="its Job is deleted"
        ),
        pytest.param(
            lambda scene: scene.set_pod(terminated={"exitCode": 3, "reason": "Error", "message": "no such release"}),
            "the preflight ended with exit code 3: no such release",
            id="its process ends",
        ),
        pytest.param(lambda scene: scene.report("{"), "the report is not a JSON object", id="a report that is none"),
        pytest.param(
            lambda scene: scene.report(encode(report(1)).decode()), "belongs to another preflight", id="of another run"
        ),
    ],
)
def test_a_run_that_fails_says_why(scene: Scene, step: Callable[[Scene], object], says: str) -> None:
    """At once."""
    end = scene.start(lambda: step(scene)).follow()
    assert (end.state, end.report) == ("failed", None)
    assert says in end.text
    assert scene.clock.waits == [0.5]


def test_a_run_is_given_up_after_its_time(scene: Scene) -> None:
    """And some seconds in which its controller would have ended it; looks become rarer, and the last reason stays."""
    no_room = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: cpu"}

    def wait_for_room() -> None:
        scene.set_pod()
        status = {"status": {"conditions": [no_room]}}
        scene.client.send(calls.merge_patch(PODS, "it", status, NAMESPACE, subresource="status"))

    end = scene.start(wait_for_room, lambda: None, lambda: scene.delete(PODS, "it")).follow()
    assert (end.state, end.way_out) == ("failed", "raise --timeout, and start it again")
    assert end.message.startswith("it was not done within 10 s; before that: ")
    assert "0/3 nodes: cpu" in end.message
    assert scene.clock.waits == [0.5] * 40 + [2.0] * 3
    assert scene.notified[0] == "its pod starts"
    assert len(scene.notified) == 2


def test_a_server_that_is_away_is_waited_for() -> None:
    """The Job continues meanwhile; that it is away is reported once."""
    notified, clock = list[str](), Steps()
    with SyncClient(config.ClusterConfig(server="http://127.0.0.1:9")) as client:
        end = ClusterRun(client, RUN, clock, notified.append).follow()
    assert end.message.startswith("it was not done within 10 s; before that: the API server does not answer: ")
    assert len(notified) == 1
    assert notified[0].startswith("the API server does not answer: ")


@pytest.mark.parametrize("kind", [Pod, Event], ids=["a pod", "an event"])
def test_an_object_that_cannot_be_read_does_not_end_a_run(
    kind: type, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is reported once, and the report is read all the same."""
    list_all = scene.client.list_all

    def listed(asked: Any, *arguments: Any, **selectors: Any) -> Any:
        if asked is kind:
            raise DecodeError("it cannot be read")
        return list_all(asked, *arguments, **selectors)

    monkeypatch.setattr(scene.client, "list_all", listed)
    end = scene.start(*[lambda: None] * 12, lambda: scene.report(GOOD)).follow()
    assert (end.state, end.report) == ("reported", report(1, preflightID=ID))
    assert scene.notified == ["the state of its pod is unknown: it cannot be read"]


def test_what_a_run_made_is_removed_with_its_report(scene: Scene) -> None:
    """What is gone by then is no error."""
    run = scene.start()
    scene.report(GOOD)
    scene.delete(resource_of(ServiceAccount), RUN.name)
    assert run.remove() == ()
    for resource, name in ((JOB, RUN.name), (CONFIG_MAP, report_map(ID))):
        with pytest.raises(NotFound):
            scene.client.send(calls.get_raw(resource, name, NAMESPACE))
    assert run.remove() == ()


def test_what_cannot_be_removed_is_named(scene: Scene, server: Server) -> None:
    """All of it: one that is refused is no reason to leave the next."""
    scene.start()
    nobody = replace(config.load(str(server.kubeconfig)), headers=(("Impersonate-User", "nobody"),))
    with SyncClient(nobody) as client:
        left = ClusterRun(client, RUN, Steps(), scene.notified.append).remove()
    deletions = cluster_run.deletions(RUN)
    assert [line.partition(": ")[0] for line in left] == [
        f"{each.resource.kind} {each.key.name}" + (f" in namespace {NAMESPACE}" if each.key.namespace else "")
        for each in deletions
    ]
    assert all("forbidden" in line for line in left)
    assert scene.client.send(calls.get_raw(JOB, RUN.name, NAMESPACE))["metadata"]["name"] == RUN.name


def test_a_namespace_that_is_not_there_holds_nothing_to_read(scene: Scene) -> None:
    """Its Role is left out; anything else that is not found is an error."""
    away = replace(RUN, rights=(Right("", "pods", "not-there"), Right("", "nodes", "")))
    applies = (cluster_run.namespace_object(), *cluster_run.objects(away))
    cluster_runs.apply_all(scene.client, applies)
    assert scene.client.send(calls.get_raw(JOB, RUN.name, NAMESPACE))["metadata"]["labels"][cluster_run.RUN_LABEL] == ID
    with pytest.raises(NotFound):
        scene.client.send(calls.get_raw(ROLE, RUN.name, "not-there"))
    with pytest.raises(NotFound):
        cluster_runs.apply_all(
            scene.client,
            (Apply(resource=resource_of(ConfigMap), object={"metadata": {"name": "a", "namespace": "not-there"}}),),
        )


def test_what_a_server_serves(server: Server) -> None:
    """A group and version, not only a group; what pods run as hangs on OpenShift's constraints."""
    served = {each: cluster_runs.is_served(server.client, each) for each in ("apps/v1", "apps/v9", "fruit.example/v1")}
    assert served == {"apps/v1": True, "apps/v9": False, "fruit.example/v1": False}
    assert cluster_runs.user_of(server.client) == NOBODY
    assert not cluster_runs.has_monitoring(server.client)
    apples = Resource(group="fruit.example", version="v1", kind="Apple", plural="apples", namespaced=True)
    assert cluster_runs.labelled_metadata(server.client, apples, "a") == []
