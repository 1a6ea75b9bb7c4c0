"""A model of a stage: the engine as OCM 1.2.0's, agents that disconnect, and clusters whose gates open and close.

The hub and the clusters decide by the product's functions. Everything else is simulated minute by minute from a seed.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from tests.fleet.decide.fleet_updates import IMAGE, START, at, fleet_update, managed_cluster, rollout, stage

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.hub_v1 import ManagedCluster
from runup.api.update_policy_v1alpha1 import RunDecision, UpdateRun, UpdateTurn
from runup.fleet.decide.hub_update import engine_objects
from runup.fleet.decide.hub_update.cluster_states import RunState, StageObserved, TurnState
from runup.fleet.decide.hub_update.stages import HubObserved, decide
from runup.rollout.decide.turns import newly_used_up, turn_of, wanted_claim, with_outcome

MINUTE = timedelta(minutes=1)
PLACE_FOR, UPDATE_MINUTES = 20, 10
Decision = tuple[str, str]


class Cluster:
    """A cluster: its run and turns as they are stored there, and what its agent reported last."""

    def __init__(self, name: str, dice: random.Random) -> None:
        self.name = name
        self.dice = dice
        self.connected = True
        self.since = START
        self.gates = dice.random() < 0.5
        self.run: UpdateRun | None = None
        self.turns: dict[int, UpdateTurn] = {}
        self.claim = ""
        self.ends: datetime | None = None
        self.begun = False
        # On the hub: the works of this cluster, the claim, and the reports.
        self.hub_claim = ""
        self.hub_run = RunState()
        self.hub_turns: dict[int, TurnState] = {}
        self.works: set[int] = set()
        self.created = 0

    def connect(self, *, connected: bool, now: datetime) -> None:
        """Connects or disconnects the agent."""
        if connected != self.connected:
            self.connected, self.since = connected, timestamp(now)

    def on_hub(self) -> ManagedCluster:
        """The cluster as the hub sees it."""
        return managed_cluster(self.name, available="True" if self.connected else "Unknown", since=self.since)

    @property
    def running(self) -> bool:
        """Whether the update is in progress."""
        return self.begun and self.run is not None and self.run.status.step == "ControlPlane"

    def pass_(self, now: datetime) -> None:
        """The controller of the cluster makes a pass."""
        if self.run is None:
            return
        if self.running:
            if self.ends is not None and now >= self.ends:
                self._step("Done", "Succeeded", now)
        elif self.run.status.step == "Waiting":
            self._wait(self.run, now)
        turns = [*self.turns.values()]
        is_waiting = self.run.status.step == "Waiting"
        ready = self.run if is_waiting and self.gates else None
        self.claim = wanted_claim(self.claim, [self.run], turns, ready)
        self.turns = {round_: with_outcome(turn, self.run, now) for round_, turn in self.turns.items()}

    def _wait(self, run: UpdateRun, now: datetime) -> None:
        turns = [*self.turns.values()]
        used = newly_used_up(run, turns, now)
        if used:
            status = replace(run.status, used_up_turns=(*run.status.used_up_turns, *used))
            self.run = run = replace(run, status=status)
        turn = turn_of(run, turns)
        has_turn = turn is not None and turn.until is not None and now < turn.until
        permitted = run.spec.permit_until is not None and now < run.spec.permit_until
        if has_turn and permitted and self.gates and self.dice.random() < 0.8:
            self.begun = True
            self.ends = now + self.dice.randint(2, UPDATE_MINUTES) * MINUTE
            self._step("ControlPlane", "Started", now)

    def _step(self, step: Any, reason: str, now: datetime) -> None:
        assert self.run is not None
        status = self.run.status
        started = now if step == "ControlPlane" else status.started
        decisions = (RunDecision(at=now, step=step, reason=reason),)
        self.run = replace(self.run, status=replace(status, step=step, started=started, decisions=decisions))

    def sync(self, template: UpdateRun | None, wanted: dict[int, UpdateTurn], now: datetime) -> None:
        """The agent applies and deletes what the hub wants, and reports; the run's report may come later."""
        if not self.connected:
            return
        if template is not None:
            status = self.run.status if self.run is not None else template.status
            self.run = replace(template, status=status)
        for round_, turn in wanted.items():
            if round_ not in self.turns:
                self.created += 1
                metadata = ObjectMeta(name=turn.metadata.name, uid=f"{self.name}-{self.created}", generation=1)
                self.turns[round_] = replace(turn, metadata=replace(metadata, creation_timestamp=now))
        for round_ in [*self.turns]:
            if round_ not in wanted:
                del self.turns[round_]
        self.works &= set(wanted) | set(self.turns)
        self.hub_claim = self.claim
        self.hub_turns = {round_: self._turn_state(turn) for round_, turn in self.turns.items()}
        if self.run is not None and self.dice.random() < 0.7:
            status = self.run.status
            gates = "NoTurn" if self.gates else "PreflightRisks"
            outcome = status.decisions[-1].reason if status.step == "Done" else "NotYet"
            self.hub_run = RunState(
                is_current=True,
                step=status.step,
                gates=gates,
                outcome=outcome,
                image=IMAGE,
                begun=status.started is not None,
                gated=self.begun,
            )

    def _turn_state(self, turn: UpdateTurn) -> TurnState:
        """As the condition rules evaluate."""
        done, failed = find(turn.status.conditions, "Done"), find(turn.status.conditions, "Failed")
        is_done = done is not None and done.status == "True" and done.observed_generation == 1
        return TurnState(
            counts_as_done=is_done,
            counts_as_failed=not is_done and failed is not None and failed.status == "True",
            done=done.reason if done is not None else "",
            since=done.last_transition_time if done is not None else None,
        )


