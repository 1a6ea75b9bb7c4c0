"""What a live preflight says holds an update up; what an ended, failed or silent one said is dated.

Source: docs/decisions/0072 D7, D21, D24.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import GATES, World, image, risk
from tests.factories import NOW

from kubekit.api import conditions
from kubekit.api.core_v1 import ContainerState, ContainerStateRunning, ContainerStateWaiting
from kubekit.kube.clock import ManualClock
from runup.api.config_v1 import AcceptRisk, Update
from runup.preflight.control.report_reader import ReportReader
from runup.process.plan import Apply, PatchStatus
from runup.report.report import ReportedCheck, encode

WHEN = "2026-01-14T10:00:00Z"
TO = Update(version="5.0.3")
PULLING = ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff"))


def checked(*found: Any, version: str = "5.0.3", **new: Any) -> World:
    """A cluster whose preflight of `version` continues and has found that much."""
    world = World.new(**new).settle().ask_preflight(version).settle()
    return world.report(*found).settle()


def verdict(world: World, name: str) -> str:
    """The message of the verdict of a risk."""
    found = {one.name: one for one in world.version.status.conditional_update_risks}[name]
    return found.conditions[0].message


def test_a_fix_frees_the_update_with_no_command() -> None:
    """The preflight continues until the update is accepted; then its workload goes first, and its risks after it."""
    world = checked(risk("PoolPaused")).ask(TO).settle()
    assert world.condition("ReleaseAccepted") == ("False", "UnacceptedRisks")
    assert world.observed.deployment is not None
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")
    world.log.clear()
    world.report().settle()
    assert world.version.status.desired.version == "5.0.3"
    assert world.observed.deployment is None
    assert world.log.index("delete Deployment") < len(world.log) - 1 - world.log[::-1].index("patch status")


def test_a_new_risk_holds_a_waiting_update_up() -> None:
    """What the target finds while the update waits counts as well."""
    world = checked(risk("First")).ask(TO).settle()
    world.report(risk("Second")).settle()
    assert "[Second]" in world.message("ReleaseAccepted")


@pytest.mark.parametrize("gates", [GATES, ("ClusterUpdatePreflight",)], ids=["risks by name", "without that gate"])
def test_an_update_waits_for_its_preflight_to_finish(gates: tuple[str, ...]) -> None:
    """Unknown, and how far it is; it uses itself once nothing was found."""
    world = World.new(gates=gates).settle().ask_preflight("5.0.3").settle().ask(TO).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightRunning")
    assert world.condition("Invalid") is None
    world.report(execution_status="running", message="4 of 7 checks done").settle()
    assert "4 of 7 checks done" in world.message("ReleaseAccepted")
    world.report().settle()
    assert world.version.status.desired.version == "5.0.3"


def test_an_update_waits_at_most_the_time_limit() -> None:
    """A preflight that never finishes has failed then, and a failed one holds nothing up."""
    world = World.new().settle().ask_preflight("5.0.3").settle().ask(TO).settle()
    world.pass_time(599).settle()
    assert world.version.status.desired.version == "5.0.0"
    world.pass_time(1).settle()
    assert world.version.status.desired.version == "5.0.3"


def restarted() -> World:
    """A cluster whose preflight had found nothing, was restarted half a day later, and is waited for by its update."""
    world = checked().pass_time(12 * 3600)
    return world.report(execution_status="running", message="reading nodes").settle().ask(TO).settle()


def test_an_update_waits_for_a_restarted_target_at_most_the_time_limit() -> None:
    """A list that continued answering 500 held it up without end, and until a time that was past."""
    world = restarted()
    for _ in range(2):
        assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightRunning")
        assert "to finish, until 2026-01-14T22:10:00Z at the latest: reading nodes" in world.message("ReleaseAccepted")
        world.report(execution_status="running", message="reading nodes", heartbeat_time=world.now)
        world.pass_time(299).settle()
    # Its own next look comes when the limit is over, whatever the target writes.
    assert world.step().requeue_after_s == pytest.approx(2)
    world.pass_time(2).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_a_restarted_target_that_exceeds_its_time_limit_has_failed() -> None:
    """It is over, as a first run would be; what it found before it was restarted stays, with its time."""
    world = checked(risk("PoolPaused")).pass_time(12 * 3600)
    world.report(execution_status="running", message="reading nodes").settle().pass_time(600).settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")
    assert world.condition("PreflightRunning") == ("False", "DeadlineExceeded")
    assert "of the target's restart; reading nodes" in world.message("PreflightFailed")
    assert world.observed.deployment is None
    assert world.risks("5.0.3")["PoolPaused"] == ("Unknown", "PreflightOutdated")
    assert WHEN in verdict(world, "PoolPaused")


def test_a_restarted_target_that_completes_again_has_not_failed() -> None:
    """However often that happens: the limit counts again from each restart."""
    world = checked()
    for _ in range(3):
        world.pass_time(599).report(execution_status="running").settle()
        assert world.condition("PreflightRunning") == ("True", "ChecksRunning")
        world.pass_time(599).report().settle()
        assert world.condition("PreflightCompleted") == ("True", "NoRisksFound")


def test_a_target_that_restarts_without_completing_exceeds_its_time_limit() -> None:
    """A new pod each minute is no new time limit."""
    world = checked()
    for _ in range(10):
        world.change(pods=()).pod(state=ContainerState(running=ContainerStateRunning()))
        world.report(execution_status="running", started_time=world.now).settle()
        assert world.condition("PreflightRunning") == ("True", "ChecksRunning")
        world.pass_time(60)
    world.settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")


def test_what_heals_after_a_restart_has_the_whole_time_limit() -> None:
    """While its image cannot be pulled it holds nothing up, and is not ended for that."""
    world = checked().change(report=None).pod(state=PULLING).settle().pass_time(3600).settle()
    assert world.condition("PreflightFailed") == ("True", "ImagePullFailed")
    world.pod(state=ContainerState(running=ContainerStateRunning())).report(execution_status="running").settle()
    world.pass_time(599).settle()
    assert world.condition("PreflightRunning") == ("True", "ChecksRunning")
    world.pass_time(1).settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")


def test_an_update_that_need_not_wait() -> None:
    """PreflightInProgress is accepted by name like any risk; force waits for nothing."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.ask(Update(version="5.0.3", accept_risks=(AcceptRisk(name="PreflightInProgress"),))).settle()
    assert world.version.status.desired.version == "5.0.3"
    forced = World.new().settle().ask_preflight("5.0.3").settle().ask(Update(version="5.0.3", force=True)).settle()
    assert forced.version.status.desired.version == "5.0.3"


