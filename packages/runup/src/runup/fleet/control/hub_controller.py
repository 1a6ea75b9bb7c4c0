"""The controller of fleet updates on a hub: observes the hub, decides each FleetUpdate, and writes objects and status.

Objects are applied before the status is stored, so that a permit has ended before the status says so. Turns follow the
status as it is stored. Writes go through a client that refuses them without the lease.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.fleet.control.hub_metrics import Metrics
from runup.fleet.decide.hub_update.engine_objects import FLEET_UPDATE, PLACEMENT, REPLICA_SET
from runup.fleet.decide.hub_update.observation import HubInputs, observe
from runup.fleet.decide.hub_update.stages import HubOutcome, decide
from runup.process.leader_election import repeat_passes
from runup.process.plan import PatchStatus, Plan
from runup.process.plan_executor import Executor
from runup.process.threads import in_thread
from runup.rollout.control import policy_objects

JSON = dict[str, Any]
log = structlog.get_logger("fleet-update")
FIELD_MANAGER = "runup-fleet-update"
FLEETS = resource_of(FleetUpdate)
DECISIONS = Resource(
    group="cluster.open-cluster-management.io",
    version="v1beta1",
    kind="PlacementDecision",
    plural="placementdecisions",
    namespaced=True,
)
MANAGERS = Resource(
    group="operator.open-cluster-management.io",
    version="v1",
    kind="ClusterManager",
    plural="clustermanagers",
    namespaced=False,
)
MANAGER = "cluster-manager"
PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
# The digest of an object as it was applied, so that an unchanged one is not written again.
APPLIED = "update.runup.dev/applied"
# Seconds between passes: while a FleetUpdate is not over, and otherwise. A status is written at most every 5 s.
ACTIVE_S, IDLE_S, SOONEST_S = 30.0, 300.0, 5.0


def read_hub(client: SyncClient, namespace: str) -> HubInputs:
    """Reads a hub. Raises KubeError or DecodeError."""
    fleets = tuple(client.list_all(FleetUpdate, namespace)[0])
    if not fleets:
        return HubInputs(now=client.now())
    sets, serves_sets = _list(client, REPLICA_SET, namespace, FLEET_UPDATE)
    placements, _ = _list(client, PLACEMENT, namespace)
    decisions: dict[str, tuple[str, ...]] = {}
    for each in _list(client, DECISIONS, namespace)[0]:
        name = (each["metadata"].get("labels") or {}).get(PLACEMENT_LABEL, "")
        chosen = (each.get("status") or {}).get("decisions") or ()
        decisions[name] = (*decisions.get(name, ()), *(str(one.get("clusterName")) for one in chosen))
    return HubInputs(
        now=client.now(),
        fleets=fleets,
        clusters=client.list_all(ManagedCluster)[0],
        placements={each["metadata"]["name"]: each for each in placements},
        decisions=decisions,
        sets=sets,
        works=client.list_all(ManifestWork, label_selector=FLEET_UPDATE)[0],
        manager=_manager(client),
        serves_sets=serves_sets,
        approvals=policy_objects.approvals(client),
        calendars=_calendars(client),
    )


def _list(client: SyncClient, resource: Resource, namespace: str, label_selector: str = "") -> tuple[list[JSON], bool]:
    """Returns all objects, and whether the kind is served. Raises KubeError."""
    try:
        return client.listing_raw(resource, namespace, label_selector=label_selector).items, True
    except NotFound:
        return [], False


def _manager(client: SyncClient) -> JSON | None:
    try:
        return client.send(calls.get_raw(MANAGERS, MANAGER))
    except NotFound:
        return None


def _calendars(client: SyncClient) -> Any:
    """Returns the calendars; none on a hub that does not serve them, where a stage that names one does not begin."""
    try:
        return policy_objects.calendars(client)
    except InputError:
        return ()


class FleetController:
    """Carries out the FleetUpdates of one namespace; `read` observes the hub in a thread."""

    def __init__(
        self, client: Client, clock: Clock, read: Callable[[], HubInputs], *, metrics: Metrics | None = None
    ) -> None:
        self._client = client
        self._clock = clock
        self._read = read
        self._metrics = metrics or Metrics()
        self._executor = Executor(client, clock, component=FIELD_MANAGER)

    async def run(self) -> None:
        """Makes passes until cancelled. Raises Fenced if the lease is lost."""
        await repeat_passes(self.make_pass, self._clock, retry_s=ACTIVE_S)

    async def make_pass(self) -> float:
        """Makes one pass, and returns the seconds until the next one. Raises KubeError, DecodeError or InputError."""
        inputs = await in_thread(self._read, "observe the hub")
        applied = {
            (each["kind"], each["metadata"]["name"]): (each["metadata"].get("annotations") or {}).get(APPLIED, "")
            for each in (*inputs.sets, *inputs.placements.values())
        }
        changed = False
        outcomes = {}
        for fleet in inputs.fleets:
            if fleet.metadata.deletion_timestamp is not None:
                continue
            outcome = decide(fleet, observe(fleet, inputs), inputs.now)
            changed = await self._carry_out(fleet, outcome, applied) or changed
            outcomes[fleet.metadata.name] = outcome.status
        self._metrics.observe(outcomes, inputs.now)
        is_active = any(each.phase != "Over" for status in outcomes.values() for each in status.stages)
        return SOONEST_S if changed else ACTIVE_S if is_active else IDLE_S

    async def _carry_out(self, fleet: FleetUpdate, outcome: HubOutcome, applied: dict[tuple[str, str], str]) -> bool:
        """Writes what differs: objects first, then the status. Returns whether anything was written."""
        changed = False
        pairs = [(PLACEMENT, each) for each in outcome.placements]
        pairs += [(REPLICA_SET, each) for each in outcome.replica_sets]
        for resource, body in pairs:
            digest = hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()[:16]
            metadata = {**body["metadata"], "annotations": {APPLIED: digest}}
            if applied.get((body["kind"], metadata["name"])) != digest:
                wanted = {**body, "metadata": metadata}
                await self._client.send(calls.apply(resource, wanted, field_manager=FIELD_MANAGER, force=True))
                changed = True
        for name in outcome.deleted:
            for resource in (REPLICA_SET, PLACEMENT):
                with suppress(NotFound):
                    await self._client.send(calls.delete(resource, name, fleet.metadata.namespace))
            changed = True
        before, after = codec.to_dict(fleet.status), codec.to_dict(outcome.status)
        if before == after:
            return changed
        patch = PatchStatus(
            resource=FLEETS,
            key=NamespacedName(fleet.metadata.namespace, fleet.metadata.name),
            fields=after,
            gone=tuple(name for name in before if name not in after),
            resource_version=fleet.metadata.resource_version,
            fresh=not before,
        )
        try:
            await self._executor.execute(Plan((patch,)))
        except ApiError as error:
            # A person edited the object meanwhile: the next pass decides on the new version.
            if error.reason != "Conflict":
                raise
        return True
