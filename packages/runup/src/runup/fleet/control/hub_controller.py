"""The controller of fleet updates on a hub: observes the hub, decides each FleetUpdate, and writes objects and status.

Objects are applied before the status is stored, so that a permit has ended before the status says so. Turns follow the
status as it is stored. Writes go through a client that refuses them without the lease.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.fleet.control.hub_fleets import FLEETS
from runup.fleet.control.hub_metrics import Metrics
from runup.fleet.decide.hub_update.engine_objects import PLACEMENT, REPLICA_SET
from runup.fleet.decide.hub_update.observation import HubInputs, observe
from runup.fleet.decide.hub_update.stages import HubOutcome, decide
from runup.process.leader_election import repeat_passes
from runup.process.plan import PatchStatus, Plan
from runup.process.plan_executor import Executor
from runup.process.threads import in_thread

log = structlog.get_logger("fleet-update")
FIELD_MANAGER = "runup-fleet-update"
# The digest of an object as it was applied, so that an unchanged one is not written again.
APPLIED = "update.runup.dev/applied"
# Seconds between passes: while a FleetUpdate is not over, and otherwise. A status is written at most every 5 s.
ACTIVE_S, IDLE_S, SOONEST_S = 30.0, 300.0, 5.0


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
