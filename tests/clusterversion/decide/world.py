"""A tiny cluster for reconcile's tests: it applies plans to `Observed`, and plays the outside world on request.

The outside world is what is not ours: the API server's bookkeeping, the kubelet, the target's report, the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace as with_fields
from tests.factories import NOW, cluster_version, feature_gate

from kubekit.api import codec, conditions
from kubekit.api.core_v1 import ConfigMap, ContainerStatus, Pod, PodStatus
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.workloads_v1 import Deployment
from runup.advice.decide.graph import parse_graph
from runup.advice.decide.service import ServiceState
from runup.api.config_v1 import AcceptRisk, ClusterVersion, Release, Update
from runup.api.preflight_reads_v1 import Right
from runup.applying.decide.progress import ApplyReason, Loading, Progress
from runup.clusterversion.decide import reconcile
from runup.clusterversion.decide.observed import Observed, OperatorFacts, ReleaseCheck
from runup.clusterversion.decide.work import (
    ApplyRelease,
    LoadRelease,
    ReadImages,
    ReadRelease,
    ReadRights,
    RetrieveUpdates,
    VerifyRelease,
    Work,
)
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.deployment_steps import Trust
from runup.preflight.decide.outcome import BadReportSeen, ReportSeen
from runup.process.plan import Action, Apply, Delete, Event, PatchStatus, Plan
from runup.release.decide.payload import Payload
from runup.release.decide.release_metadata import ImageReferences, ReleaseMetadata
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedRisk

OWN = "quay.io/openshift-release-dev/ocp-release@sha256:" + "5" * 64
GATES = ("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks")


def image(version: str) -> str:
    """The image of a release of the test graph: its digest is made of the version's digits."""
    if version == "5.0.0":
        return OWN
    digits = "".join(character for character in version if character.isdigit())
    return "registry.example/release@sha256:" + (digits * 64)[:64]


GRAPH: dict[str, Any] = {
    "nodes": [{"version": v, "payload": image(v)} for v in ("5.0.0", "5.0.3", "5.1.0", "5.2.0", "5.3.0", "9.0.0")],
    "edges": [[0, 1], [1, 2], [2, 3], [3, 5]],
    "conditionalEdges": [
        {
            "edges": [{"from": "5.0.0", "to": "5.1.0"}],
            "risks": [
                {
                    "name": "SlowNodeDrain",
                    "message": "Draining takes long.",
                    "url": "https://example.com/slow",
                    "matchingRules": [{"type": "Always"}],
                }
            ],
        }
    ],
}


def risk(name: str = "DualStackIncompatible", **changes: Any) -> ReportedRisk:
    """A risk that a target reports."""
    return ReportedRisk(**{"name": name, "message": f"{name} it is.", "url": f"https://example.com/{name}"} | changes)


def release(version: str) -> Payload:
    """A release without a manifest."""
    references = ImageReferences(version, {})
    return Payload(metadata=ReleaseMetadata(version=version), image_references=references, manifests=(), checks=())


_UNLOADED = Loading(reason="RetrievePayload", error="no answer")