def test_the_loss_of_a_mode_is_told_once_and_the_preflight_is_the_same_one() -> None:
    """Going back and forth restarts nothing; each loss is reported (docs/decisions/0072 D20)."""
    world = checked(risk("R"))
    attempt = world.attempt_id
    for times in (1, 2):
        world.ask(TO).settle()
        world.report(risk("R"), observed_time=world.pass_time(30).now).settle()
        assert [event.reason for event in world.events].count("PreflightBecameUpdate") == times
        world.ask_preflight("5.0.3").settle()
        assert world.attempt_id == attempt


def test_an_update_that_is_refused_while_its_preflight_makes_way() -> None:
    """It is refused for another reason than the findings, so the preflight ends; the update uses itself later."""
    world = checked().pod()
    world.finalizing = True
    world.ask(TO).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightStopping")
    world.trusted = False
    world.change(releases={}).settle()
    world.change(pods=()).settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    assert world.version.status.desired.version == "5.0.0"
    assert world.observed.deployment is None
    assert world.condition("PreflightRunning") is None
    world.trusted = True
    world.change(releases={}).settle()
    assert world.version.status.desired.version == "5.0.3"


ENDS: dict[str, Callable[[World], World]] = {
    "cleared": lambda world: world.ask(None),
    "replaced by another target": lambda world: world.ask_preflight("5.1.0"),
    "replaced by an update to another release": lambda world: world.ask(Update(version="5.1.0")),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_ended_preflight_informs_and_holds_nothing_up(end: str) -> None:
    """What it found stays, dated, with the way to look again; the update goes."""
    world = ENDS[end](checked(risk("PoolPaused"), risk("Blind", applies="Unknown"))).settle()
    outdated = ("Unknown", "PreflightOutdated")
    assert world.risks("5.0.3") == {"PoolPaused": outdated, "Blind": outdated}
    assert WHEN in verdict(world, "PoolPaused")
    assert "runup upgrade --mode=preflight --to=5.0.3" in verdict(world, "PoolPaused")
    assert world.recommended("5.0.3") == outdated
    world.ask(TO).settle()
    assert world.version.status.desired.version == "5.0.3"
    taken = world.version.status.history[0].accepted_risks
    assert "No new preflight confirmed the earlier findings: [Blind,PoolPaused]." in taken
    assert "explicitly accepted" not in taken


def test_an_ended_preflight_holds_nothing_up_without_the_accept_gate() -> None:
    """By version it may be asked for as if nobody had looked."""
    world = checked(risk("PoolPaused"), gates=("ClusterUpdatePreflight",)).ask(None).settle()
    world.ask(TO).settle()
    assert world.condition("Invalid") is None
    assert world.version.status.desired.version == "5.0.3"


def test_findings_are_dated_by_when_they_were_last_seen() -> None:
    """A preflight that has watched for a day says how old the findings are since its end, not since its start."""
    world = checked(risk("PoolPaused"))
    world.pass_time(86400).report(risk("PoolPaused")).settle()
    world.ask(None).settle()
    assert "2026-01-15T10:00:00Z" in verdict(world, "PoolPaused")


def test_a_preflight_that_starts_anew_does_not_revive_what_was_found_before() -> None:
    """Until its own first report the earlier findings are dated."""
    world = checked(risk("PoolPaused")).ask(None).settle().ask_preflight("5.0.3").settle()
    assert world.risks("5.0.3")["PoolPaused"] == ("Unknown", "PreflightOutdated")
    world.report(risk("PoolPaused")).settle()
    assert world.risks("5.0.3")["PoolPaused"] == ("True", "PreflightValidation")


def test_what_could_not_be_told_stays_untold_after_the_end() -> None:
    """A blind check is no pass when its preflight ends."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report(checks=(ReportedCheck(name="Blind", result="Unknown"),)).settle().ask(None).settle()
    assert world.risks("5.0.3") == {"PreflightIncomplete": ("Unknown", "PreflightOutdated")}


def test_a_failed_preflight_holds_nothing_up_and_goes_with_its_request() -> None:
    """PreflightIncomplete is a warning; clearing removes it."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.report(risk("Found"), execution_status="running").settle().pass_time(600).settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")
    assert world.risks("5.0.3")["PreflightIncomplete"] == ("Unknown", "PreflightFailed")
    assert world.risks("5.0.3")["Found"] == ("Unknown", "PreflightOutdated")
    world.ask(None).settle()
    assert set(world.risks("5.0.3")) == {"Found"}
    assert world.condition("PreflightFailed") is None


