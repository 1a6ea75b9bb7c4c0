"""What evaluates a cluster after kills: it finds each fault that it is there for, and none in an undisturbed round."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bench.hostile.truth import OPERATOR, STATUS_CONTROLLER, TARGET, Placed, Revision, Write, problems
from msgspec.structs import replace

from kubekit.api import codec
from runup.api.config_v1 import ClusterVersion, UpdateHistory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RISKS = frozenset({"NodeCordoned", "MachineConfigPoolPaused-infra"})
FIRST = UpdateHistory(
    state="Completed", started_time=NOON, version="5.0.0", image="five", completion_time=NOON + timedelta(minutes=1)
)
BEGUN = UpdateHistory(state="Partial", started_time=NOON + timedelta(hours=1), version="5.0.1", image="patch")
DONE = replace(BEGUN, state="Completed", completion_time=NOON + timedelta(hours=2))
BACK = UpdateHistory(state="Partial", started_time=NOON + timedelta(hours=3), version="5.0.0", image="five")
BACK_DONE = replace(BACK, state="Completed", completion_time=NOON + timedelta(hours=4))
ROUND = (
    Revision(10, (FIRST,), requested=False),
    Revision(20, (FIRST,), risks=frozenset({"NodeCordoned"})),
    Revision(30, (FIRST,), risks=RISKS),
    Revision(40, (FIRST,), asked="5.0.1", risks=RISKS),
    Revision(50, (BEGUN, FIRST), asked="5.0.1"),
    Revision(60, (DONE, FIRST), asked="5.0.1"),
    Revision(70, (BACK, DONE, FIRST), asked="5.0.0"),
    Revision(80, (BACK_DONE, DONE, FIRST), asked="5.0.0"),
    Revision(90, (BACK_DONE, DONE, FIRST), requested=False),
)
PLACED = (
    *(Placed(number, name, "5.0.0") for number, name in ((1, "etcd"), (2, "storage"), (75, "etcd"), (76, "storage"))),
    *(Placed(number, name, "5.0.1") for number, name in ((51, "etcd"), (52, "storage"))),
)
WRITES = (
    Write(OPERATOR, "one", "clusterversions", "status"),
    Write(STATUS_CONTROLLER, "first", "updatestatuses", "status"),
    Write(OPERATOR, "one", "deployments"),
    Write(OPERATOR, "two", "leases"),
    Write(OPERATOR, "one", "leases"),
    Write(OPERATOR, "two", "clusterversions", "status"),
    Write(STATUS_CONTROLLER, "first", "updatestatuses", "status"),
    Write("runup", "", "clusterversions"),
)


def at(number: int, **changes: Any) -> dict[str, Any]:
    """The round with another revision of that number."""
    return {"revisions": tuple(each._replace(**changes) if each.number == number else each for each in ROUND)}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, [], id="an undisturbed round"),
        pytest.param({"revisions": (), "placed": (), "writes": ()}, [], id="nothing has happened yet"),
        pytest.param(
            at(50, asked=""),
            ["revision 50: the update to 5.0.1 began while no update was requested"],
            id="an update begins by itself",
        ),
        pytest.param(
            at(50, asked="5.0.2"),
            ["revision 50: the update to 5.0.1 began while 5.0.2 was requested"],
            id="an update to another release begins",
        ),
        pytest.param(
            at(30, history=(replace(FIRST, started_time=NOON + timedelta(seconds=1)),)),
            [
                "revision 30: the history went from 5.0.0 Completed to 5.0.0 Completed",
                "revision 40: the history went from 5.0.0 Completed to 5.0.0 Completed",
            ],
            id="an entry of the history was begun at another time",
        ),
        pytest.param(
            at(60, history=(DONE,)),
            [
                "revision 60: the history went from 5.0.1 Partial, 5.0.0 Completed to 5.0.1 Completed",
                "revision 70: the history went from 5.0.1 Completed to 5.0.0 Partial, 5.0.1 Completed, 5.0.0 Completed",
            ],
            id="an entry is forgotten",
        ),
        pytest.param(
            at(50, history=(replace(BEGUN, completion_time=NOON + timedelta(hours=2)), FIRST)),
            [
                "revision 50: 5.0.1 is Partial with completion time 2026-01-01 14:00:00+00:00",
            ],
            id="what is on its way has an end",
        ),
        pytest.param(
            at(80, history=(replace(BACK_DONE, completion_time=NOON), DONE, FIRST)),
            [
                "revision 90: the history went from 5.0.0 Completed, 5.0.1 Completed, 5.0.0 Completed to "
                "5.0.0 Completed, 5.0.1 Completed, 5.0.0 Completed",
                "revision 80: 5.0.0 was completed before it was started",
            ],
            id="completed before it was started",
        ),
        pytest.param(
            at(40, risks=frozenset({"NodeCordoned"})),
            ["revision 40: lost MachineConfigPoolPaused-infra"],
            id="a risk is lost",
        ),
        pytest.param(at(40, requested=False, risks=frozenset()), [], id="risks may go with the request"),
        pytest.param(
            {"placed": (*PLACED, Placed(41, "etcd", "5.0.1"))},
            ["revision 41: etcd became of 5.0.1 while the cluster went to 5.0.0"],
            id="a manifest comes before its update",
        ),
        pytest.param(
            {"placed": (*PLACED, Placed(61, "etcd", "5.0.0"))},
            ["revision 61: etcd became of 5.0.0 while the cluster went to 5.0.1"],
            id="a manifest of the release before comes back",
        ),
        pytest.param(
            {"writes": (*WRITES, WRITES[0])},
            [f"{OPERATOR} in pod one wrote clusterversions after pod two had begun"],
            id="the one before writes beside the next one",
        ),
        pytest.param(
            {"writes": (Write(OPERATOR, "one", "clusterversions"),)},
            [f"{OPERATOR} wrote the spec of the ClusterVersion"],
            id="an operator requests something",
        ),
        pytest.param({"writes": (Write(TARGET, "one", "nodes"),)}, ["a target wrote nodes"], id="a target writes"),
    ],
)
def test_what_is_found(changed: dict[str, Any], expected: list[str]) -> None:
    """Each fault by the revision at which it was seen."""
    given = {"revisions": ROUND, "placed": PLACED, "writes": WRITES} | changed
    assert [*problems(**given, expected=RISKS)] == expected


def audited(verb: str = "patch", code: int = 200, **changes: Any) -> dict[str, Any]:
    """An event of the audit log."""
    return {
        "verb": verb,
        "responseStatus": {"code": code},
        "userAgent": f"{OPERATOR}/1.0",
        "user": {"username": "who", "extra": {"authentication.kubernetes.io/pod-uid": ["one"]}},
        "objectRef": {"resource": "clusterversions", "subresource": "status"},
    } | changes


@pytest.mark.parametrize(
    ("event", "write"),
    [
        (audited(), Write(OPERATOR, "one", "clusterversions", "status")),
        (audited(user={"username": "admin"}, objectRef={}), Write(OPERATOR, "", "")),
        (audited("watch"), None),
        (audited(code=409), None),
    ],
    ids=["by a pod", "by a person", "only read", "refused"],
)
def test_what_the_audit_log_says(event: dict[str, Any], write: Write | None) -> None:
    """Who wrote what, and nothing of what was not carried out."""
    assert Write.of(event) == write


@pytest.mark.parametrize(
    ("desired", "asked", "requested"),
    [
        ({"version": "5.0.1"}, "5.0.1", True),
        ({"version": "5.0.1", "mode": "Preflight"}, "", True),
        (None, "", False),
    ],
    ids=["an update", "a preflight", "nothing"],
)
def test_what_a_revision_asks_for(desired: dict[str, Any] | None, asked: str, requested: bool) -> None:
    """A preflight is no request for an update; risks are those of the target alone."""
    update = {"conditions": [], "risks": []}
    given = {
        "metadata": {"name": "version", "resourceVersion": "7"},
        "spec": {"clusterID": "id", **({"desiredUpdate": desired} if desired else {})},
        "status": {
            "conditionalUpdates": [
                {**update, "release": {"version": "5.0.1", "image": "patch"}, "riskNames": ["NodeCordoned"]},
                {**update, "release": {"version": "5.0.2", "image": "other"}, "riskNames": ["Other"]},
            ]
        },
    }
    version = codec.convert(ClusterVersion, given)
    expected = Revision(7, (), asked, frozenset({"NodeCordoned"}), requested)
    assert Revision.of(version, "5.0.1") == expected
