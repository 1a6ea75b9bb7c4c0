"""A preflight from request to result, seen from ClusterVersion."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import GATES, OWN, World, image, risk
from tests.factories import feature_gate

from kubekit.api.core_v1 import ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting
from runup.api.config_v1 import ConditionalUpdate, Release, Update
from runup.clusterversion.decide.work import ReadRelease, VerifyRelease
from runup.preflight.decide import preflight_deployment, stored_reports
from runup.preflight.decide.deployment_steps import STEPS, Deployed, DeploymentState, Step, Trust
from runup.process.plan import Delete, Plan
from runup.report.report import ReportedCheck


def started(version: str = "5.2.0", **place: Any) -> World:
    """A cluster whose preflight of `version` has been started."""
    return World.new(place=place).settle().ask_preflight(version).settle()


def terminated(reason: str = "Error", code: int = 1, message: str = "") -> ContainerState:
    """A container that ended."""
    return ContainerState(terminated=ContainerStateTerminated(exit_code=code, reason=reason, message=message))


def test_every_situation_has_a_step() -> None:
    """No combination of what can be seen is without an answer."""
    product = itertools.product((True, False), Deployed, Trust, (True, False))
    assert set(STEPS) == {DeploymentState(*axes) for axes in product}


def test_nothing_starts_without_trust_or_request() -> None:
    """START is reached from one situation alone."""
    assert [seen for seen, step in STEPS.items() if step is Step.START] == [
        DeploymentState(wanted=True, deployed=Deployed.NONE, trust=Trust.VERIFIED, over=False)
    ]


def test_running_then_complete() -> None:
    """In progress the target is Unknown to recommend and says how far it is; complete, its risks decide."""
    world = started("5.0.3")
    assert world.condition("PreflightRunning") == ("True", "TargetStarting")
    assert world.recommended("5.0.3") == ("Unknown", "PreflightRunning")
    assert "5.0.3" not in world.available

    world.report(execution_status="running", message="4 of 7 checks done").settle()
    in_progress = {r.name: r for r in world.version.status.conditional_update_risks}["PreflightInProgress"]
    assert in_progress.message.startswith("Preflight=5.0.3: 4 of 7 checks done")

    world.report(risk("PoolPaused")).settle()
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")
    # The cause comes before the time: a line that is cut short loses the time.
    said = "Preflight of 5.0.3 from 5.0.0: 1 check done, 1 risk applies (as of 2026-01-14T10:"
    assert world.message("PreflightCompleted").startswith(said)
    assert world.risks("5.0.3") == {"PoolPaused": ("True", "PreflightValidation")}
    assert world.recommended("5.0.3") == ("False", "PoolPaused")

    world.report().settle()
    assert world.condition("PreflightCompleted") == ("True", "NoRisksFound")
    assert "5.0.3" in world.available


def test_nothing_is_counted_before_anything_was_judged() -> None:
    """While the cluster is read, "0 risks apply" would be a claim that nobody can make."""
    world = started("5.0.3").report(execution_status="running", message="reading the cluster: 5 of 8 kinds", checks=())
    assert world.settle().message("PreflightRunning") == (
        "Preflight of 5.0.3 from 5.0.0: reading the cluster: 5 of 8 kinds."
    )
    world.report(execution_status="running", message="1 of 7 checks done").settle()
    assert "1 of 7 checks done, 0 risks apply" in world.message("PreflightRunning")


def test_a_risk_reads_as_the_api_wants_it() -> None:
    """Message, rule, url and verdict of docs/decisions/0072 D6."""
    world = started().report(risk("DualStack", message="Dual stack.", url="")).settle()
    found = {r.name: r for r in world.version.status.conditional_update_risks}["DualStack"]
    assert found.message == "Preflight=5.2.0: Dual stack."
    assert [rule.type for rule in found.matching_rules] == ["Always"]
    assert found.url.endswith("DualStack")
    assert found.conditions[0].message == "Risk identified during preflight check for 5.2.0 from 5.0.0."


def test_one_risk_of_two_targets_is_one_entry_with_a_line_for_each() -> None:
    """riskNames say whose it is; the shared entry has a line for each target, each update its own line."""
    world = started("5.2.0").report(risk("Same")).settle()
    world.ask_preflight("5.1.0").settle()
    world.report(risk("Same")).settle()
    shared = [r for r in world.version.status.conditional_update_risks if r.name == "Same"]
    assert [sorted(r.message.split("\n")) for r in shared] == [
        ["Preflight=5.1.0: Same it is.", "Preflight=5.2.0: Same it is."]
    ]
    named = {u.release.version: u.risk_names for u in world.version.status.conditional_updates}
    assert "Same" in named["5.1.0"] and "Same" in named["5.2.0"]
    own = {u.release.version: [r.message for r in u.risks if r.name == "Same"] for u in _conditional(world)}
    assert own["5.1.0"] == ["Preflight=5.1.0: Same it is."]


def _conditional(world: World) -> tuple[ConditionalUpdate, ...]:
    return world.version.status.conditional_updates


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(
            {"risks": (risk("Maybe", applies="Unknown"),)},
            {"Maybe": ("Unknown", "PreflightPartial")},
            id="a risk unknown",
        ),
        pytest.param(
            {"checks": (ReportedCheck(name="Blind", result="Unknown"),)},
            {"PreflightIncomplete": ("Unknown", "PreflightPartial")},
            id="a check unknown that reported no risk",
        ),
    ],
)
def test_could_not_tell_is_never_recommended(report: dict[str, Any], expected: dict[str, tuple[str, str]]) -> None:
    """An unknown result blocks under a name that can be accepted."""
    world = started("5.0.3").report(**report).settle()
    assert world.risks("5.0.3") == expected
    assert world.recommended("5.0.3") == ("Unknown", "PreflightPartial")
    world.accept(*expected).settle()
    assert world.recommended("5.0.3") == ("True", "AllExposedRisksAccepted")


REFUSALS: list[Any] = [
    pytest.param(Update(mode="Frobnicate", version="5.2.0"), "UnknownMode", id="an unknown mode"),
    pytest.param(Update(mode="Preflight"), "TargetMissing", id="no target"),
    pytest.param(Update(mode="Preflight", version="5.7.7"), "TargetNotFound", id="an unknown version"),
    pytest.param(Update(mode="Preflight", version="5.3.0"), "TargetNotFound", id="a node no walk leads to"),
    pytest.param(Update(mode="Preflight", version="five"), "InvalidTargetVersion", id="no version at all"),
    pytest.param(Update(mode="Preflight", version="9.0.0"), "TargetTooFar", id="four majors away"),
    pytest.param(Update(mode="Preflight", image="quay.io/ocp:5.2.0"), "TagNotDigest", id="a tag"),
    pytest.param(
        Update(mode="Preflight", image=image("5.2.0"), version="5.1.0"),
        "VersionMismatch",
        id="image of another version",
    ),
    pytest.param(Update(mode="Preflight", image=OWN), "TargetIsCurrent", id="the running release"),
    pytest.param(
        Update(mode="Preflight", image="x/y@sha256:" + "e" * 64, version="4.22.0"),
        "TargetIsDowngrade",
        id="an older one",
    ),
]


@pytest.mark.parametrize(("desired", "reason"), REFUSALS)
def test_what_cannot_be_checked_is_refused_with_a_reason(desired: Update, reason: str) -> None:
    """One condition with the reason; nothing is started, nothing is updated."""
    world = World.new().settle().ask(desired).settle()
    assert world.condition("PreflightFailed") == ("True", reason)
    assert world.condition("PreflightRunning") == ("False", reason)
    assert world.observed.deployment is None
    assert world.version.status.desired.version == "5.0.0"
    assert world.version.status.observed_generation == world.version.metadata.generation


def test_a_version_that_is_not_found_is_answered_with_those_that_there_are() -> None:
    """Newest first, at most ten, each once."""
    world = World.new().settle().ask_preflight("5.7.7").settle()
    there = world.message("PreflightFailed").partition("from here it knows ")[2].partition(";")[0].split(", ")
    assert there == ["5.2.0", "5.1.0", "5.0.3"]


@pytest.mark.parametrize("mode", ["Preflight", "Frobnicate"])
@pytest.mark.parametrize(
    "gates",
    [
        pytest.param(None, id="no FeatureGate"),
        pytest.param(feature_gate(enabled=GATES, version="4.9.0"), id="no entry for the running version"),
        pytest.param(feature_gate(enabled=("ClusterUpdateAcceptRisks",)), id="gate closed"),
    ],
)
def test_with_the_gate_closed_no_mode_ever_becomes_an_update(mode: str, gates: Any) -> None:
    """Neither a preflight nor an update comes of it, and the condition says which gate."""
    world = World.new().change(feature_gate=gates).settle().ask(Update(mode=mode, version="5.0.3")).settle()
    assert world.observed.deployment is None
    assert world.version.status.desired.version == "5.0.0"
    assert (world.condition("PreflightFailed") or ("", ""))[0] == "True"
    if mode == "Preflight":
        assert "ClusterUpdatePreflight" in world.message("PreflightFailed")


CLOSED = feature_gate(enabled=("ClusterUpdateAcceptRisks",))
REFUSALS: dict[str, Any] = {
    "FeatureGateDisabled": lambda world: world.change(feature_gate=CLOSED),
    "UnknownMode": lambda world: world.ask(Update(mode="Frobnicate", version="5.1.0")),
}


@pytest.mark.parametrize("reason", REFUSALS)
@pytest.mark.parametrize("reported", [True, False], ids=["complete", "before its first report"])
def test_a_preflight_that_ran_is_said_to_have_ended(reason: str, reported: bool) -> None:
    """When its request is refused midway: nothing is said not to have started, in later passes, too."""
    world = World.new().settle().ask_preflight("5.1.0").settle()
    assert world.observed.deployment is not None
    if reported:
        world.report(risk()).settle()
    REFUSALS[reason](world).settle()
    assert world.observed.deployment is None
    for pass_ in range(2):
        assert world.condition("PreflightFailed") == ("True", reason), pass_
        said = [world.message(f"Preflight{type_}") for type_ in ("Running", "Completed", "Failed")]
        start = "The preflight of 5.1.0 from 5.0.0 was ended"
        assert [text.startswith(start) for text in said] == [True] * 3
        assert [("as of" in text) for text in said] == [reported] * 3
        assert not any("started" in text for text in said)
        world.settle()


def test_a_refused_preflight_starts_again_once_its_request_is_accepted() -> None:
    """The record of the ended attempt goes, and with another target nothing is said about it."""
    world = World.new().settle().ask_preflight("5.1.0").settle().change(feature_gate=CLOSED).settle()
    world.ask_preflight("5.2.0").settle()
    assert world.message("PreflightRunning") == "No preflight was started."
    assert world.message("PreflightFailed").startswith(
        "Nothing was started: feature gate ClusterUpdatePreflight is not"
    )
    world.ask_preflight("5.1.0").change(feature_gate=feature_gate(enabled=GATES)).settle()
    assert world.observed.deployment is not None
    assert world.condition("PreflightRunning") == ("True", "TargetStarting")


def test_an_update_after_a_refused_preflight_is_not_called_a_lost_mode() -> None:
    """The preflight had ended before."""
    world = World.new().settle().ask_preflight("5.0.3").settle().change(feature_gate=CLOSED).settle()
    world.ask(Update(version="5.0.3")).settle()
    assert "PreflightBecameUpdate" not in [event.reason for event in world.events]
    assert world.version.status.desired.version == "5.0.3"


def test_an_unknown_mode_is_invalid_too() -> None:
    """The Invalid condition says it in the words of the API server."""
    world = World.new().settle().ask(Update(mode="Frobnicate", version="5.0.3")).settle()
    assert 'spec.desiredUpdate.mode: Unsupported value: "Frobnicate"' in world.message("Invalid")


def test_two_releases_of_one_version_must_be_told_apart() -> None:
    """A version that represents two images is refused; naming one of the images works."""
    world = World.new()
    nodes = [*world.graph["nodes"], {"version": "5.2.0+b", "payload": image("5.7.0")}]
    edges = [*world.graph["edges"], [2, len(nodes) - 1]]
    world.graph = world.graph | {"nodes": nodes, "edges": edges}
    world.settle().ask_preflight("5.2.0").settle()
    assert world.condition("PreflightFailed") == ("True", "AmbiguousTarget")


FAILURES: list[Any] = [
    pytest.param(
        {"state": terminated(message='error: unknown command "preflight" for "cluster-version-operator"')},
        "TargetUnsupported",
        True,
        id="no preflight command",
    ),
    pytest.param(
        {"state": terminated("OOMKilled", 137), "restart_count": 2}, "OOMKilled", True, id="killed for memory"
    ),
    pytest.param(
        {"state": ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff", message="no such image"))},
        "ImagePullFailed",
        False,
        id="image cannot be pulled",
    ),
    *(
        pytest.param(
            {"state": ContainerState(waiting=ContainerStateWaiting(reason=reason, message="why"))},
            reported,
            False,
            id=f"the kubelet waits for {reason}",
        )
        for reason, reported in (
            ("ErrImagePull", "ImagePullFailed"),
            ("InvalidImageName", "ImagePullFailed"),
            ("ErrImageNeverPull", "ImagePullFailed"),
            ("RegistryUnavailable", "ImagePullFailed"),
            ("CreateContainerConfigError", "ContainerNotStarted"),
            ("CreateContainerError", "ContainerNotStarted"),
            ("RunContainerError", "ContainerNotStarted"),
            ("ContainerCannotRun", "ContainerNotStarted"),
        )
    ),
    pytest.param(
        {
            "state": ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
            "last_state": terminated(message="Traceback"),
            "restart_count": 3,
        },
        "TargetCrashed",
        False,
        id="crashes",
    ),
]


@pytest.mark.parametrize(("container", "reason", "final"), FAILURES)
def test_a_target_that_fails(container: dict[str, Any], reason: str, final: bool) -> None:
    """The reason is reported; what does not heal is removed and not started again; the risk can be accepted."""
    world = started().pod(**container).settle()
    assert world.condition("PreflightFailed") == ("True", reason)
    assert (world.observed.deployment is None) is final
    assert world.risks("5.2.0")["PreflightIncomplete"] == ("Unknown", "PreflightFailed")
    if final:
        world.accept("Anything").pass_time(3600).settle()
        assert world.observed.deployment is None
        world.ask(None).settle()
        world.ask_preflight().settle()
        assert world.observed.deployment is not None


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        pytest.param(300, "(ImagePullBackOff): >" + "x" * 298 + "<", id="as long as is told"),
        pytest.param(301, "(ImagePullBackOff): ..." + "x" * 299 + "<", id="a character more"),
    ],
)
def test_of_words_without_end_their_end_is_told(length: int, shown: str) -> None:
    """The kubelet's and the target's own: what went wrong stands last."""
    words = f">{'x' * (length - 2)}<"
    waiting = ContainerStateWaiting(reason="ImagePullBackOff", message=words)
    world = started().pod(state=ContainerState(waiting=waiting)).settle()
    assert shown in world.message("PreflightFailed")


@pytest.mark.parametrize("kills", [1, 2])
def test_killed_for_memory_less_than_three_times_goes_on(kills: int) -> None:
    """One or two kills are tried again."""
    world = started().pod(state=terminated("OOMKilled", 137), restart_count=kills - 1).settle()
    assert world.observed.deployment is not None


def test_a_running_container_with_old_restarts_has_not_crashed() -> None:
    """Restarts of months ago are no failure."""
    running = ContainerState(running=ContainerStateRunning())
    world = started().pod(state=running, last_state=terminated(), restart_count=9).settle()
    assert world.condition("PreflightFailed") == ("False", "AsExpected")


def test_the_time_limit_counts_from_the_deployment_and_keeps_what_was_found() -> None:
    """A restart of the operator does not extend it; partial findings stay, marked."""
    world = started().report(risk("Found"), execution_status="running", message="1 of 9 checks done").settle()
    world.pass_time(599).settle()
    assert world.observed.deployment is not None
    world.pass_time(1).settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")
    assert world.observed.deployment is None
    assert {"Found", "PreflightIncomplete"} <= set(world.risks("5.2.0"))


def test_a_complete_report_ends_the_time_limit() -> None:
    """The target may watch for weeks."""
    world = started().report().settle()
    world.pass_time(10**6).settle()
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")


def test_a_bad_report_keeps_the_last_good_one_and_may_heal() -> None:
    """Reason and message of what was wrong, the earlier risks, and an end when a good report comes."""
    world = started().report(risk("Kept")).settle()
    world.bad_report("TooManyRisks", "the report has 501 risks; an update can carry 200").settle()
    assert world.condition("PreflightFailed") == ("True", "TooManyRisks")
    assert "is kept" in world.message("PreflightFailed")
    assert {"Kept", "PreflightIncomplete"} <= set(world.risks("5.2.0"))
    world.report().settle()
    assert world.condition("PreflightFailed") == ("False", "AsExpected")
    assert set(world.risks("5.2.0")) == {"ClusterVersionGiantHop", "UpdatePathNotOffered"}


def test_a_report_of_another_preflight_is_not_taken() -> None:
    """The ID, source and target must be those that were asked for."""
    world = started().report(target_version="5.1.0").settle()
    assert world.condition("PreflightFailed") == ("True", "ReportMismatch")


def test_another_target_replaces_the_deployment() -> None:
    """The last request wins: the old workload goes first, and one alone runs."""
    world = started("5.2.0")
    first = world.attempt_id
    world.log.clear()
    world.ask_preflight("5.1.0").settle()
    assert world.attempt_id != first
    assert world.container_image == image("5.1.0")
    assert world.log.index("delete Deployment") < world.log.index("apply Deployment")


def test_nothing_new_starts_while_old_pods_end() -> None:
    """Two targets never write to one folder."""
    world = started("5.2.0").pod()
    world.finalizing = True
    world.ask_preflight("5.1.0").settle()
    assert world.observed.deployment is None
    assert world.condition("PreflightRunning") == ("True", "ReplacingTarget")
    world.change(pods=()).settle()
    assert world.container_image == image("5.1.0")


@pytest.mark.parametrize("target", ["5.2.0", "5.1.0"], ids=["the same target", "another target"])
def test_a_deployment_that_is_being_deleted_is_waited_for(target: str) -> None:
    """Whoever deletes it: it is not taken for the one that runs, nor written to, nor deleted again."""
    world = started("5.2.0")
    deployment = world.observed.deployment
    assert deployment is not None
    metadata = with_fields(deployment.metadata, deletion_timestamp=world.now)
    world.change(deployment=with_fields(deployment, metadata=metadata))
    world.log.clear()
    world.ask_preflight(target).settle()
    assert not {"apply Deployment", "delete Deployment"} & set(world.log)
    assert world.condition("PreflightRunning") == ("True", "ReplacingTarget")
    world.change(deployment=None).settle()
    assert world.container_image == image(target)


def test_accepting_a_risk_does_not_start_anew() -> None:
    """A new generation with the same target is the same preflight."""
    world = started().report(risk("Known")).settle()
    before = world.attempt_id
    world.accept("Known").settle()
    assert world.attempt_id == before
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")


def test_an_unsigned_image_starts_only_by_force() -> None:
    """Verification comes before anything of the target runs; force skips it."""
    world = World.new()
    world.trusted = False
    world.settle().ask_preflight("5.0.3").settle()
    assert world.condition("PreflightFailed") == ("True", "ImageVerificationFailed")
    assert world.observed.deployment is None
    assert world.recommended("5.0.3") == ("Unknown", "PreflightFailed")
    world.ask_preflight("5.0.3", force=True).settle()
    assert world.observed.deployment is not None


def test_results_of_five_targets_are_kept_until_the_source_changes() -> None:
    """History keeps five reports, one a target."""
    found = stored_reports.History()
    world = started("5.1.0").report(risk("A")).settle()
    world.ask_preflight("5.2.0").settle()
    world.report(risk("B")).settle()
    world.ask(None).settle()
    assert world.condition("PreflightRunning") is None
    assert "A" in world.risks("5.1.0") and "B" in world.risks("5.2.0")
    base = stored_reports.read(world.observed.history).reports[0]
    for number in range(7):
        found = stored_reports.with_report(found, _of_target(base, number))
    assert len(found.reports) == 5


def _of_target(report: Any, number: int) -> Any:
    from msgspec.structs import replace

    return replace(
        report, preflight_id=f"id-{number}", target_version=f"5.1.{number}", target_image=f"x@sha256:{number}"
    )


def test_where_the_api_takes_no_more_risks_the_target_checked_first_goes() -> None:
    """Three targets of 190 risks each are more than ClusterVersion's 500: the other two are reported."""
    world = World.new().settle()
    for version in ("5.0.3", "5.1.0", "5.2.0"):
        world.ask_preflight(version).settle()
        world.report(*(risk(f"R{number}-{version}") for number in range(190))).settle()
    reported = [risk.name for risk in world.version.status.conditional_update_risks]
    assert len(reported) <= 500
    counts = {version: sum(name.endswith(version) for name in reported) for version in ("5.0.3", "5.1.0", "5.2.0")}
    assert [version for version, count in counts.items() if count] == ["5.1.0", "5.2.0"]


