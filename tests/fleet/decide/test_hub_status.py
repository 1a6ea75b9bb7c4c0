"""The statuses of a hub's clusters: what has travelled of each, why nothing has, and when it may no longer hold."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW
from tests.fleet.decide.test_hub_clusters import CONFIG_MAP, cluster
from tests.fleet.decide.test_newest_status import STATUS, value_of

from kubekit.api import codec
from runup.api.hub_v1 import ManagedCluster, ManifestWork
from runup.fleet.decide.hub_clusters import SILENT, members_with_status
from runup.fleet.decide.hub_clusters import STATUS_OLD as OLD
from runup.fleet.decide.members import Member
from runup.fleet.decide.newest_status import NewestStatus

JSON = dict[str, Any]
MINUTE = timedelta(minutes=1)
TAKEN = {"type": "Available", "status": "True"}


def of(observed: datetime) -> NewestStatus:
    """A status of that time."""
    return replace(STATUS, observed_time=observed)


def work(
    value: str | None = None,
    *,
    name: str = "harbour",
    every: str | None = "5m",
    applied: str = "True",
    conditions: tuple[JSON, ...] = (TAKEN,),
    takes: bool = True,
    addon: str = "runup-preflight",
) -> ManifestWork:
    """The add-on's ManifestWork with a value of feedback, None for none yet."""
    values = [] if value is None else [{"name": "status", "fieldValue": {"type": "String", "string": value}}]
    meta = CONFIG_MAP | {"name": "status-newest"}
    newest = {"resourceMeta": meta, "statusFeedback": {"values": values}, "conditions": list(conditions)}
    crons = {"runup-preflight-scheduled": "24h", "runup-status": every}
    manifests = [
        {"kind": "CronJob", "metadata": {"name": each, "annotations": {"preflight.runup.dev/every": often}}}
        for each, often in crons.items()
        if often
    ]
    return codec.convert(
        ManifestWork,
        {
            "metadata": {
                "name": "addon-runup-preflight-deploy-0",
                "namespace": name,
                "labels": {"open-cluster-management.io/addon-name": addon},
            },
            "spec": {"workload": {"manifests": manifests}},
            "status": {
                "conditions": [
                    {"type": "Applied", "status": applied, "message": "Failed to apply manifest: forbidden"}
                ],
                "resourceStatus": {"manifests": [newest] if takes else []},
            },
        },
    )


def one(found: ManagedCluster, *works: ManifestWork) -> Member:
    """The member of one cluster."""
    (member,) = members_with_status([found], works, NOW, unreadable={})
    return member


def test_a_status_that_has_just_travelled() -> None:
    """Nothing is doubtful of it, and it has the labels of its ManagedCluster."""
    member = one(cluster(env="production"), work(value_of(of(NOW))))
    assert (member.status, member.doubts, member.problem) == (of(NOW), (), "")
    assert member.labels == {"env": "production"}
    assert member.place == "a status on the hub"


FORBIDDEN = {"type": "Available", "status": "Unknown", "message": "Failed to fetch resource: configmaps is forbidden"}
UNSYNCED = {"type": "StatusFeedbackSynced", "status": "False", "message": "Sync status feedback failed with error x"}
NO_STATUS: dict[str, tuple[ManagedCluster, list[ManifestWork], str]] = {
    "no add-on": (cluster(), [], "no preflight is scheduled there: the add-on is not in its namespace of the hub"),
    "of another cluster": (cluster(), [work(value_of(STATUS), name="lighthouse")], "no preflight is scheduled there"),
    "not run yet": (cluster(), [work()], "it has no status yet"),
    "not applied": (
        cluster(),
        [work(applied="False")],
        "the schedule is not applied there: Failed to apply manifest: forbidden",
    ),
    "the agent may not read it": (
        cluster(),
        [work(conditions=(FORBIDDEN,))],
        "its agent cannot read ConfigMap status-newest: Failed to fetch resource: configmaps is forbidden",
    ),
    "feedback that fails": (
        cluster(),
        [work(conditions=(TAKEN, UNSYNCED))],
        "its agent cannot read ConfigMap status-newest: Sync status feedback failed with error x",
    ),
    "an add-on without it": (
        cluster(),
        [work(takes=False)],
        "its add-on takes no status: print it again with `runup fleet addon`",
    ),
    "not an OpenShift": (
        cluster(),
        [work(takes=False, addon="runup-preflight-kubernetes")],
        "it is not an OpenShift: the add-on reports no status of it; `runup fleet status --contexts` does",
    ),
    "silent": (
        cluster(available="Unknown"),
        [work()],
        "it has no status yet; it is not available since 2026-01-14T10:00:00Z "
        "(Registration agent stopped updating its lease.)",
    ),
    "no status of ours": (
        cluster(),
        [work(b64encode(b"{}").decode())],
        "its status cannot be used: the status is not packed by gzip",
    ),
}


@pytest.mark.parametrize(("found", "works", "said"), NO_STATUS.values(), ids=list(NO_STATUS))
def test_no_status(found: ManagedCluster, works: list[ManifestWork], said: str) -> None:
    """A separate cluster line, of which nothing is known."""
    member = one(found, *works)
    assert member.status is None
    assert member.problem.startswith(said)


# Of five minutes: three of them, and the four that a Job may take.
LIMIT = 19 * MINUTE
AGES: dict[str, tuple[datetime, str | None, str]] = {
    "just now": (NOW, "5m", ""),
    "three intervals": (NOW - LIMIT, "5m", ""),
    "more than three": (NOW - LIMIT - timedelta(seconds=1), "5m", "there should be one every 5 min"),
    "of an hour": (NOW - 200 * MINUTE, "1h", "there should be one every 1 h"),
    "a time to come": (NOW + 11 * MINUTE, "5m", "which is yet to come: a clock is wrong"),
    "no interval": (NOW, None, "it is not known how often there is one"),
}


@pytest.mark.parametrize(("observed", "every", "said"), AGES.values(), ids=list(AGES))
def test_how_old_a_status_may_be(observed: datetime, every: str | None, said: str) -> None:
    """By the CronJob of the status and not by that of the preflight, which is seldom."""
    member = one(cluster(), work(value_of(of(observed)), every=every))
    assert member.status is not None
    assert [doubt.risk for doubt in member.doubts] == ([OLD] if said else [])
    assert all(said in doubt.message for doubt in member.doubts)


@pytest.mark.parametrize("available", ["Unknown", "False", ""])
def test_what_is_known_of_a_silent_cluster(available: str) -> None:
    """Its status is kept, and doubtful, however new it is."""
    member = one(cluster(available=available), work(value_of(of(NOW))))
    assert member.status is not None
    assert [doubt.risk for doubt in member.doubts] == [SILENT]


def test_of_two_works_the_newest() -> None:
    """A cluster that was moved from one add-on to the other has two for a while."""
    older, newer = of(NOW - 2 * MINUTE), of(NOW - MINUTE)
    for works in ([older, newer], [newer, older]):
        assert one(cluster(), *(work(value_of(each)) for each in works)).status == newer


def test_a_work_that_cannot_be_read() -> None:
    """Nothing is known about its cluster, and no other one is touched."""
    clusters = [cluster("harbour"), cluster("lighthouse")]
    works = [work(value_of(of(NOW)), name="lighthouse")]
    harbour, lighthouse = members_with_status(clusters, works, NOW, unreadable={"harbour": "cannot be read"})
    assert (harbour.problem, harbour.status) == ("cannot be read", None)
    assert lighthouse.status is not None