def test_an_update_over_a_failed_preflight() -> None:
    """It goes, and history says what nobody knew."""
    world = World.new().settle().ask_preflight("5.0.3").settle().pass_time(600).settle()
    world.ask(TO).settle()
    assert world.version.status.desired.version == "5.0.3"
    assert [event.reason for event in world.events].count("PreflightBecameUpdate") == 1


class Silent:
    """A target that is stopped (SIGSTOP), with the reader that the operator has, by a clock that the test moves."""

    def __init__(self, folder: Path, *found: Any) -> None:
        self.world = checked(*found)
        self.world.change(pods=()).pod()
        self.clock = ManualClock(NOW)
        self.reader = ReportReader(folder, self.clock, lambda: None)
        self.file = folder / self.world.attempt_id / "report.json"
        self.file.parent.mkdir()
        self.write(*found)

    def write(self, *found: Any) -> None:
        """The target writes, as it does every 30 seconds."""
        self.world.report(*found)
        seen = self.world.observed.report
        assert seen is not None
        new = self.file.parent / "new"
        new.write_bytes(encode(seen.content))  # type: ignore[arg-type]
        new.rename(self.file)
        self._look()

    async def wait(self, seconds: float) -> None:
        """Time passes and the operator looks."""
        await self.clock.advance(seconds)
        self.world.pass_time(seconds)
        self._look()

    def _look(self) -> None:
        self.reader.follow(self.world.attempt_id)
        self.world.change(report=self.reader.seen)
        self.world.settle()


async def test_a_stopped_target_is_stale_after_ninety_seconds(tmp_path: Path) -> None:
    """By the operator's own clock: its findings are Unknown then, and held up until the pod's time is over."""
    scene = Silent(tmp_path, risk("PoolPaused"))
    await scene.wait(60)
    scene.write(risk("PoolPaused"))
    await scene.wait(89)
    assert scene.world.condition("PreflightCompleted") == ("True", "RisksFound")
    await scene.wait(1)
    world = scene.world
    assert world.condition("PreflightCompleted") == ("False", "ReportStale")
    assert world.condition("PreflightFailed") == ("True", "ReportStale")
    assert world.risks("5.0.3") == {
        "PoolPaused": ("Unknown", "ReportStale"),
        "PreflightIncomplete": ("Unknown", "ReportStale"),
    }
    assert verdict(world, "PoolPaused").startswith("Found at 2026-01-14T10:01:00Z; since then: ")
    assert world.recommended("5.0.3") == ("Unknown", "ReportStale")
    until = "until 2026-01-14T10:11:00Z at the latest"
    assert until in verdict(world, "PoolPaused") and until in verdict(world, "PreflightIncomplete")
    assert until in world.message("PreflightFailed")


