"""Writes what a hub reads of a cluster's turns: conditions of UpdateTurns, and the ClusterClaim that asks for one."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import structlog

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict, Forbidden, NotFound
from kubekit.kube.client import Client
from runup.api.update_policy_v1alpha1 import UpdateRun, UpdateTurn
from runup.process.plan import PatchStatus, Plan
from runup.process.plan_executor import Executor
from runup.rollout.control.observe import ClusterInputs, effective_run, observe_run
from runup.rollout.control.policy_objects import CLAIMS
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.policy import active_run
from runup.rollout.decide.run_steps import BEFORE_START
from runup.rollout.decide.turns import CLAIM, is_ready, wanted_claim, with_outcome
from runup.rollout.decide.updaters import FIELD_MANAGER

log = structlog.get_logger("rollout")
TURNS = resource_of(UpdateTurn)


class TurnWriter:
    """Follows the turns of one cluster. Everything is derived from runs as they were stored before the pass."""

    def __init__(self, client: Client, executor: Executor) -> None:
        self._client = client
        self._executor = executor

    async def follow(self, inputs: ClusterInputs, skew_until: datetime | None) -> bool:
        """Writes what has changed, and returns whether anything was written. Raises KubeError."""
        written = False
        by_name = {run.metadata.name: run for run in inputs.runs}
        for turn in inputs.turns:
            if turn.metadata.deletion_timestamp is None:
                written = await self._write_outcome(turn, by_name.get(turn.spec.run), inputs.now) or written
        ready = _ready_run(inputs, skew_until)
        claim = wanted_claim(inputs.claim, inputs.runs, inputs.turns, ready)
        if claim != inputs.claim:
            written = await self._write_claim(claim) or written
        return written

    async def _write_outcome(self, turn: UpdateTurn, run: UpdateRun | None, now: datetime) -> bool:
        before, after = turn.status, with_outcome(turn, run, now).status
        if before == after:
            return False
        patch = PatchStatus(
            resource=TURNS,
            key=NamespacedName("", turn.metadata.name),
            fields=codec.to_dict(after),
            gone=(),
            resource_version=turn.metadata.resource_version,
            fresh=not codec.to_dict(before),
        )
        # The hub may have deleted the turn meanwhile.
        with suppress(NotFound, Conflict):
            await self._executor.execute(Plan((patch,)))
        return True

    async def _write_claim(self, value: str) -> bool:
        """Sets or removes the claim, and returns whether it could. A cluster that cannot gets no turn."""
        try:
            if value:
                body = {"metadata": {"name": CLAIM}, "spec": {"value": value}}
                await self._client.send(calls.apply(CLAIMS, body, field_manager=FIELD_MANAGER, force=True))
            else:
                await self._client.send(calls.delete(CLAIMS, CLAIM))
        except (NotFound, Forbidden) as error:
            log.warning("the hub cannot be asked for a turn", claim=value, error=str(error))
            return False
        return True


def _ready_run(inputs: ClusterInputs, skew_until: datetime | None) -> UpdateRun | None:
    """Returns the run that needs a turn and whose other gates are open, or None."""
    run = active_run(inputs.runs)
    if run is None or not run.spec.needs_turn or run.status.step not in BEFORE_START:
        return None
    verdict = evaluate(observe_run(effective_run(run, inputs), inputs, skew_until), inputs.now)
    return run if is_ready(verdict) else None