class Model:
    """A hub with one stage."""

    def __init__(self, seed: int, number: int = 7) -> None:
        self.dice = random.Random(seed)
        self.concurrency = self.dice.randint(1, 3)
        self.clusters = {f"c{index}": Cluster(f"c{index}", self.dice) for index in range(number)}
        settings = rollout(self.concurrency, progressDeadline="2h", maxFailures=0)
        only = stage("all", rollout=settings, placeFor=f"{PLACE_FOR}m", rounds=10)
        self.fleet: FleetUpdate = fleet_update(only, policy={"soak": "0s", "deadline": "1h"}, permitFor="10m")
        self.now = at("10:00")
        self.sets: dict[str, dict[str, Any]] = {}
        self.selectors: dict[str, frozenset[str]] = {}
        self.most = 0
        self.calm = self.now + timedelta(hours=4)

    def minute(self) -> None:
        """Advances by a minute."""
        self.now += MINUTE
        for cluster in self.clusters.values():
            if self.now > self.calm:
                cluster.gates = True
                cluster.connect(connected=True, now=self.now)
            else:
                cluster.gates ^= self.dice.random() < 0.04
                cluster.connect(connected=cluster.connected ^ (self.dice.random() < 0.05), now=self.now)
            cluster.pass_(self.now)
        self.most = max(self.most, sum(each.running for each in self.clusters.values()))
        self._engine()
        self._agents()
        if self.dice.random() < 0.8:
            self._hub()

    def _hub(self) -> None:
        """The hub's controller makes a pass; with 0.1 it is killed before it stores the status."""
        turns: dict[int, dict[str, TurnState]] = {}
        for name, cluster in self.clusters.items():
            for round_ in cluster.works:
                turns.setdefault(round_, {})[name] = cluster.hub_turns.get(round_, TurnState())
        seen = StageObserved(
            members=tuple(self.clusters),
            placement={},
            runs={name: each.hub_run for name, each in self.clusters.items()},
            turns=turns,
            sets=frozenset(self.sets),
        )
        known = {name: each.on_hub() for name, each in self.clusters.items()}
        outcome = decide(self.fleet, HubObserved(clusters=known, stages=[seen]), self.now)
        for name in outcome.deleted:
            self.sets.pop(name, None)
        for body in outcome.placements:
            [predicate] = body["spec"]["predicates"]
            [claim] = predicate["requiredClusterSelector"]["claimSelector"]["matchExpressions"]
            self.selectors[body["metadata"]["name"]] = frozenset(claim["values"])
        for body in outcome.replica_sets:
            self.sets[body["metadata"]["name"]] = body
        if self.dice.random() < 0.9:
            self.fleet = replace(self.fleet, status=outcome.status)

    def _engine(self) -> None:
        """Hands out turns as sdk-go's progressivePerCluster: to clusters by name, up to the concurrency."""
        for name in self.sets:
            round_ = self._round_of(name)
            if not round_:
                continue
            chosen = [each for each, c in sorted(self.clusters.items()) if c.hub_claim in self.selectors[name]]
            for cluster in self.clusters.values():
                if round_ in cluster.works and cluster.name not in chosen:
                    cluster.works.discard(round_)
            states = {c.name: c.hub_turns.get(round_) for c in self.clusters.values() if round_ in c.works}
            in_place = [each for each, state in states.items() if state is None or not state.counts_as_done]
            for each in chosen:
                if each not in states and len(in_place) < self.concurrency:
                    self.clusters[each].works.add(round_)
                    in_place.append(each)

    def _agents(self) -> None:
        template, turns = None, {}
        for name, body in self.sets.items():
            manifest = body["spec"]["manifestWorkTemplate"]["workload"]["manifests"][0]
            if round_ := self._round_of(name):
                turns[round_] = codec.convert(UpdateTurn, manifest)
            else:
                template = codec.convert(UpdateRun, manifest)
        for cluster in self.clusters.values():
            wanted = {round_: turn for round_, turn in turns.items() if round_ in cluster.works}
            cluster.sync(template, wanted, self.now)

    def _round_of(self, name: str) -> int:
        part = name.rpartition("-")[2]
        return int(part[1:]) if part != engine_objects.RUNS else 0
