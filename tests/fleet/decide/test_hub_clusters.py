"""The clusters of a hub: what has travelled of each, how old it may be, and that silence is never fine."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.factories import NOW

from kubekit.api import codec
from runup.api.hub_v1 import ManagedCluster, ManagedClusterSet, ManagedClusterSpec, ManifestWork
from runup.fleet.decide.hub_clusters import INCOMPLETE, OLD, SILENT, UNIDENTIFIED, clusters_of_set, members_with_reports
from runup.fleet.decide.members import BadFleet, Doubt, Member
from runup.preflight.decide import newest_report, packed_reports
from runup.report import report as reports
from runup.report.report import FORMAT, Report, ReportedCheck

JSON = dict[str, Any]
HOUR = timedelta(hours=1)
CONFIG_MAP = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "runup-preflight"}


def cluster(
    name: str = "harbour", available: str = "True", claims: JSON | None = None, **labels: str
) -> ManagedCluster:
    """A ManagedCluster whose condition of availability is so; none for an empty one. `claims` are its ClusterClaims."""
    condition = {
        "type": "ManagedClusterConditionAvailable",
        "status": available,
        "reason": "ManagedClusterLeaseUpdateStopped",
        "message": "Registration agent stopped updating its lease.",
        "lastTransitionTime": "2026-01-14T10:00:00Z",
    }
    return codec.convert(
        ManagedCluster,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"hubAcceptsClient": True},
            "status": {
                "conditions": [condition] if available else [],
                "clusterClaims": [{"name": key, "value": value} for key, value in (claims or {}).items()],
            },
        },
    )


def report(observed: datetime | None = NOW - HOUR, target: str = "5.1.0") -> Report:
    """A report without risks, of one check."""
    return Report(
        format=FORMAT,
        source_version="5.0.0",
        target_version=target,
        execution_status="completed",
        observed_time=observed,
        checks=(ReportedCheck(name="NodeCordoned", result="Clear"),),
    )


def travelled(found: Report) -> str:
    """The value that an agent takes to the hub."""
    return b64encode(packed_reports.pack(reports.encode(found))).decode()


def work(
    value: str | None,
    name: str = "harbour",
    every: str | None = "6h",
    applied: str = "True",
    addon: str = "runup-preflight",
) -> ManifestWork:
    """The add-on's ManifestWork with a value of feedback, None for none yet."""
    values = [] if value is None else [{"name": "report", "fieldValue": {"type": "String", "string": value}}]
    other = {"resourceMeta": CONFIG_MAP | {"name": "preflight-history"}, "statusFeedback": {"values": []}}
    newest = {"resourceMeta": CONFIG_MAP | {"name": "preflight-newest"}, "statusFeedback": {"values": values}}
    annotations = {"preflight.runup.dev/every": every} if every else {}
    metadata = {"name": "runup-preflight-scheduled", "annotations": annotations}
    # Of the status, which is more often.
    other_cron = {
        "kind": "CronJob",
        "metadata": {"name": "runup-status", "annotations": {"preflight.runup.dev/every": "5m"}},
    }
    manifests: list[JSON] = [{"kind": "Namespace"}, other_cron, {"kind": "CronJob", "metadata": metadata}]
    conditions = [{"type": "Applied", "status": applied, "message": "Failed to apply manifest: forbidden"}]
    return codec.convert(
        ManifestWork,
        {
            "metadata": {
                "name": "addon-runup-preflight-deploy-0",
                "namespace": name,
                "labels": {"open-cluster-management.io/addon-name": addon},
            },
            "spec": {"workload": {"manifests": manifests}},
            "status": {"conditions": conditions if applied else [], "resourceStatus": {"manifests": [other, newest]}},
        },
    )


def one(found: ManagedCluster, *works: ManifestWork, target: str = "") -> Member:
    """The member of one cluster."""
    (member,) = members_with_reports([found], works, NOW, unreadable={}, target=target)
    return member