def test_reports_in_config_maps_are_removed_once_nobody_writes_them() -> None:
    """The running preflight's stays, another's goes; with the last pod the last one goes."""
    world = started(service_account="dedicated", report_sink="configmap")
    assert "apply RoleBinding" in world.log
    own = preflight_deployment.report_map(world.attempt_id)
    world.change(report_maps=(own, "preflight-report-preflight-1-0000000000"))
    assert _config_maps_deleted(world.step()) == ["preflight-report-preflight-1-0000000000"]
    assert world.settle().observed.report_maps == (own,)
    assert world.ask(None).settle().observed.report_maps == ()


def _config_maps_deleted(plan: Plan[object]) -> list[str]:
    deletes = (action for action in plan.actions if isinstance(action, Delete))
    return [action.key.name for action in deletes if action.resource.kind == "ConfigMap"]


def test_a_restart_keeps_what_is_known() -> None:
    """Before the update service answers again nothing vanishes, and the running preflight is left alone."""
    world = started().report(risk("Kept")).settle()
    before = (world.available, world.risks("5.2.0"), world.risks("5.1.0"), world.attempt_id)
    from runup.advice.decide.service import ServiceState

    world.change(service=ServiceState(), releases={})
    world.step()
    assert (world.available, world.risks("5.2.0"), world.risks("5.1.0"), world.attempt_id) == before


