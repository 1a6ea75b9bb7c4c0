"""`python -m bench.standin --kubeconfig FILE`: who answers a release's workloads and operators at once, for the bench.

A process and a client of its own, so that its requests and its time are not the operator's. Deployments, DaemonSets and
Jobs are done as soon as they are seen; a ClusterOperator is at the version of the Deployment that reports it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from bench.release_payload import REPORTS
from kubekit.api.meta_v1 import NamespacedName, Object, key_of
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.whole_v1 import WholeDeployment, WholeJob
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Conflict, KubeError, NotFound
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.watch import Reflector
from runup.api.config_v1 import ClusterOperator

AGENT = "bench-standin/1"
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
DAEMON_SETS = Resource(group="apps", version="v1", kind="DaemonSet", plural="daemonsets", namespaced=True)
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
OPERATORS = resource_of(ClusterOperator)

_Work = Callable[[], Any]


class StandIn:
    """Answers what it sees, each object when it changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = SystemClock()
        self._deployments: Cache[WholeDeployment] = Cache(WholeDeployment)
        self._daemon_sets: Cache[WholeDeployment] = Cache(WholeDeployment)
        self._jobs: Cache[WholeJob] = Cache(WholeJob)
        self._operators: Cache[ClusterOperator] = Cache(ClusterOperator)
        # By what is worked on, so that two changes of one object are never answered at once.
        self._waiting: dict[tuple[str, NamespacedName], None] = {}
        self._some = asyncio.Event()

    async def run(self) -> None:
        """Answer until cancelled."""
        watched: tuple[tuple[Cache[Any], Resource], ...] = (
            (self._deployments, DEPLOYMENTS),
            (self._daemon_sets, DAEMON_SETS),
            (self._jobs, JOBS),
            (self._operators, OPERATORS),
        )
        async with asyncio.TaskGroup() as group:
            for cache, resource in watched:
                cache.add_listener(self._listener(resource.kind))
                reflector = Reflector(self._client, cache.kind, cache, clock=self._clock, resource=resource)
                group.create_task(reflector.run())
            for _ in range(4):
                group.create_task(self._work())

    def _listener(self, kind: str) -> Callable[[str, Object | None, Object | None], None]:
        def changed(_change: str, _old: Object | None, new: Object | None) -> None:
            if new is not None:
                self._waiting[kind, key_of(new)] = None
                self._some.set()

        return changed

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._some.clear()
                await self._some.wait()
            kind, key = next(iter(self._waiting))
            del self._waiting[kind, key]
            try:
                await self._answer(kind, key)
            except (Conflict, NotFound):
                continue  # the next event brings it again
            except KubeError:
                await self._clock.sleep(0.2)
                self._waiting[kind, key] = None

    async def _answer(self, kind: str, key: NamespacedName) -> None:
        if kind == "Deployment" and (deployment := self._deployments.get(key)):
            if deployment.status.observed_generation != deployment.metadata.generation:
                await self._patch(DEPLOYMENTS, deployment, self._available(deployment))
            await self._report((deployment.metadata.labels or {}).get(REPORTS, ""))
        elif kind == "DaemonSet" and (found := self._daemon_sets.get(key)):
            if found.status.observed_generation != found.metadata.generation:
                await self._patch(DAEMON_SETS, found, self._everywhere(found))
        elif kind == "Job" and (job := self._jobs.get(key)):
            if not job.status.succeeded:
                await self._patch(JOBS, job, self._complete())
        elif kind == "ClusterOperator":
            await self._report(key.name)

    async def _report(self, name: str) -> None:
        """Say of the ClusterOperator what its Deployment is at; nothing while one of both is not there."""
        operator = self._operators.get(NamespacedName("", name))
        reporting = [d for d in self._deployments.all() if (d.metadata.labels or {}).get(REPORTS) == name]
        if not name or operator is None or not reporting:
            return
        version = _version(reporting[0])
        if any(each.name == "operator" and each.version == version for each in operator.status.versions):
            return
        conditions = (("Available", "True"), ("Progressing", "False"), ("Degraded", "False"), ("Upgradeable", "True"))
        status = {
            "versions": [{"name": "operator", "version": version}],
            "conditions": [
                {"type": kind, "status": value, "reason": "AsExpected", "lastTransitionTime": self._now()}
                for kind, value in conditions
            ],
        }
        await self._patch(OPERATORS, operator, status)

    async def _patch(self, resource: Resource, obj: Object, status: dict[str, Any]) -> None:
        metadata = obj.metadata
        await self._client.send(
            calls.merge_patch(
                resource,
                metadata.name,
                {"status": status},
                metadata.namespace,
                subresource="status",
                field_manager=AGENT,
            )
        )

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _available(self, deployment: WholeDeployment) -> dict[str, Any]:
        pods = deployment.spec.replicas
        good = (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
        moment = {"lastTransitionTime": self._now(), "lastUpdateTime": self._now()}
        return {
            "observedGeneration": deployment.metadata.generation,
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), pods),
            "conditions": [{"type": kind, "status": "True", "reason": reason, **moment} for kind, reason in good],
        }

    def _everywhere(self, found: Object) -> dict[str, Any]:
        counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
        return {
            "observedGeneration": found.metadata.generation,
            **dict.fromkeys((*counts, "numberAvailable"), 3),
            "numberMisscheduled": 0,
        }

    def _complete(self) -> dict[str, Any]:
        moment = {"lastTransitionTime": self._now(), "lastProbeTime": self._now(), "status": "True"}
        conditions = [{"type": kind, **moment} for kind in ("SuccessCriteriaMet", "Complete")]
        ended = {"startTime": self._now(), "completionTime": self._now()}
        return {**ended, "succeeded": 1, "conditions": conditions, "uncountedTerminatedPods": {}}


def _version(deployment: WholeDeployment) -> str:
    container = deployment.spec.template["spec"]["containers"][0]
    return next((str(each["value"]) for each in container["env"] if each["name"] == "RELEASE_VERSION"), "")


async def _serve(kubeconfig: Path) -> None:
    async with Client(config.load(str(kubeconfig)), clock=SystemClock(), user_agent=AGENT) as client:
        await StandIn(client).run()


def main() -> None:
    """Until killed."""
    parser = argparse.ArgumentParser(prog="bench.standin")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    uvloop.run(_serve(parser.parse_args().kubeconfig))


if __name__ == "__main__":
    main()