@dataclass
class World:
    """A 5.0.0 cluster with both gates open and the update service's graph at hand, unless told otherwise."""

    observed: Observed
    now: datetime = NOW
    trusted: bool = True
    registry: bool = True
    events: list[Event] = field(default_factory=list)
    plans: list[Plan[Work]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    counter: int = 1
    graph: dict[str, Any] = field(default_factory=lambda: GRAPH)
    finalizing: bool = False
    ran: list[type[Work]] = field(default_factory=list)
    applied: dict[str, Any] = field(default_factory=dict)
    # What every release calls its images, and what the checks of every target declare to read.
    images: dict[str, str] = field(default_factory=dict)
    rights: tuple[Right, ...] = (Right("", "nodes"), Right("apps", "deployments", "openshift-etcd"))

    @classmethod
    def new(cls, *, gates: tuple[str, ...] = GATES, place: dict[str, Any] | None = None, **status: Any) -> World:
        """The cluster before anybody asks for anything."""
        version = with_fields(
            cluster_version(**status), metadata=ObjectMeta(name="version", generation=1, resource_version="1")
        )
        where = preflight_deployment.PodSettings(namespace="openshift-cluster-version-operator", node_name="node-1")
        facts = OperatorFacts(
            release=Release(version="5.0.0", image=OWN),
            place=with_fields(where, **(place or {})),
            version_hash="hash-5.0.0",
        )
        observed = Observed(
            cluster_version=version,
            facts=facts,
            feature_gate=feature_gate(enabled=gates),
            admin_gates=ConfigMap(),
            admin_acks=ConfigMap(),
        )
        return cls(observed)

    # What an administrator does.

    def ask(self, desired: Update | None) -> World:
        """Patch spec.desiredUpdate."""
        version = self.observed.cluster_version
        spec = with_fields(version.spec, desired_update=desired)
        metadata = with_fields(version.metadata, generation=version.metadata.generation + 1)
        return self.change(cluster_version=with_fields(version, spec=spec, metadata=metadata))

    def applying(self) -> World:
        """From now on the operator applies releases; the worker does what a test says (`worker_says`)."""
        facts, version = self.observed.facts, self.observed.cluster_version
        own = Loading(payload=release(facts.release.version))
        metadata = with_fields(version.metadata, uid="uid-of-version")
        return self.change(
            cluster_version=with_fields(version, metadata=metadata),
            progress=Progress(),
            loads={facts.release.image: own},
        )

    def worker_says(self, **changes: Any) -> World:
        """Sets the worker's result for its request."""
        assert self.observed.progress is not None
        return self.change(progress=replace(self.observed.progress, **changes))

    def worker_completes(self) -> World:
        """All is applied, and is being kept."""
        return self.worker_says(completed=True, state=ApplyReason.RECONCILING, done=3, total=3, problems=())

    def ask_preflight(self, version: str = "5.2.0", **changes: Any) -> World:
        """`--mode=preflight --to=VERSION`."""
        return self.ask(Update(mode="Preflight", version=version, **changes))

    def accept(self, *names: str) -> World:
        """Accept risks by name, whatever else is asked for."""
        desired = self.observed.cluster_version.spec.desired_update or Update()
        return self.ask(with_fields(desired, accept_risks=tuple(AcceptRisk(name=name) for name in names)))

    # What the operator and the rest of the cluster do.

    def step(self) -> Plan[Work]:
        """One pass: reconcile, then carry the plan out."""
        plan = reconcile.reconcile(self.observed, now=self.now)
        self.plans.append(plan)
        self.carry_out(plan.actions)
        for work in plan.work:
            self.do_work(work)
        return plan

    def settle(self, limit: int = 20) -> World:
        """Passes until nothing is planned; fails where that never happens."""
        for _ in range(limit):
            if not self.step():
                return self
        raise AssertionError(f"still planning after {limit} passes: {self.plans[-1]}")

    def pass_time(self, seconds: float) -> World:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        return self

    def report(self, *risks: ReportedRisk, **changes: Any) -> World:
        """The target writes a report."""
        attempt = self.attempt_id
        _, _, target = self.deployment_env
        base: dict[str, Any] = {
            "format": FORMAT,
            "preflight_id": attempt,
            "source_version": "5.0.0",
            "target_version": target,
            "target_image": self.container_image,
            "execution_status": "completed",
            "observed_time": self.now,
            "checks": (ReportedCheck(name="DualStack", result="Applies" if risks else "Clear"),),
            "risks": risks,
        }
        return self.change(report=ReportSeen(preflight_id=attempt, content=Report(**base | changes), read_at=self.now))

    def bad_report(self, reason: str, message: str) -> World:
        """The target writes something that is no report."""
        return self.change(
            report=ReportSeen(preflight_id=self.attempt_id, content=BadReportSeen(reason, message), read_at=self.now)
        )

    def pod(self, **container: Any) -> World:
        """The kubelet reports a container of the preflight's pod."""
        status = ContainerStatus(name=preflight_deployment.NAME, **container)
        metadata = ObjectMeta(
            name="preflight-1", labels={"app": preflight_deployment.NAME}, creation_timestamp=self.now
        )
        return self.change(pods=(Pod(metadata=metadata, status=PodStatus(container_statuses=(status,))),))

    # What can be asked about it.

    @property
    def version(self) -> ClusterVersion:
        """ClusterVersion as stored."""
        return self.observed.cluster_version

    @property
    def attempt_id(self) -> str:
        """The ID on the Deployment."""
        assert self.observed.deployment is not None
        return self.observed.deployment.metadata.annotations[preflight_deployment.ID_ANNOTATION]

    @property
    def container_image(self) -> str:
        """The image that the Deployment runs."""
        assert self.observed.deployment is not None
        return self.observed.deployment.spec.template.spec.containers[0].image

    @property
    def deployment_env(self) -> tuple[str, str, str]:
        """ID, source and target version that the target is reported."""
        env = {item["name"]: item["value"] for item in self.applied["spec"]["template"]["spec"]["containers"][0]["env"]}
        return env["PREFLIGHT_ID"], env["PREFLIGHT_SOURCE_VERSION"], env["PREFLIGHT_TARGET_VERSION"]

    def condition(self, type_: str) -> tuple[str, str] | None:
        """Status and reason of a condition of ClusterVersion."""
        found = conditions.find(self.version.status.conditions, type_)
        return (found.status, found.reason) if found else None

    def message(self, type_: str) -> str:
        """The message of a condition of ClusterVersion."""
        found = conditions.find(self.version.status.conditions, type_)
        return found.message if found else ""

    def recommended(self, version: str) -> tuple[str, str] | None:
        """Status and reason of Recommended of a conditional update."""
        for update in self.version.status.conditional_updates:
            if update.release.version == version:
                found = conditions.find(update.conditions, "Recommended")
                return (found.status, found.reason) if found else None
        return None

    def risks(self, version: str) -> dict[str, tuple[str, str]]:
        """Name -> status and reason of Applies, of the risks of a conditional update."""
        for update in self.version.status.conditional_updates:
            if update.release.version == version:
                return {r.name: (r.conditions[0].status, r.conditions[0].reason) for r in update.risks}
        return {}

    @property
    def available(self) -> list[str]:
        """Versions in availableUpdates."""
        return [release.version for release in self.version.status.available_updates or ()]

    def change(self, **changes: Any) -> World:
        """Changes these fields of the observed state."""
        self.observed = replace(self.observed, **changes)
        return self

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Does to the cluster what a plan says."""
        for action in actions:
            _CARRY_OUT[type(action)](self, action)

    def do_work(self, work: Work) -> None:
        """Does one piece of work of a plan."""
        self.ran.append(type(work))
        match work:
            case RetrieveUpdates(query):
                graph = parse_graph(codec.encode(self.graph))
                self.change(
                    service=ServiceState(query=query, graph=graph, attempted_at=self.now, succeeded_at=self.now)
                )
            case LoadRelease(wanted):
                found = Loading(payload=release(wanted.version)) if self.registry else _UNLOADED
                self.change(loads={**self.observed.loads, wanted.image: replace(found, at=self.now)})
            case ApplyRelease(wanted, state):
                self.change(progress=Progress(wanted=wanted, state=state, version_hash=wanted.version, total=3))
            case VerifyRelease(asked) | ReadRelease(asked) | ReadRights(asked) | ReadImages(asked):
                check = self._look(work, self.observed.releases.get(asked, ReleaseCheck()))
                self.change(releases={**self.observed.releases, asked: check})
            case _:
                raise AssertionError(f"nobody does {work}")

    def _look(self, work: VerifyRelease | ReadRelease | ReadRights | ReadImages, check: ReleaseCheck) -> ReleaseCheck:
        match work:
            case VerifyRelease():
                trust, error = (Trust.VERIFIED, "") if self.trusted else (Trust.FAILED, "no signature")
                return replace(check, trust=trust, error=error, at=self.now)
            case ReadRights():
                return replace(check, rights=self.rights, rights_until=None)
            case ReadImages():
                return replace(check, images=self.images, images_until=None)
            case ReadRelease(asked):
                names = {image(v): v for v in ("5.0.3", "5.1.0", "5.2.0", "5.3.0", "9.0.0", "5.7.0")}
                found = names.get(asked, "") if self.registry else ""
                return replace(check, version=found, unreadable="" if found else "no answer", read_at=self.now)

    def apply_object(self, action: Apply) -> None:
        """Creates or changes an object."""
        self.log.append(f"apply {action.resource.kind}")
        kinds: dict[str, tuple[str, type[Any]]] = {
            "Deployment": ("deployment", Deployment),
            "ConfigMap": ("history", ConfigMap),
        }
        if action.resource.kind == "Pod":
            self.counter += 1
            pod = codec.convert(Pod, action.object)
            metadata = with_fields(pod.metadata, creation_timestamp=self.now, uid=f"uid-{self.counter}")
            self.change(check_pods=(*self.observed.check_pods, with_fields(pod, metadata=metadata)))
        if action.resource.kind not in kinds:
            return
        name, kind = kinds[action.resource.kind]
        found = getattr(self.observed, name)
        obj = codec.convert(kind, action.object)
        self.counter += 1
        created = found.metadata.creation_timestamp if found else self.now
        metadata = with_fields(obj.metadata, creation_timestamp=created, uid=f"uid-{self.counter}")
        self.change(**{name: with_fields(obj, metadata=metadata)})
        if kind is Deployment:
            self.applied = action.object

    def delete_object(self, action: Delete) -> None:
        """Deletes an object."""
        self.log.append(f"delete {action.resource.kind}")
        if action.resource.kind == "Deployment":
            self.change(deployment=None, pods=self.observed.pods if self.finalizing else (), report=None)
        elif action.resource.kind == "Pod":
            for name in ("pods", "check_pods"):
                left = tuple(pod for pod in getattr(self.observed, name) if pod.metadata.name != action.key.name)
                self.change(**{name: left})
        elif action.resource.kind == "ConfigMap":
            maps = tuple(name for name in self.observed.report_maps if name != action.key.name)
            self.change(report_maps=maps)

    def patch_status(self, action: PatchStatus) -> None:
        """Changes the status of ClusterVersion."""
        self.log.append("patch status")
        version = self.version
        assert action.resource_version == version.metadata.resource_version
        merged = codec.to_dict(version.status) | action.fields
        for name in action.gone:
            merged.pop(name, None)
        self.counter += 1
        metadata = with_fields(version.metadata, resource_version=str(self.counter))
        status = codec.convert(type(version.status), merged)
        self.change(cluster_version=with_fields(version, metadata=metadata, status=status))

    def record_event(self, event: Event) -> None:
        """Records an event."""
        self.log.append(f"event {event.reason}")
        self.events.append(event)


_CARRY_OUT: dict[type, Callable[[World, Any], None]] = {
    Apply: World.apply_object,
    Delete: World.delete_object,
    PatchStatus: World.patch_status,
    Event: World.record_event,
}
