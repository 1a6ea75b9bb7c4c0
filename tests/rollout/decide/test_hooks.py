"""Case 36: what the extension answers to the hooks of Cluster API, and that it is closed whenever it is not sure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubekit.api.meta_v1 import Condition, ObjectMeta
from runup.api.update_policy_v1alpha1 import RunGate, UpdateRun, UpdateRunSpec, UpdateRunStatus
from runup.rollout.decide.hooks import API, HOOKS, HookRequest, KnownRuns, answer, discovery, read_request
from runup.rollout.decide.plain_cluster import release_of

NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
SERVED = ("clusters", "harbour")
LOST = "the API server does not answer"


def run_of(version: str, status: str = "False", reason: str = "OutsideWindow", **fields: Any) -> UpdateRun:
    """A run with this condition GatesOpen."""
    conditions = (Condition(type="GatesOpen", status=status, reason=reason, message="m"),) if status else ()
    state = UpdateRunStatus(conditions=conditions, **fields)
    return UpdateRun(metadata=ObjectMeta(name="r"), spec=UpdateRunSpec(target=release_of(version)), status=state)


def until(moment: datetime) -> tuple[RunGate, ...]:
    """An open gate that ends then."""
    return (RunGate(name="window", state="Open", reason="InWindow", until=moment),)


OPEN = run_of("v1.35.1", "True", "AllOpen")
FURTHER = run_of("v1.36.0", "True", "AllOpen")
LATCHED = run_of("v1.35.1", "True", "Latched")


@pytest.mark.parametrize(
    ("runs", "problem", "version", "expected"),
    [
        pytest.param((OPEN,), "", "v1.35.1", "", id="all gates are open"),
        pytest.param((run_of("v1.35.1"),), "", "v1.35.1", "UpdateRun r is not open, OutsideWindow: m", id="one is not"),
        pytest.param((run_of("v1.35.1", ""),), "", "v1.35.1", "UpdateRun r is not open, NotEvaluated.", id="a new run"),
        pytest.param((run_of("v1.35.1", "Unknown"),), "", "v1.35.1", "is not open", id="unknown is not open"),
        pytest.param((), "", "v1.35.1", "No UpdateRun leads to v1.35.1", id="no run"),
        pytest.param((OPEN,), "", "v1.36.0", "No UpdateRun leads to v1.36.0", id="a version that no run has"),
        pytest.param((OPEN,), "", "v1.35.2", "No UpdateRun leads to v1.35.2", id="another patch"),
        pytest.param((FURTHER,), "", "v1.35.4", "", id="a version on the way to a later one"),
        pytest.param((run_of("v1.36.0"),), "", "v1.35.4", "is not open", id="on the way, closed"),
        pytest.param(
            (run_of("v1.36.0", "True", "Latched", step="Done"),),
            "",
            "v1.35.4",
            "No UpdateRun leads",
            id="after the end",
        ),
        pytest.param((OPEN, run_of("v1.35.1")), "", "v1.35.1", "is not open", id="the newest run counts"),
        pytest.param((OPEN,), LOST, "v1.35.1", "is not known: the API server does not answer", id="out of date"),
        pytest.param((), LOST, "v1.35.1", "does not answer", id="never read"),
        pytest.param((LATCHED,), LOST, "v1.35.1", "", id="begun: open while the API server does not answer"),
        pytest.param(
            (run_of("v1.35.1", "True", "AllOpen", gates=until(NOW)),),
            "",
            "v1.35.1",
            "the gate window was open until",
            id="no controller evaluates",
        ),
        pytest.param(
            (run_of("v1.35.1", "True", "AllOpen", gates=until(NOW + timedelta(seconds=1))),),
            "",
            "v1.35.1",
            "",
            id="open for another second",
        ),
    ],
)
@pytest.mark.parametrize("hook", HOOKS)
def test_36_answers(runs: Any, problem: str, version: str, expected: str, hook: str) -> None:
    """0 seconds let the step begin, 60 with a reason do not; the answer itself always succeeds."""
    request = HookRequest(hook=hook, namespace="clusters", name="harbour", version=version)
    given = answer(request, KnownRuns(runs=runs, problem=problem), SERVED, NOW)
    assert (given["apiVersion"], given["kind"], given["status"]) == (API, f"{hook}Response", "Success")
    assert given["retryAfterSeconds"] == (60 if expected else 0)
    assert expected in given["message"]


def test_36_another_cluster_waits() -> None:
    """The gate of one Cluster never opens that of another."""
    request = HookRequest(hook=HOOKS[0], namespace="clusters", name="island", version="v1.35.1")
    given = answer(request, KnownRuns(runs=(OPEN,)), SERVED, NOW)
    assert (given["retryAfterSeconds"], "clusters/harbour" in given["message"]) == (60, True)


def body(hook: str, **fields: Any) -> dict[str, Any]:
    """A request of Cluster API."""
    cluster = {"metadata": {"namespace": "clusters", "name": "harbour"}}
    return {"apiVersion": API, "kind": f"{hook}Request", "cluster": cluster, "toKubernetesVersion": "v1.36.0", **fields}


@pytest.mark.parametrize(
    ("hook", "fields", "version"),
    [
        ("BeforeClusterUpgrade", {"controlPlaneUpgrades": [{"version": "v1.35.1"}, {"version": "v1.36.0"}]}, "v1.35.1"),
        ("BeforeClusterUpgrade", {}, "v1.36.0"),
        ("BeforeControlPlaneUpgrade", {"controlPlaneUpgrades": [{"version": "v1.37.0"}]}, "v1.36.0"),
        ("BeforeWorkersUpgrade", {}, "v1.36.0"),
    ],
)
def test_36_each_step_has_its_version(hook: str, fields: dict[str, Any], version: str) -> None:
    """The first call is about the first minor version, the others about theirs."""
    read = read_request(hook, body(hook, **fields))
    assert read == HookRequest(hook=hook, namespace="clusters", name="harbour", version=version)


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {},
        body("BeforeWorkersUpgrade", apiVersion="v1"),
        body("BeforeWorkersUpgrade", kind="List"),
        body("BeforeWorkersUpgrade", cluster=None),
        body("BeforeWorkersUpgrade", cluster={"metadata": []}),
        body("BeforeWorkersUpgrade", cluster={"metadata": {"name": "a"}}),
        body("BeforeWorkersUpgrade", toKubernetesVersion=None),
        body("BeforeWorkersUpgrade", toKubernetesVersion="new"),
    ],
)
def test_refuses_what_is_no_request(broken: Any) -> None:
    """A request that cannot be read has an error, and no answer that could open."""
    assert isinstance(read_request("BeforeWorkersUpgrade", broken), str)


def test_discovery_fails_closed() -> None:
    """A hook without an answer stops the update, and Cluster API waits for five seconds."""
    handlers = discovery()["handlers"]
    assert [each["requestHook"]["hook"] for each in handlers] == list(HOOKS)
    assert {(each["failurePolicy"], each["timeoutSeconds"]) for each in handlers} == {("Fail", 5)}