def test_a_target_outside_both_lists_by_image() -> None:
    """It gets a separate entry, which says that the service does not offer it."""
    world = World.new().settle().ask(Update(mode="Preflight", image=image("5.7.0"), version="5.7.0")).settle()
    world.report(target_version="5.7.0").settle()
    assert world.risks("5.7.0") == {
        "ClusterVersionGiantHop": ("True", "UpdatePrecondition"),
        "UpdatePathNotOffered": ("True", "PreflightValidation"),
    }
    releases = [u.release for u in _conditional(world)]
    assert Release(version="5.7.0", image=image("5.7.0")) in releases


NO_GRAPH = image("5.7.0")


def test_the_version_of_an_image_that_no_graph_knows_is_read_out_of_it() -> None:
    """Nobody has to state it; its signature is verified too."""
    world = World.new().settle().ask(Update(mode="Preflight", image=NO_GRAPH)).settle()
    assert world.container_image == NO_GRAPH
    assert world.deployment_env[2] == "5.7.0"
    assert {VerifyRelease, ReadRelease} <= set(world.ran)


@pytest.mark.parametrize("mode", ["Preflight", ""], ids=["a preflight", "an update"])
def test_nothing_of_an_image_is_read_before_its_signature(mode: str) -> None:
    """Not its version either: what nobody vouches for is not even unpacked, whatever version is stated."""
    world = World.new()
    world.trusted = False
    for version in ("", "5.7.0"):
        world.settle().ask(Update(mode=mode, image=NO_GRAPH, version=version)).settle()
        reported = world.message("PreflightFailed" if mode else "ReleaseAccepted")
        if mode:
            assert f"image {NO_GRAPH} is not trusted, so nothing was started: no signature" in reported
        else:
            # The words are those of an update to a release that the graph knows.
            named = f'version="{version}" image="{NO_GRAPH}"'
            assert reported == f"Retrieving payload failed {named} failure=The update cannot be verified: no signature"
        assert world.plans[-1].requeue_after_s == 60.0
    if mode:
        assert world.condition("PreflightFailed") == ("True", "ImageVerificationFailed")
    assert ReadRelease not in world.ran
    assert world.observed.deployment is None
    assert world.version.status.desired.version == "5.0.0"
    world.trusted = True
    world.pass_time(61).settle()
    assert world.ran.index(VerifyRelease) < world.ran.index(ReadRelease)


