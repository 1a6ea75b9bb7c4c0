"""An API server with a healthy cluster, its policy's kinds, and a controller whose passes a test makes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from bench.hostile.faulty_api import Fault, faulty_api
from msgspec.structs import replace
from tests.documents import document
from tests.servers import CLUSTER_VERSIONS, CRD, CRDS, Server, eventually, serve

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import timestamp
from runup.advice.decide.graph import Graph
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.update_policy_v1alpha1 import UpdateApproval, UpdateCalendar, UpdatePolicy, UpdateRun
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.process.names import OPERATOR_NAMESPACE
from runup.report.report import FORMAT, Report, ReportedRisk
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.metrics import Metrics
from runup.rollout.control.observe import ClusterInputs, read_cluster
from runup.rollout.decide.updaters import FIELD_MANAGER

FOLDER = Path(__file__).parents[3] / "deploy" / "update-policy"
POLICIES, RUNS, CALENDARS = resource_of(UpdatePolicy), resource_of(UpdateRun), resource_of(UpdateCalendar)
OPERATORS = resource_of(ClusterOperator)
OLD, NEW, OTHER = (f"example.com/release@sha256:{digit * 64}" for digit in "159")
OPEN_GATES = {"forecast": "Ignore", "health": {"settle": "1s"}}
CORE = {
    kind: Resource(group="", version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=kind == "ConfigMap")
    for kind in ("Namespace", "Node", "ConfigMap")
}


def conditions(since: str, **statuses: str) -> list[dict[str, str]]:
    """Conditions of an object."""
    fields = {"reason": "AsExpected", "message": "", "lastTransitionTime": since}
    return [{"type": type_, "status": status, **fields} for type_, status in statuses.items()]


class World:
    """The cluster of a test."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = server.client
        self.since = timestamp(SystemClock().now() - timedelta(hours=2))
        # By how much the cluster's time is ahead of the real one.
        self.ahead = timedelta()
        self.graph: Graph | str = "no answer"
        self.metrics = Metrics()

    def create(self, resource: Resource, name: str, namespace: str = "", **fields: Any) -> None:
        """Creates an object with its status, unless it exists."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
        try:
            created = self.client.send(calls.create(resource, body))
        except AlreadyExists:
            return
        if "status" in fields:
            self.client.send(calls.replace(resource, {**created, "status": fields["status"]}, subresource="status"))

    def begin(self, **policy: Any) -> None:
        """A healthy cluster on 5.0.3 to which 5.1.0 is offered, with this policy and nothing of earlier tests."""
        self.ahead = timedelta()
        for resource in (RUNS, POLICIES, CALENDARS):
            for each in self.client.send(calls.list_raw(resource)).items:
                name = each["metadata"]["name"]
                self.client.send(calls.merge_patch(resource, name, {"metadata": {"finalizers": None}}))
                with suppress(NotFound):
                    self.client.send(calls.delete(resource, name))
        self.heal()
        self.create(POLICIES, "cluster", spec={"target": {"follow": "Minor"}, "gates": OPEN_GATES, **policy})

    def heal(self) -> None:
        """A healthy cluster on 5.0.3 to which 5.1.0 is offered."""
        self.create(CORE["Node"], "a", status={"conditions": conditions(self.since, Ready="True")})
        self.create(
            OPERATORS,
            "etcd",
            spec={},
            status={"conditions": conditions(self.since, Available="True", Degraded="False")},
        )
        self.create(CORE["Namespace"], OPERATOR_NAMESPACE)
        self.set_status()

    def set_status(self, *history: dict[str, Any], spec: dict[str, Any] | None = None, **changes: Any) -> None:
        """Replaces ClusterVersion; the newest entry of the history is what the cluster should run."""
        old = {"state": "Completed", "version": "5.0.3", "image": OLD, "verified": True}
        entries = [*history, {**old, "startedTime": self.since, "completionTime": self.since}]
        status = {
            "availableUpdates": [{"version": "5.1.0", "image": NEW}],
            "desired": {"version": entries[0]["version"], "image": entries[0]["image"]},
            "history": entries,
            "conditions": conditions(self.since, Failing="False", Progressing="False", RetrievedUpdates="True"),
        }
        self.server.set_cluster_version(spec=spec or {}, status=status | changes)

    def update(self, state: str, image: str = NEW, version: str = "5.1.0") -> None:
        """The operator records the requested update."""
        completion = self.since if state == "Completed" else None
        entry = {"state": state, "version": version, "image": image, "verified": True}
        entries = [{**entry, "startedTime": self.since, "completionTime": completion}]
        entries += self.server.cluster_version()["status"]["history"][-1:]
        # A merge patch would lose the null of an update that is not complete.
        fields = {"history": entries, "desired": {"version": version, "image": image}}
        operations = [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in fields.items()]
        self.client.send(calls.json_patch(CLUSTER_VERSIONS, "version", operations, subresource="status"))

    def report(self, *risks: ReportedRisk, image: str = NEW, version: str = "5.1.0", source: str = "5.0.3") -> None:
        """A preflight of 5.1.0, or of another version, is complete, and found these risks."""
        now = SystemClock().now() + self.ahead
        report = Report(
            format=FORMAT,
            preflight_id="p",
            source_version=source,
            target_version=version,
            target_image=image,
            execution_status="completed",
            observed_time=now,
            risks=risks,
        )
        body = stored_reports.config_map(History(reports=(report,)), OPERATOR_NAMESPACE)
        self.client.send(calls.apply(CORE["ConfigMap"], body, field_manager="test", force=True))
        preflight = {"PreflightRunning": "True", "PreflightCompleted": "True", "PreflightFailed": "False"}
        health = {"Failing": "False", "Progressing": "False", "RetrievedUpdates": "True"}
        found = conditions(self.since, **health, **preflight)
        published = [
            {
                "name": risk.name,
                "message": risk.message,
                "url": "https://example.com",
                "matchingRules": [{"type": "Always"}],
            }
            | {"conditions": conditions(self.since, Applies=risk.applies)}
            for risk in risks
        ]
        update = {"release": {"version": version, "image": image}, "risks": published}
        update |= {"conditions": conditions(self.since, Recommended="False")}
        self.server.patch_status(
            conditions=found,
            availableUpdates=[] if risks else [{"version": version, "image": image}],
            conditionalUpdates=[update] if risks else [],
            observedGeneration=self.server.cluster_version()["metadata"]["generation"],
        )

    def verify_approvers(self) -> None:
        """Creates the admission policy that verifies the authors of approvals."""
        for body in list(yaml.safe_load_all((FOLDER / "05_approvals.yaml").read_text(encoding="utf-8")))[:2]:
            plural = (
                "validatingadmissionpolicies" if "Binding" not in body["kind"] else "validatingadmissionpolicybindings"
            )
            group = "admissionregistration.k8s.io"
            resource = Resource(group, "v1", body["kind"], plural, namespaced=False)
            self.client.send(calls.apply(resource, body, field_manager="tests"))
        # An approval counts if it was created in a later second.
        SystemClock().pause(1.1)

    def approve(self, name: str, digest: str) -> None:
        """Approves the images with this digest in the name of this client's user, as a manifest may."""
        review = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
        body = {"apiVersion": review.api_version, "kind": review.kind}
        user = self.client.send(calls.create(review, body))["status"]["userInfo"]["username"]
        spec = {"run": self.run().metadata.name, "gate": "cab", "approvedBy": user, "imageDigests": [digest]}
        self.create(resource_of(UpdateApproval), name, spec=spec)

    def writes(self, kind: str, *, subresource: str = "") -> int:
        """The number of changes of objects of this kind that were stored for the controller, without dry runs."""
        path = f"/{kind}/[^/?]+" + (f"/{subresource}" if subresource else "")
        log = self.server.kubeconfig.parent / "audit.log"
        events = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        return sum(
            each["verb"] in ("create", "update", "patch", "delete")
            and re.search(rf"{path}(\?|$)", each["requestURI"]) is not None
            and f"fieldManager={FIELD_MANAGER}" in each["requestURI"]
            and "dryRun" not in each["requestURI"]
            and each.get("responseStatus", {}).get("code", 200) < 300
            for each in events
        )

    def observe(self) -> ClusterInputs:
        """The observed state of the controller; this server has no Thanos, so no alerts fire."""
        inputs = read_cluster(self.client, None, with_policy=True)
        return replace(inputs, objects=replace(inputs.objects, alerts=()), now=inputs.now + self.ahead)

    def passes(
        self, number: int = 1, *, leader: str = "a", clock: SystemClock | None = None, fault: Fault | None = None
    ) -> float:
        """Makes passes of a new controller, with its writes through `fault`; returns the seconds to the next one."""

        async def read_graph(_: ClusterVersion, _nodes: Sequence[Node]) -> Graph | str:
            return self.graph

        async def make() -> float:
            async with AsyncExitStack() as opened:
                config = self.client.config
                if fault is not None:
                    api = await opened.enter_async_context(faulty_api(config))
                    api.share, api.faults, config = 1.0, (fault,), api.config
                client = await opened.enter_async_context(Client(config))
                controller = PolicyController(
                    client,
                    clock or SystemClock(),
                    self.observe,
                    leader=leader,
                    graph=read_graph,
                    metrics=self.metrics,
                )
                delays = [await controller.make_pass() for _ in range(number)]
                return delays[-1]

        return asyncio.run(make())

    def run(self) -> UpdateRun:
        """The only run."""
        [found] = self.client.list_all(UpdateRun)[0]
        return found

    def policy(self) -> UpdatePolicy:
        """The policy as it is stored."""
        return codec.convert(UpdatePolicy, self.client.send(calls.get_raw(POLICIES, "cluster")))

    def desired(self) -> dict[str, Any]:
        """The requested update."""
        found: dict[str, Any] = self.server.cluster_version()["spec"].get("desiredUpdate") or {}
        return found

    def reason(self, type_: str = "GatesOpen") -> str:
        """The reason of a condition of the run."""
        [condition] = [each for each in self.run().status.conditions if each.type == type_]
        return condition.reason


@contextmanager
def world(folder: Path, *, update_policy: bool = True, unknown: str = "") -> Iterator[World]:
    """A server that serves every kind that the controller reads, or all but those of the component update-policy.

    `unknown` is a field of desiredUpdate that it does not know.
    """
    serving = serve(folder, "CustomNoUpgrade", unknown=unknown)
    server = next(serving)
    files = [*(FOLDER.glob("01_*.crd.yaml") if update_policy else ()), *CRDS.glob("*clusteroperators.crd.yaml")]
    for file in [*files, *CRDS.glob("*machineconfigpools.crd.yaml")]:
        server.client.send(calls.create(CRD, document(file)))
    kinds = (RUNS, POLICIES, OPERATORS) if update_policy else (OPERATORS,)
    eventually(lambda: _is_served(server, kinds), "the kinds are served")
    found = World(server)
    yield found
    next(serving, None)


def _is_served(server: Server, kinds: tuple[Resource, ...]) -> bool:
    try:
        return all(server.client.send(calls.list_raw(each)) is not None for each in kinds)
    except NotFound:
        return False
