"""A preflight changes nothing (docs/decisions/0072 D23): with and without its steps a cluster goes the same way.

Two worlds take the same steps, one of them without those that concern preflights. What the commands send is made by
the commands' own functions, so that both ends are held to the promise. `RUNUP_PREFLIGHT_SEQUENCES=10000` plays many.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import World, image, release, risk
from tests.few_or_many import few_or_many

from kubekit.api import codec
from runup.api.config_v1 import AcceptRisk, Release, Update
from runup.applying.decide.progress import Loading, Progress
from runup.clusterversion.decide import reconcile, upgrade_request, view
from runup.clusterversion.decide.observed import Observed
from runup.clusterversion.decide.targets import asks_for
from runup.clusterversion.decide.upgrade_target import Flags, clear_patch, update_patch

SEQUENCES = int(os.environ.get("RUNUP_PREFLIGHT_SEQUENCES", "120"))
VERSIONS = ("5.0.3", "5.1.0", "5.2.0", "5.3.0", "9.0.0")
UPDATES = ("5.0.3", "5.1.0", "5.2.0")
RISKS = ("SlowNodeDrain", "UpdatePathNotOffered", "Found")
RAW: tuple[Update, ...] = (
    Update(mode="Preflight"),
    Update(mode="Later", version="5.1.0"),
    Update(mode="Preflight", version="5.0.0", image=image("5.1.0")),
    Update(mode="Preflight", version="5.3.0", image=image("5.3.0"), force=True),
    Update(mode="Preflight", version="5.1.0", architecture="Multi"),
)


def send(world: World, patch: dict[str, Any] | None) -> None:
    """A merge patch as the API server takes it: nothing changed is no new generation."""
    if patch is None:
        return
    before = world.version.spec.desired_update
    wanted = patch["spec"]["desiredUpdate"]
    merged = None
    if wanted is not None:
        fields = {**(codec.to_dict(before) if before else {}), **wanted}
        merged = codec.convert(Update, {name: value for name, value in fields.items() if value is not None})
    if merged != before:
        world.ask(merged)


BASE = World.new().settle()


APPLYING = World.new().applying().settle().worker_completes().settle()


def _settled(base: World) -> World:
    return replace(base, events=[], plans=[], log=[], ran=[], applied={})


class ChangesNothing(RuleBasedStateMachine):
    """`real` has preflights, `twin` has not. The operator works after each step unless it is down."""

    base = BASE

    def __init__(self) -> None:
        super().__init__()
        self.real, self.twin = _settled(self.base), _settled(self.base)
        self.up = True
        self.settled: dict[int, Observed] = {}

    # Of preflights: these happen in the real world alone.

    @rule(version=st.sampled_from(VERSIONS))
    def ask_for_a_preflight(self, version: str) -> None:
        """By the command; also another target."""
        self._overwrites_what_was_not_accepted()
        send(self.real, upgrade_request.request_patch(self.real.version, Flags(to=version)))
        self._work()

    @rule(desired=st.sampled_from(RAW))
    def ask_by_hand(self, desired: Update) -> None:
        """By `kubectl edit`, nonsense included."""
        self._overwrites_what_was_not_accepted()
        kept = self._spec(self.real).accept_risks
        self.real.ask(with_fields(desired, accept_risks=kept))
        self._work()

    @precondition(lambda self: self._spec(self.real).mode)
    @rule()
    def clear_the_preflight(self) -> None:
        """`--clear-preflight`."""
        send(self.real, upgrade_request.end_preflight(self.real.version, None, None).patch)
        self._work()

    @precondition(lambda self: self._spec(self.real).mode)
    @rule()
    def clear_while_a_preflight_is_asked_for(self) -> None:
        """`--clear` ends the preflight, not what is under way."""
        send(self.real, upgrade_request.plan_clearing(self.real.version).patch)
        self._work()

    @precondition(lambda self: self._spec(self.real).mode)
    @rule()
    def remove_the_field(self) -> None:
        """`kubectl patch` with null, accepted risks and all; the twin's administrator takes them back, too."""
        self.real.ask(None)
        if self._spec(self.twin).accept_risks:
            self.twin.ask(with_fields(self._spec(self.twin), accept_risks=()))
        self._work()

    @rule(status=st.sampled_from(["running", "completed", "failed"]), found=st.booleans())
    def the_target_reports(self, status: str, found: bool) -> None:
        """Whatever it says."""
        if self.real.observed.deployment is not None:
            self.real.report(*((risk("Found"),) if found else ()), execution_status=status)
        self._work()

    @rule()
    def the_target_breaks(self) -> None:
        """The target writes an invalid report."""
        if self.real.observed.deployment is not None:
            self.real.bad_report("ReportInvalid", "the report is not a JSON object")
        self._work()

    # Of updates: both worlds.

    @rule(version=st.sampled_from(UPDATES), force=st.booleans())
    def ask_for_an_update(self, version: str, force: bool) -> None:
        """`--to`, or the loss of a mode: the request names version and image as the command does."""
        for world in (self.real, self.twin):
            desired = world.version.spec.desired_update
            send(world, update_patch(desired, version=version, image=image(version), force=force))
        self._work()

    @precondition(lambda self: self._spec(self.real).mode == "Preflight" and self._spec(self.real).version in UPDATES)
    @rule()
    def lose_the_mode(self) -> None:
        """It is an update's request then (docs/decisions/0072 D20)."""
        was = self._spec(self.real)
        named = {"version": was.version, "image": was.image or image(was.version)}
        for world in (self.real, self.twin):
            send(world, update_patch(world.version.spec.desired_update, **named, force=was.force))
        self._work()

    @rule(names=st.sets(st.sampled_from(RISKS)))
    def accept(self, names: set[str]) -> None:
        """`accept --replace`: whatever else is asked for stays."""
        accepted = [{"name": name} for name in sorted(names)] or None
        for world in (self.real, self.twin):
            send(world, {"spec": {"desiredUpdate": {"acceptRisks": accepted}}})
        self._work()

    @precondition(lambda self: not self._spec(self.real).mode)
    @rule()
    def clear(self) -> None:
        """`--clear` where no preflight is asked for takes an update back, or drops a request."""
        for world in (self.real, self.twin):
            send(world, upgrade_request.plan_clearing(world.version).patch)
        self._work()

    @precondition(lambda self: self.up and self._under_way())
    @rule()
    def the_update_completes(self) -> None:
        """The next operator is the new release's."""
        for world in (self.real, self.twin):
            status = world.version.status
            done = with_fields(status.history[0], state="Completed", completion_time=world.now)
            status = with_fields(status, history=(done, *status.history[1:]))
            facts = world.observed.facts
            own = Release(version=status.desired.version, image=status.desired.image)
            gates = world.observed.feature_gate
            assert gates is not None
            details = with_fields(gates.status.feature_gates[0], version=own.version)
            world.change(
                cluster_version=with_fields(world.version, status=status),
                facts=type(facts)(release=own, place=facts.place, version_hash=facts.version_hash),
                **_started_anew(world, own),
                feature_gate=with_fields(gates, status=with_fields(gates.status, feature_gates=(details,))),
            )
        self._work()

    @precondition(lambda self: self.up and self.base is APPLYING)
    @rule()
    def the_release_is_applied(self) -> None:
        """All of it, by this operator."""
        for world in (self.real, self.twin):
            world.worker_completes()
        self._work()

    # Of the operator.

    @rule()
    def the_operator_stops(self) -> None:
        """What happens meanwhile it sees all at once."""
        self.up = False

    @rule()
    def the_operator_starts_anew(self) -> None:
        """Without memory: what it knew about service, images and report is gone."""
        self.up = True
        for world in (self.real, self.twin):
            own = world.observed.facts.release
            world.change(service=type(world.observed.service)(), releases={}, report=None, **_started_anew(world, own))
        self._work()

    @rule(actions=st.integers(0, 3))
    def the_operator_is_killed(self, actions: int) -> None:
        """In the middle of a plan; the next one continues from what it finds."""
        if self.up:
            for world in (self.real, self.twin):
                _killed_after(world, actions)
            self.the_operator_starts_anew()

    @invariant()
    def nothing_is_different(self) -> None:
        """Where the operator has had its say."""
        if not self.up:
            return
        real, twin = self.real.version.status, self.twin.version.status
        assert real.desired.version == twin.desired.version
        assert real.desired.image == twin.desired.image
        assert [(e.state, e.version, e.image) for e in real.history] == [
            (e.state, e.version, e.image) for e in twin.history
        ]
        goals = [view.look(world.observed, world.now).current for world in (self.real, self.twin)]
        assert goals[0].image == goals[1].image == real.desired.image
        accepted = self.real.condition("ReleaseAccepted")
        if accepted is not None and accepted[0] == "True":
            assert f'version="{real.desired.version}"' in self.real.message("ReleaseAccepted")

    def _work(self) -> None:
        if not self.up:
            return
        for world in (self.real, self.twin):
            if world.observed is not self.settled.get(id(world)):
                self.settled[id(world)] = world.settle().observed
        # An update waits for its preflight, and for what it finds: the target finishes, and finds nothing (any more).
        desired = self._spec(self.real)
        if not desired.mode and (desired.version or desired.image) and self.real.observed.deployment is not None:
            self.real.report().settle()

    def _spec(self, world: World) -> Update:
        return world.version.spec.desired_update or Update()

    def _under_way(self) -> bool:
        status = self.twin.version.status
        return status.history[0].state == "Partial" and len(status.history) > 1

    def _overwrites_what_was_not_accepted(self) -> None:
        """Spec is one field: a request that nothing came of is gone, and the command says so. One under way is not.

        Taking an update back is such a request, too, for as long as the operator has not seen it.
        """
        desired, status = self._spec(self.twin), self.twin.version.status
        if view.look(self.twin.observed, self.twin.now).current.image != status.desired.image:
            named = {"version": status.desired.version, "image": status.desired.image}
            send(self.twin, update_patch(self.twin.version.spec.desired_update, **named))
            return
        if not (desired.version or desired.image) or asks_for(desired, self.twin.version.status.desired):
            return
        send(self.twin, clear_patch(desired))