def test_what_was_read_under_force_is_forgotten_with_it() -> None:
    """Force waives the signature of its own request, and of no other."""
    world = World.new()
    world.trusted = False
    world.settle().ask(Update(mode="Preflight", image=NO_GRAPH, force=True)).settle()
    assert world.container_image == NO_GRAPH
    world.ask(None).settle().ask(Update(mode="Preflight", image=NO_GRAPH)).settle()
    assert world.condition("PreflightFailed") == ("True", "ImageVerificationFailed")
    assert world.observed.deployment is None


def test_a_stated_version_is_compared_with_the_images_own() -> None:
    """Before anything of the image is started."""
    world = World.new().settle().ask(Update(mode="Preflight", image=NO_GRAPH, version="5.8.0")).settle()
    assert world.observed.deployment is None
    assert world.condition("PreflightFailed") == ("True", "VersionMismatch")


def test_an_image_whose_stated_version_changes_is_another_request() -> None:
    """The attempt for the image does not match the new request; the graph knows its version."""
    asked = Update(mode="Preflight", image=image("5.2.0"), version="5.2.0")
    world = World.new().settle().ask(asked).settle()
    assert world.observed.deployment is not None
    world.ask(with_fields(asked, version="5.1.0")).settle()
    assert world.condition("PreflightFailed") == ("True", "VersionMismatch")