@pytest.mark.parametrize("names", [(), ("PoolPaused",)], ids=["nothing is accepted", "what was found is"])
async def test_a_silent_target_is_waited_for_as_one_that_never_reported(tmp_path: Path, names: tuple[str, ...]) -> None:
    """For a time that is named, and no longer."""
    scene = Silent(tmp_path, risk("PoolPaused"))
    await scene.wait(100)
    world = scene.world.ask(with_fields(TO, accept_risks=tuple(AcceptRisk(name) for name in names))).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightRunning")
    message = world.message("ReleaseAccepted")
    assert message.startswith(
        "Waiting for the preflight of 5.0.3 to finish, until 2026-01-14T10:10:00Z at the latest: the target has not "
        "written its report for 90 s or longer"
    )
    accepted = ",".join(name for name in ("PoolPaused", "PreflightIncomplete") if name not in names)
    accepted = ",".join(sorted(accepted.split(",")))
    assert f"accept {accepted} (`runup upgrade accept {accepted}`); or continue without it" in message
    await scene.wait(499)
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightRunning")
    await scene.wait(1)
    world.settle()
    assert world.version.status.desired.version == "5.0.3"


async def test_a_target_that_changes_its_mind_each_second_is_written_every_ten(tmp_path: Path) -> None:
    """Of status and record alike: 40 seconds were 32 writes of the one and 33 of the other."""
    scene = Silent(tmp_path)
    written = Counter[type[Any]]()
    before = len(scene.world.plans)
    for second in range(40):
        scene.write(risk(f"Risk{second}"))
        await scene.wait(1)
    for plan in scene.world.plans[before:]:
        written.update(type(action) for action in plan.actions)
    assert 0 < written[PatchStatus] <= 8
    assert 0 < written[Apply] <= 8
    await scene.wait(10)
    assert list(scene.world.risks("5.0.3")) == ["Risk39"]


async def test_a_target_that_goes_on_is_live_again(tmp_path: Path) -> None:
    """Also one without findings is not recommended while nobody hears of it."""
    scene = Silent(tmp_path)
    await scene.wait(120)
    assert scene.world.recommended("5.0.3") == ("Unknown", "ReportStale")
    scene.write()
    assert "5.0.3" in scene.world.available
    assert scene.world.condition("PreflightFailed") == ("False", "AsExpected")


async def test_a_stopped_target_is_started_anew_at_the_time_limit(tmp_path: Path) -> None:
    """Its pod is removed, once; the next one has the same time; what waits is not held up any longer."""
    scene = Silent(tmp_path, risk("PoolPaused"))
    await scene.wait(599)
    assert "delete Pod" not in scene.world.log
    await scene.wait(1)
    assert scene.world.log.count("delete Pod") == 1
    scene.world.pod()
    await scene.wait(599)
    assert scene.world.log.count("delete Pod") == 1
    scene.world.ask(TO).settle()
    assert scene.world.version.status.desired.version == "5.0.3"


async def test_the_operator_looks_when_a_report_grows_stale(tmp_path: Path) -> None:
    """Nothing happens in the cluster then, so the next look has to be asked for."""
    scene = Silent(tmp_path)
    scene.world.pod(state=ContainerState(running=ContainerStateRunning()))
    scene.write()
    assert scene.world.step().requeue_after_s == pytest.approx(90)
    await scene.wait(60)
    assert scene.world.step().requeue_after_s == pytest.approx(30)
    await scene.wait(35)
    assert (scene.world.plans[-1].requeue_after_s or 1000) <= 505


