"""What the status as it was remembers: since when findings are known, and since when conditions are so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b

from kubekit.api import codec
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.updatestatus.decide.memory import PreviousStatus

EARLIER = "2026-03-01T09:00:00Z"
LATER = "2026-03-01T09:30:00Z"


def health(uid: str, check: str, *names: str, **times: str) -> dict[str, Any]:
    """An insight about these nodes."""
    resources = [{"resource": "nodes", "name": name} for name in names]
    impact = {"level": "Error", "type": "None", "summary": "s"}
    found = {"check": check, "scope": {"type": "WorkerPool", "resources": resources}, "impact": impact, **times}
    return {"uid": uid, "acquiredAt": EARLIER, "type": "Health", "health": found}


def memory(*insights: dict[str, Any], of_pool: tuple[dict[str, Any], ...] = ()) -> PreviousStatus:
    """Of a status with these insights."""
    ref = {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": "worker"}
    pool = {"name": "worker", "resource": ref, "informers": [{"name": "i", "insights": [*of_pool]}]}
    layer = {"informers": [{"name": "i", "insights": [*insights]}]}
    return PreviousStatus(codec.convert(UpdateStatusStatus, {"controlPlane": layer, "workerPools": [pool]}), b.NOW)


KNOWN = {"firstObservedAt": LATER}


@pytest.mark.parametrize(
    ("insights", "known"),
    [
        pytest.param([], {}, id="none"),
        pytest.param([health("u", "M", "n", **KNOWN)], {"n": LATER}, id="when it was first seen"),
        pytest.param([health("u", "M", "n", **KNOWN, startedAt=EARLIER)], {"n": EARLIER}, id="when it began"),
        pytest.param([health("u", "M", "n")], {}, id="nobody knows when"),
        pytest.param([health("u", "M", **KNOWN)], {}, id="about nothing"),
        pytest.param([health("u", "M", "n", "o", **KNOWN)], {"n": LATER}, id="of several the first"),
        pytest.param([health("u", "A", "n", **KNOWN), health("v", "Z", "o", **KNOWN)], {}, id="of other checks"),
        pytest.param(
            [health("u", "A", "n", **KNOWN), health("v", "M", "o", startedAt=EARLIER), health("w", "M", "p", **KNOWN)],
            {"o": EARLIER, "p": LATER},
            id="two among others",
        ),
    ],
)
@pytest.mark.parametrize("in_pool", [False, True], ids=["control plane", "a pool"])
def test_since_when_findings_are_known(insights: list[dict[str, Any]], known: dict[str, str], in_pool: bool) -> None:
    """By the first object that each is about, in every layer."""
    found = (memory(of_pool=tuple(insights)) if in_pool else memory(*insights)).findings("M")
    assert {name: f"{since:%Y-%m-%dT%H:%M:%SZ}" for name, since in found.items()} == known


def test_nobody_has_watched_before() -> None:
    """Then nothing is known."""
    new = PreviousStatus(None, b.NOW)
    assert not new.was_watched
    assert memory().was_watched
    assert (new.findings("M"), new.findings_of({"M"}), new.health("", "u"), new.cluster_version("u")) == (
        {},
        {},
        None,
        None,
    )
    assert new.operators_awaited("u") == {}


def test_an_insight_is_found_in_its_own_layer() -> None:
    """And by its uid."""
    found = memory(health("u", "M", "n"), of_pool=(health("v", "M", "n"),))
    layers = [(layer, uid) for layer in ("", "worker", "other") for uid in "uv" if found.health(layer, uid)]
    assert layers == [("", "u"), ("worker", "v")]


@pytest.mark.parametrize(("status", "kept"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_condition_is_as_old_as_its_status(status: Any, kept: bool) -> None:
    """Whatever else of it changes; of another type none is taken."""
    since = b.NOW - timedelta(hours=1)
    old = [b.cond("B", status, since=since - timedelta(hours=1)), b.cond("A", "True", "R", "m", since)]
    (found,) = PreviousStatus(None, b.NOW).conditions(old, ("A", status, "S", "n"))
    assert (found.status, found.reason, found.message) == (status, "S", "n")
    assert found.last_transition_time == (since if kept else b.NOW)
