"""Paths of several hops: which releases, when a hop starts, and which pools stay paused. Numbers are those of cases."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.decide.test_pools import BEHIND, LISTED, NEXT, OWN, pool, seen
from tests.rollout.decide.test_run_steps import (
    CLOSED,
    HOUR,
    MINUTE,
    OURS,
    PREFLIGHT,
    after,
    cluster,
    deleted,
    entry,
    run_of,
    situation,
    withdrawn,
)
from tests.rollout.observed_cluster import DIGEST, IMAGE, NIGHTS, NOW, OTHER_IMAGE, approval, observed

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node, NodeStatus, NodeSystemInfo
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.error_types import InputError
from runup.advice.decide.graph import parse_graph
from runup.api.config_v1 import ClusterVersion, Update
from runup.api.update_policy_v1alpha1 import (
    ApprovalGate,
    Candidate,
    PolicyGates,
    RunHop,
    UpdateApprovalSpec,
    UpdateRun,
)
from runup.rollout.control.controller import desired_update
from runup.rollout.decide.approvals import new_approval
from runup.rollout.decide.gates.all_gates import evaluate
from runup.rollout.decide.gates.observed import Approvals
from runup.rollout.decide.hops import Path, find_path, pools_may_wait
from runup.rollout.decide.run_steps import decide, verdict_of_begun

LAST = Candidate(version="5.2.0", image=OTHER_IMAGE)
HOPS = (RunHop(version="5.1.0", image=IMAGE), RunHop(version="5.2.0", image=OTHER_IMAGE))
PATH = Path(hops=(Candidate(version="5.1.0", image=IMAGE), LAST))
LATER = Update(version="5.2.0", image=OTHER_IMAGE)
FIRST_DONE = (entry("Completed"),)


def graph(*edges: tuple[int, int], risky: tuple[str, str] | None = None, tag: str = "") -> Any:
    """A graph of 5.0.3, 5.1.0, 5.1.1, 5.2.0 and 5.3.0 with these updates; `tag` is a release without a digest."""
    versions = ["5.0.3", "5.1.0", "5.1.1", "5.2.0", "5.3.0"]
    nodes = [
        {"version": each, "payload": f"r:{each}" if each == tag else f"r@sha256:{place:064}"}
        for place, each in enumerate(versions)
    ]
    risks = [{"name": "A", "url": "u", "message": "m", "matchingRules": [{"type": "Always"}]}]
    conditional = [{"edges": [{"from": risky[0], "to": risky[1]}], "risks": risks}] if risky else []
    return parse_graph(json.dumps({"nodes": nodes, "edges": edges, "conditionalEdges": conditional}).encode())


STEPS = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))


@pytest.mark.parametrize(
    ("found", "settings", "hops", "problem"),
    [
        pytest.param(graph(*STEPS), {}, ("5.1.1", "5.2.0"), "", id="26: by the newest release of the minor version"),
        pytest.param(
            graph(*STEPS), {"block_versions": ("5.1.1",)}, ("5.1.0", "5.2.0"), "", id="26: not by a blocked release"
        ),
        pytest.param(
            graph(*STEPS, tag="5.1.1"), {}, ("5.1.0", "5.2.0"), "", id="26: not by a release without a digest"
        ),
        pytest.param(
            graph(*STEPS), {"max_hops": 1}, (), "the path to 5.2.0 has 2 hops, and maxHops is 1", id="26: too long"
        ),
        pytest.param(
            graph((0, 3)),
            {},
            (),
            "no path from 5.0.3 to 5.2.0 in supported steps",
            id="26: no step of two minor versions",
        ),
        pytest.param(
            graph((0, 1), risky=("5.1.0", "5.2.0")), {}, ("5.1.0", "5.2.0"), "", id="26: by an update with risks"
        ),
        pytest.param(
            graph(*STEPS),
            {"target": Candidate(version="5.2.0", image=IMAGE)},
            (),
            "5.2.0 is offered as r@sha256:",
            id="4: another image",
        ),
        pytest.param(
            graph(*STEPS), {"target": Candidate(version="x", image="")}, (), "is not a version", id="26: no version"
        ),
    ],
)
def test_26_the_path_is_chosen_from_the_graph(
    found: Any, settings: dict[str, Any], hops: tuple[str, ...], problem: str
) -> None:
    """The shortest path in supported steps, each release by digest."""
    fields: dict[str, Any] = {"target": Candidate(version="5.2.0", image=""), "max_hops": 4} | settings
    path = find_path(found, "5.0.3", fields.pop("target"), **fields)
    assert tuple(each.version for each in path.hops) == hops
    assert problem in path.problem
    assert bool(path.problem) is bool(problem)


def test_26_a_running_version_that_is_not_known() -> None:
    """The problem names it, rather than a graph without a path."""
    path = find_path(graph(*STEPS), "", LAST, max_hops=2)
    assert path.problem == "the running version or 5.2.0 is not a version"


def path_run(step: Any = "BetweenHops", hop: int = 1, **spec: Any) -> UpdateRun:
    """A run on the path, after its first hop unless `hop` is 0."""
    run = run_of(max_hops=2, **spec)
    status = replace(run.status, step=step, hop=hop, hops=HOPS)
    if hop or step == "ControlPlane":
        status = replace(status, started=NOW - HOUR, gated=True)
    return replace(run, spec=replace(run.spec, target=LAST), status=status)


def paused(run: UpdateRun) -> UpdateRun:
    """The run with pool worker paused."""
    return replace(run, status=replace(run.status, paused_pools=(LISTED,)))


def node(kubelet: str) -> Node:
    """A node with this kubelet."""
    return Node(metadata=ObjectMeta(name=kubelet), status=NodeStatus(node_info=NodeSystemInfo(kubelet_version=kubelet)))


NEAR = {"nodes": (node("v1.33.2"), node("v1.32.1"))}
FAR = {"nodes": (node("v1.33.2"), node("v1.30.1"))}


def first_done(desired: Update | None = OURS, **changes: Any) -> ClusterVersion:
    """A cluster that runs the first hop."""
    return cluster(*FIRST_DONE, desired=desired, **changes)


@pytest.mark.parametrize(
    ("run", "found", "step", "reason", "act"),
    [
        pytest.param(
            path_run("ControlPlane", 0),
            seen(pool(), found=first_done(), **NEAR),
            "BetweenHops",
            "Completed",
            "",
            id="26",
        ),
        pytest.param(
            paused(path_run("ControlPlane", 0, pools=NEXT)),
            seen(OWN, found=first_done(), **NEAR),
            "BetweenHops",
            "Completed",
            "",
            id="26: pools stay paused",
        ),
        pytest.param(
            paused(path_run("ControlPlane", 0, pools=NEXT)),
            seen(OWN, found=first_done(), **FAR),
            "Pools",
            "Completed",
            "",
            id="26: kubelets would be too old after the next hop",
        ),
        pytest.param(
            paused(path_run("ControlPlane", 0, pools=NEXT)),
            seen(OWN, found=first_done()),
            "Pools",
            "Completed",
            "",
            id="26: kubelets are not known",
        ),
        pytest.param(
            path_run("ControlPlane", 0),
            seen(BEHIND, found=first_done(), **NEAR),
            "Pools",
            "Completed",
            "",
            id="26: Together",
        ),
        pytest.param(
            path_run("Pools", 0),
            seen(pool(), found=first_done()),
            "BetweenHops",
            "PoolsUpdated",
            "",
            id="26: after its pools",
        ),
        pytest.param(
            paused(path_run(pools=NEXT)),
            seen(OWN, found=first_done(), verdict=CLOSED),
            "BetweenHops",
            "",
            "preflight",
            id="26: a red report keeps the pools paused",
        ),
        pytest.param(
            paused(path_run(pools=NEXT)), seen(OWN, found=first_done()), "Committing", "AllOpen", "", id="26: fixed"
        ),
        pytest.param(
            path_run(),
            seen(found=first_done(), verdict=evaluate(observed(calendars=(NIGHTS,)), NOW + timedelta(days=1))),
            "BetweenHops",
            "",
            "preflight",
            id="17: the next hop waits for a window",
        ),
        pytest.param(path_run(), seen(found=first_done(), verdict=withdrawn), "BetweenHops", "", "preflight", id="29"),
        pytest.param(
            path_run(),
            seen(found=first_done(), candidate=Candidate(version="5.2.1", image=IMAGE)),
            "Committing",
            "AllOpen",
            "",
            id="28: a path that has begun is not superseded",
        ),
        pytest.param(path_run(control="Skip"), seen(found=first_done()), "Committing", "AllOpen", "", id="32: no skip"),
        pytest.param(
            path_run(control="Abort"), seen(found=first_done()), "Aborted", "Aborted", "", id="32: between hops"
        ),
        pytest.param(
            paused(path_run(pools=NEXT, control="Abort")),
            seen(OWN, found=first_done()),
            "Aborted",
            "Aborted",
            "",
            id="32: pools stay paused",
        ),
        pytest.param(
            path_run(control="Abort"),
            seen(found=first_done(replace(PREFLIGHT, version="5.2.0", image=OTHER_IMAGE)), owns_request=True),
            "BetweenHops",
            "",
            "withdraw",
            id="32: the check of the next hop ends before",
        ),
        pytest.param(deleted(path_run()), seen(found=first_done()), "Aborted", "Aborted", "", id="61: between hops"),
        pytest.param(
            path_run("Committing"), seen(found=first_done(), verdict=CLOSED), "BetweenHops", "Held", "", id="31: held"
        ),
        pytest.param(
            path_run("Committing"),
            seen(found=first_done(LATER), owns_request=True),
            "ControlPlane",
            "StartedUngated",
            "",
            id="50: the request is there",
        ),
        pytest.param(
            path_run(),
            seen(found=cluster(entry("Completed", OTHER_IMAGE, "5.2.0"), *FIRST_DONE)),
            "Soaking",
            "Completed",
            "",
            id="30: a person did the last hop",
        ),
        pytest.param(
            path_run("ControlPlane"),
            seen(found=cluster(entry("Completed", OTHER_IMAGE, "5.2.0"), *FIRST_DONE), **NEAR),
            "Soaking",
            "Completed",
            "",
            id="26: the last hop",
        ),
    ],
)
def test_26_steps_of_a_path(run: UpdateRun, found: Any, step: str, reason: str, act: str) -> None:
    """Each hop waits for its own gates, and pools stay paused as long as their kubelets may."""
    outcome = decide(run, found, NOW)
    last = outcome.status.decisions[-1].reason if outcome.status.decisions else ""
    assert (outcome.status.step, last, outcome.act) == (step, reason, act)


def test_26_the_hops_are_stored_before_anything_else() -> None:
    """A run without its path starts nothing; the path is chosen once."""
    run = replace(run_of(max_hops=2), spec=replace(run_of(max_hops=2).spec, target=LAST))
    assert decide(run, situation(verdict=CLOSED), NOW).status.hops == ()
    chosen, outcome = after(run, situation(path=PATH))
    assert (chosen.status.hops, chosen.status.step, outcome.act) == (HOPS, "Waiting", "")
    again, outcome = after(chosen, situation(path=Path(hops=(LAST,))), situation())
    assert (again.status.hops, outcome.act) == (HOPS, "commit")
    assert desired_update("commit", again, None) == {"version": "5.1.0", "image": IMAGE}


def test_26_gates_are_those_of_the_next_hop() -> None:
    """Between hops the condition and the verdict are not latched, so no tool starts the next hop early."""
    run, _ = after(path_run(), seen(found=first_done(), verdict=CLOSED))
    condition = find(run.status.conditions, "GatesOpen")
    assert condition is not None
    assert (condition.status, condition.reason, verdict_of_begun(run)) == ("False", "Held", None)
    progressing = find(run.status.conditions, "Progressing")
    assert progressing is not None
    assert (progressing.status, progressing.reason) == ("True", "BetweenHops")


def test_26_each_hop_has_its_own_deadline_and_times() -> None:
    """A path may wait for weeks between hops without a failure."""
    later = NOW + timedelta(days=20)
    run, _ = after(path_run(), seen(found=first_done()), now=later)
    run, _ = after(run, seen(found=first_done(LATER), owns_request=True), now=later)
    assert [each.started for each in run.status.hops] == [None, later]
    partial = cluster(entry(image=OTHER_IMAGE, version="5.2.0"), *FIRST_DONE, desired=LATER)
    assert after(run, seen(found=partial), now=later + 4 * HOUR - MINUTE)[0].status.step == "ControlPlane"
    assert after(run, seen(found=partial), now=later + 4 * HOUR)[0].status.step == "Failed"


@pytest.mark.parametrize(
    ("kubelets", "may"),
    [
        (("v1.33.2", "v1.31.1"), True),
        (("v1.33.2", "v1.30.1"), False),
        (("v1.25.2", "v1.24.1"), True),
        (("v1.26.2", "v1.24.1"), False),
        (("v1.33.2", ""), False),
        ((), False),
    ],
)
def test_26_pools_wait_within_the_skew(kubelets: tuple[str, ...], may: bool) -> None:
    """Three minor versions behind, two for kubelets before 1.25; what is not known is not supported."""
    status = path_run("ControlPlane", 0).status
    assert pools_may_wait(status, tuple(map(node, kubelets))) is may
    major = replace(status, hops=(replace(HOPS[0], version="4.23.0"), HOPS[1]))
    assert not pools_may_wait(major, (node("v1.33.2"),))
    unknown = replace(status, hops=(replace(HOPS[0], version="five"), HOPS[1]))
    assert not pools_may_wait(unknown, (node("v1.33.2"),))


def test_2_a_complete_request_does_not_prevent_the_next_preflight() -> None:
    """The request of an earlier update stays in ClusterVersion; one that is not complete is not replaced."""
    old = Update(version="5.0.3", image="r@sha256:" + "1" * 64)
    assert decide(run_of(), situation(cluster(desired=old), CLOSED), NOW).act == "preflight"
    partial = cluster(entry(image=OTHER_IMAGE, version="5.2.0"), desired=LATER)
    assert decide(run_of(), situation(partial, CLOSED), NOW).act == ""


def test_29_a_release_that_is_withdrawn_during_the_update() -> None:
    """The update continues, the condition stays, and no later hop starts."""
    gone = Condition(type="RetrievedUpdates", status="False", reason="VersionNotFound")
    run = path_run("ControlPlane", 0)
    running = cluster(entry(), desired=OURS, conditions=(gone,))
    run, outcome = after(run, situation(running), situation(running))
    assert (run.status.step, outcome.act) == ("ControlPlane", "")
    assert [each.reason for each in run.status.decisions] == ["WithdrawnDuring"]
    run, _ = after(run, seen(found=first_done(), **NEAR))
    condition = find(run.status.conditions, "TargetWithdrawn")
    assert condition is not None
    assert (run.status.step, condition.reason, condition.message) == ("BetweenHops", "WithdrawnDuring", "5.1.0")
    [gate] = [each for each in evaluate(observed(withdrawn="5.1.0"), NOW).gates if each.name == "target"]
    assert (gate.state, gate.reason) == ("Closed", "TargetWithdrawn")


@pytest.mark.parametrize(
    ("problem", "unknown", "state", "reason"),
    [("no path", False, "Closed", "NoPath"), ("no answer", True, "Unknown", "GraphNotAnswering")],
)
def test_26_a_run_without_a_path_waits(problem: str, unknown: bool, state: str, reason: str) -> None:
    """The gate of the target names the problem."""
    verdict = evaluate(observed(path_problem=problem, path_unknown=unknown), NOW)
    [gate] = [each for each in verdict.gates if each.name == "target"]
    assert (gate.state, gate.reason, problem in gate.message) == (state, reason, True)


SECOND = "sha256:" + "6" * 64


@pytest.mark.parametrize(
    ("scope", "digests", "state"),
    [
        ("Run", (DIGEST, SECOND), "Open"),
        ("Run", (DIGEST,), "Closed"),
        ("Hop", (DIGEST,), "Open"),
        ("Hop", (SECOND,), "Closed"),
    ],
)
def test_31_approvals_of_a_path(scope: Any, digests: tuple[str, ...], state: str) -> None:
    """An approval of the run covers all hops and counts for each; one of a hop counts for that hop alone."""
    gates = PolicyGates(approvals=(ApprovalGate(name="cab", scope=scope),))
    given = Approvals(given=(approval(image_digests=digests),))
    verdict = evaluate(observed(gates=gates, approvals=given, hop_digests=(DIGEST, SECOND)), NOW)
    [gate] = [each for each in verdict.gates if each.name == "approval cab"]
    assert gate.state == state


@pytest.mark.parametrize(("scope", "digests"), [("Run", (DIGEST, SECOND)), ("Hop", (SECOND,))])
def test_31_an_approval_is_given_for_the_hops(scope: Any, digests: tuple[str, ...]) -> None:
    """Between hops an approval still counts, and it is refused before the path is known."""
    run = path_run(gates=PolicyGates(approvals=(ApprovalGate(name="cab", scope=scope),)))
    wanted = UpdateApprovalSpec(run="", gate="cab", approved_by="jane", image_digests=())
    assert new_approval(run, wanted, NOW).image_digests == digests
    with pytest.raises(InputError, match=r"path .* is not known yet"):
        new_approval(replace(run, status=replace(run.status, hops=(), hop=0, started=None)), wanted, NOW)