def test_a_report_that_has_just_travelled() -> None:
    """Nothing is doubtful of it, and it has the labels of its ManagedCluster."""
    found = report()
    member = one(cluster(env="production"), work(travelled(found)))
    assert (member.report, member.doubts, member.problem) == (found, (), "")
    assert member.labels == {"env": "production"}


OF_KUBERNETES = replace(report(), cluster_kind="Kubernetes", cluster_id="uid-1")
ANOTHERS = "its report is of another cluster: its ID is {}, and ManagedCluster harbour claims {}"
# The claims of the cluster, the work, and why its report is not used.
FOREIGN: dict[str, tuple[JSON, ManifestWork, str]] = {
    "not applied": (
        {},
        work(travelled(report()), applied="False"),
        "the schedule is not applied there: Failed to apply manifest: forbidden",
    ),
    "another ID": (
        {"id.openshift.io": "id-2", "id.k8s.io": "uid-1"},
        work(travelled(replace(report(), cluster_id="id-1"))),
        ANOTHERS.format("id-1", "id-2"),
    ),
    "another UID": (
        {"id.k8s.io": "uid-2"},
        work(travelled(OF_KUBERNETES), addon="runup-preflight-kubernetes"),
        ANOTHERS.format("uid-1", "uid-2"),
    ),
    "another kind": (
        {},
        work(travelled(OF_KUBERNETES)),
        "its report is about a cluster of Kubernetes, and its add-on is the one for OpenShift",
    ),
    "the other kind": (
        {},
        work(travelled(report()), addon="runup-preflight-kubernetes"),
        "its report is about a cluster of OpenShift, and its add-on is the one for Kubernetes",
    ),
}


@pytest.mark.parametrize(("claims", "found", "said"), FOREIGN.values(), ids=list(FOREIGN))
def test_refuses_a_report_that_is_not_of_the_cluster(claims: JSON, found: ManifestWork, said: str) -> None:
    """It says nothing of this one."""
    member = one(cluster(claims=claims), found)
    assert (member.report, member.problem) == (None, said)


OWN: dict[str, tuple[JSON, ManifestWork, list[str]]] = {
    "its ID": ({"id.openshift.io": "id-1"}, work(travelled(replace(report(), cluster_id="id-1"))), []),
    # On an OpenShift that claim may have either ID.
    "a claim of Kubernetes": ({"id.k8s.io": "uid-2"}, work(travelled(replace(report(), cluster_id="id-1"))), []),
    "nothing claimed": ({}, work(travelled(replace(report(), cluster_id="id-1"))), []),
    "its UID": (
        {"id.k8s.io": "uid-1"}, work(travelled(OF_KUBERNETES), addon="runup-preflight-kubernetes"), [],
    ),
    "of an older runup": ({"id.openshift.io": "id-1"}, work(travelled(report())), [UNIDENTIFIED]),
}  # fmt: skip


@pytest.mark.parametrize(("claims", "found", "doubts"), OWN.values(), ids=list(OWN))
def test_takes_a_report_of_the_cluster(claims: JSON, found: ManifestWork, doubts: list[str]) -> None:
    """A report without an ID is doubtful where the hub has one."""
    member = one(cluster(claims=claims), found)
    assert (member.problem, [doubt.risk for doubt in member.doubts]) == ("", doubts)


def test_a_cluster_that_is_not_accepted_any_more() -> None:
    """Its report is of before."""
    found = msgspec.structs.replace(cluster(), spec=ManagedClusterSpec(hub_accepts_client=False))
    member = one(found, work(travelled(report())))
    assert member.problem == "the hub has not accepted it (spec.hubAcceptsClient)"


INCOMPLETE_REPORTS = {
    "risks that are left out": (replace(report(), risks_omitted=5), "The newest report leaves out 5 risks."),
    "no checks": (replace(report(), checks=()), "The newest report has the result of no check."),
}