def test_a_stated_version_counts_where_the_image_cannot_be_read() -> None:
    """Nodes may reach a registry that the operator does not."""
    world = World.new()
    world.registry = False
    world.settle().ask(Update(mode="Preflight", image=NO_GRAPH, version="5.7.0")).settle()
    assert world.container_image == NO_GRAPH


def test_an_image_that_cannot_be_read_is_looked_at_again() -> None:
    """After a minute, not at every pass; once it can be read the preflight starts without another request."""
    world = World.new()
    world.registry = False
    world.settle().ask(Update(mode="Preflight", image=NO_GRAPH)).settle()
    assert world.condition("PreflightFailed") == ("True", "TargetUnreadable")
    assert world.plans[-1].requeue_after_s == 60.0
    before = world.ran.count(ReadRelease)
    world.registry = True
    world.pass_time(59).settle()
    assert world.ran.count(ReadRelease) == before
    world.pass_time(2).settle()
    assert world.container_image == NO_GRAPH


def test_an_update_to_an_image_that_cannot_be_read_is_looked_at_again() -> None:
    """The same for an update: the message names the reason, and a later pass succeeds."""
    world = World.new()
    world.registry = False
    world.settle().ask(Update(image=NO_GRAPH)).settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    assert "no answer" in world.message("ReleaseAccepted")
    assert world.plans[-1].requeue_after_s == 60.0