@pytest.mark.parametrize("architecture", ["", "Multi"])
def test_another_image_of_the_running_version(architecture: str) -> None:
    """A preflight like any other: by image, or by version where the service offers the multi-architecture release."""
    other = image("7.7.7")
    multi = {**World.new().graph, "nodes": [{"version": "5.0.0", "payload": other}], "edges": []}
    world = World.new()
    if architecture:
        world.graph = {**multi, "conditionalEdges": []}
        asked = Update(mode="Preflight", version="5.0.0", architecture="Multi")
    else:
        asked = Update(mode="Preflight", version="5.0.0", image=other)
    world.settle().ask(asked)
    releases = {} if architecture else {other: _read_as("5.0.0")}
    world.change(releases=releases).settle()
    assert world.container_image == other
    world.report(risk("R"), target_version="5.0.0").settle()
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")
    assert world.risks("5.0.0")["R"] == ("True", "PreflightValidation")
    assert world.version.status.desired.image == image("5.0.0")
    world.ask(None).settle()
    assert world.risks("5.0.0")["R"] == ("Unknown", "PreflightOutdated")


def _read_as(version: str) -> Any:
    from runup.clusterversion.decide.observed import ReleaseCheck
    from runup.preflight.decide.deployment_steps import Trust

    return ReleaseCheck(trust=Trust.VERIFIED, version=version)


def test_the_running_image_itself_is_nothing_to_check() -> None:
    """Wherever it is kept: the digest decides."""
    mirrored = "mirror.example/release@" + image("5.0.0").rpartition("@")[2]
    world = World.new().settle().ask(Update(mode="Preflight", image=mirrored)).settle()
    assert world.condition("PreflightFailed") == ("True", "TargetIsCurrent")


def test_a_preflight_during_an_update_leaves_it_alone() -> None:
    """The seen case: clearing took the update back, history said so, and ReleaseAccepted said otherwise."""
    world = World.new().settle().ask(TO).settle()
    for desired in (Update(mode="Preflight", version="5.1.0"), Update(mode="Preflight", version="5.2.0"), None):
        world.ask(desired).settle()
        assert world.version.status.desired.version == "5.0.3"
        assert [(e.version, e.state) for e in world.version.status.history] == [
            ("5.0.3", "Partial"),
            ("5.0.0", "Completed"),
        ]
        assert world.condition("ReleaseAccepted") == ("True", "PayloadLoaded")
        assert 'version="5.0.3"' in world.message("ReleaseAccepted")
        assert world.message("Progressing") == "Working towards 5.0.3"


@pytest.mark.parametrize(
    "back",
    [
        pytest.param(Update(version="5.0.0"), id="by version"),
        pytest.param(Update(image=image("5.0.0")), id="by image"),
        pytest.param(Update(version="5.0.0", image=image("5.0.0")), id="as the command names it"),
    ],
)
def test_taking_an_update_back_is_a_request_of_its_own(back: Update) -> None:
    """After a preflight came in between the spec is empty, and the release is named; an event says what happened."""
    world = World.new().settle().ask(TO).settle().ask_preflight("5.1.0").settle().ask(None).settle()
    world.ask(back).settle()
    assert world.version.status.desired.version == "5.0.0"
    assert 'version="5.0.0"' in world.message("ReleaseAccepted")
    assert conditions.status_of(world.version.status.conditions, "Progressing") == "False"
    assert [event.reason for event in world.events].count("UpdateTakenBack") == 1


def test_a_request_that_was_cleared_unseen_takes_nothing_back() -> None:
    """Two changes at once may have had a preflight between them, so the update continues."""
    world = World.new().settle().ask(TO).settle()
    world.ask_preflight("5.1.0").ask(None).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_dropping_another_request_leaves_the_update_alone() -> None:
    """The latest request is withdrawn: here an update that was never accepted."""
    world = World.new().settle().ask(TO).settle().ask(Update(version="5.1.0")).settle()
    world.ask(None).settle()
    assert world.version.status.desired.version == "5.0.3"


def test_an_update_waits_as_long_for_a_preflight_that_cannot_begin() -> None:
    """The pods of another target do not end; the limit counts from the request, and says what it waits for."""
    world = checked().pod()
    world.finalizing = True
    world.ask_preflight("5.1.0").settle()
    world.ask(Update(version="5.1.0", accept_risks=(AcceptRisk(name="SlowNodeDrain"),))).settle()
    world.pass_time(599).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightRunning")
    assert "the pods of the preflight before it are ending" in world.message("ReleaseAccepted").lower()
    world.pass_time(1).settle()
    assert world.condition("ReleaseAccepted") == ("Unknown", "PreflightStopping")
    world.change(pods=()).settle()
    assert world.version.status.desired.version == "5.1.0"