@pytest.mark.parametrize(("found", "says"), INCOMPLETE_REPORTS.values(), ids=list(INCOMPLETE_REPORTS))
def test_an_incomplete_report_is_not_clear(found: Report, says: str) -> None:
    """Nothing is in it that says that no risk applies."""
    assert one(cluster(), work(travelled(found))).doubts == (Doubt(INCOMPLETE, says),)


NO_REPORT: dict[str, tuple[ManagedCluster, list[ManifestWork], str]] = {
    "no add-on": (
        cluster(),
        [],
        "no preflight is scheduled there: the add-on is not in its namespace of the hub; a Placement chooses it",
    ),
    "of another cluster": (
        cluster(),
        [work(travelled(report()), name="lighthouse")],
        "no preflight is scheduled there: the add-on is not in its namespace of the hub; a Placement chooses it",
    ),
    "not run yet": (cluster(), [work(None)], "it has no report yet"),
    "its agent has not looked": (
        cluster(),
        [work(None, applied="")],
        "the schedule is not applied there: its agent has not said anything of it",
    ),
    "its agent may not": (
        cluster(),
        [work(None, applied="False")],
        "the schedule is not applied there: Failed to apply manifest: forbidden",
    ),
    "silent": (
        cluster(available="Unknown"),
        [work(None)],
        "it has no report yet; it is not available since 2026-01-14T10:00:00Z "
        "(Registration agent stopped updating its lease.)",
    ),
    "never registered": (
        cluster(available=""),
        [work(None)],
        "it has no report yet; its agent has not registered yet",
    ),
    "not base64": (cluster(), [work("%%%")], "its report cannot be used: the report is not base64"),
    "not packed": (
        cluster(),
        [work(b64encode(b"{}").decode())],
        "its report cannot be used: the report cannot be unpacked: it is not packed by gzip",
    ),
    "cut": (
        cluster(),
        [work(b64encode(packed_reports.pack(b"{}")[:-4]).decode())],
        "its report cannot be used: the report cannot be unpacked: it is cut",
    ),
    "of another format": (
        cluster(),
        [work(b64encode(packed_reports.pack(b'{"format": "other"}')).decode())],
        "its report cannot be used: the report's format is 'other'",
    ),
}


@pytest.mark.parametrize(("found", "works", "said"), NO_REPORT.values(), ids=list(NO_REPORT))
def test_no_report(found: ManagedCluster, works: list[ManifestWork], said: str) -> None:
    """A separate cluster line, which could not be evaluated."""
    member = one(found, *works)
    assert member.report is None
    assert member.problem.startswith(said)


def test_a_cluster_that_was_not_let_in() -> None:
    """Nobody has accepted it, so nothing of it can be known."""
    refused = codec.convert(ManagedCluster, {"metadata": {"name": "harbour"}, "spec": {}, "status": {}})
    assert one(refused).problem == (
        "the hub has not accepted it (spec.hubAcceptsClient); its agent has not registered yet"
    )


# Of a schedule of six hours: three of them, and the fifteen minutes that a Job may take.
LIMIT = 3 * 6 * HOUR + timedelta(minutes=15)
AGES: dict[str, tuple[datetime | None, str | None, str]] = {
    "just now": (NOW, "6h", ""),
    "three intervals": (NOW - LIMIT, "6h", ""),
    "more than three": (
        NOW - LIMIT - timedelta(seconds=1),
        "6h",
        "there should be one every 6 h",
    ),
    "half hours": (NOW - 2 * HOUR, "30m", "there should be one every 30 min"),
    "no time": (None, "6h", "does not state its time"),
    "a clock ahead by minutes": (NOW + timedelta(minutes=10), "6h", ""),
    "a time to come": (NOW + timedelta(minutes=11), "6h", "which is yet to come: a clock is wrong"),
    "no interval": (NOW, None, "it is not known how often there is one"),
    "no interval of ours": (NOW, "often", "it is not known how often there is one"),
}