class ChangesNothingOfWhatIsApplied(ChangesNothing):
    """The same where releases are applied: what is asked of the worker is the same, too."""

    base = APPLYING

    @invariant()
    def the_same_is_applied(self) -> None:
        """Where the operator has had its say."""
        if self.up:
            assert self.real.observed.progress == self.twin.observed.progress


def _started_anew(world: World, own: Release) -> dict[str, Any]:
    """Returns the worker's knowledge in a process that has just started."""
    if world.observed.progress is None:
        return {}
    return {"progress": Progress(), "loads": {own.image: Loading(payload=release(own.version))}}


def _killed_after(world: World, actions: int) -> None:
    plan = reconcile.reconcile(world.observed, now=world.now)
    world.carry_out(plan.actions[:actions])


@pytest.mark.timeout(60 + SEQUENCES)
@few_or_many(SEQUENCES // 5, SEQUENCES)
def test_a_preflight_changes_nothing(examples: int) -> None:
    """Desired release, history and goal, over all sequences."""
    run_state_machine_as_test(
        ChangesNothing, settings=settings(max_examples=examples, stateful_step_count=12, deadline=None)
    )


@pytest.mark.timeout(60 + SEQUENCES)
@few_or_many(SEQUENCES // 20, SEQUENCES // 5)
def test_a_preflight_changes_nothing_of_what_is_applied(examples: int) -> None:
    """The same sequences, and the worker's part between them."""
    run_state_machine_as_test(
        ChangesNothingOfWhatIsApplied,
        settings=settings(max_examples=examples, stateful_step_count=12, deadline=None),
    )


def test_names_of_risks_stay_accepted_over_a_preflight() -> None:
    """The command's patches keep what was accepted."""
    world = World.new().settle().accept("SlowNodeDrain").settle()
    send(world, upgrade_request.request_patch(world.version, Flags(to="5.1.0")))
    send(world, upgrade_request.plan_clearing(world.version).patch)
    desired = world.version.spec.desired_update
    assert desired is not None and desired.accept_risks == (AcceptRisk(name="SlowNodeDrain"),)