@pytest.mark.parametrize(("observed", "every", "said"), AGES.values(), ids=list(AGES))
def test_how_old_a_report_may_be(observed: datetime | None, every: str | None, said: str) -> None:
    """A report that is too old, or has no known time, is kept and marked as doubtful."""
    member = one(cluster(), work(travelled(report(observed)), every=every))
    assert member.report is not None
    assert [doubt.risk for doubt in member.doubts] == ([OLD] if said else [])
    assert all(said in doubt.message for doubt in member.doubts)


@pytest.mark.parametrize("applied", ["True", "False"])
@pytest.mark.parametrize("available", ["Unknown", "False", ""])
def test_keeps_the_report_of_a_silent_cluster(available: str, applied: str) -> None:
    """The report is doubtful however new it is. An agent cannot apply a work to an API server that is gone."""
    member = one(cluster(available=available), work(travelled(report(NOW)), applied=applied))
    assert member.report is not None
    assert [doubt.risk for doubt in member.doubts] == [SILENT]


def test_another_target() -> None:
    """A report about another version says nothing of the one that is asked for."""
    works = work(travelled(report(target="5.1.0")))
    assert one(cluster(), works, target="5.1.0").problem == ""
    member = one(cluster(), works, target="5.2.0")
    assert (member.report, member.problem) == (
        None,
        "its newest report is about the update to 5.1.0, not to 5.2.0",
    )


def test_of_two_works_the_newest() -> None:
    """A cluster that was moved from one add-on to the other has two for a while."""
    older, newer = report(NOW - 2 * HOUR), report(NOW - HOUR, target="5.2.0")
    for works in ([older, newer], [newer, older]):
        assert one(cluster(), *(work(travelled(each)) for each in works)).report == newer


def test_a_work_that_cannot_be_read() -> None:
    """Its cluster is not evaluated, and no other one is touched."""
    clusters = [cluster("harbour"), cluster("lighthouse")]
    works = [work(travelled(report()), name="lighthouse")]
    harbour, lighthouse = members_with_reports(clusters, works, NOW, unreadable={"harbour": "cannot be read"})
    assert (harbour.problem, harbour.report) == ("cannot be read", None)
    assert lighthouse.report is not None


def cluster_set(selector: JSON) -> ManagedClusterSet:
    """The set `canary`, which chooses its clusters so."""
    return codec.convert(
        ManagedClusterSet, {"metadata": {"name": "canary"}, "spec": {"clusterSelector": selector} if selector else {}}
    )


BY_LABEL = {"cluster.open-cluster-management.io/clusterset": "canary"}
EXCLUSIVE = {"selectorType": "ExclusiveClusterSetLabel"}
SELECTED = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "test"}}}


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param(EXCLUSIVE, ["a"], id="by the set's own label"),
        pytest.param({}, ["a"], id="by default"),
        pytest.param(SELECTED, ["b"], id="by a selector"),
        pytest.param({"selectorType": "LabelSelector"}, ["a", "b", "c"], id="the set of all clusters"),
    ],
)
def test_the_clusters_of_a_set(selector: JSON, chosen: list[str]) -> None:
    """As Open Cluster Management chooses them."""
    clusters = [cluster("a", **BY_LABEL), cluster("b", env="test"), cluster("c")]
    assert [each.metadata.name for each in clusters_of_set(clusters, cluster_set(selector))] == chosen


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param(EXCLUSIVE, "no cluster is in it", id="empty"),
        pytest.param({"selectorType": "Magic"}, "chooses its clusters by Magic, which is not known", id="unknown"),
    ],
)
def test_a_set_that_chooses_nothing(selector: JSON, said: str) -> None:
    """A rollout must not continue because nothing was looked at."""
    with pytest.raises(BadFleet, match=said):
        clusters_of_set([cluster("c")], cluster_set(selector))


def test_what_is_packed_is_what_is_read() -> None:
    """The ConfigMap's value is what an agent takes along."""
    found = report()
    patch = newest_report.with_report(found)
    assert newest_report.unpack(patch["binaryData"]["report"]) == found
    assert one(cluster(), work(patch["binaryData"]["report"])).report == found
