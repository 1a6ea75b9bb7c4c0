"""The HTML page: complete, self-contained, and safe whatever a cluster's objects say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.render.reading import read

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.update_v1alpha1 import (
    AwaitedOperator,
    ClusterOperatorInsight,
    ClusterVersionInsight,
    ControlPlane,
    HealthImpact,
    HealthInsight,
    HealthRemediation,
    HealthScope,
    Informer,
    Insight,
    MachineConfigPoolInsight,
    NodeInsight,
    Omitted,
    OperatorProgress,
    PoolSummary,
    ResourceRef,
    UpdateStatusStatus,
    Version,
    VersionMetadata,
    Versions,
    WorkerPool,
)
from runup.cli.render.html.markup import Markup, age, el, link
from runup.cli.updatestatus.render.status_page import page

STARTED = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
NOW = STARTED + timedelta(minutes=97)
NONE_OMITTED = Omitted()


def condition(type_: str, status: ConditionStatus, reason: str, message: str = "", at: datetime = STARTED) -> Condition:
    """A condition."""
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=at)


def insight(**member: Any) -> Insight:
    """An insight of the one member that is given."""
    ((name, _),) = member.items()
    kind = "".join(word.capitalize() for word in name.split("_"))
    return Insight(uid=f"{name}-{id(member)}", acquired_at=NOW, type=kind, **member)


def version(**changes: Any) -> Insight:
    """From 5.0.0 to 5.1.0, half done."""
    found = ClusterVersionInsight(
        resource=ResourceRef(group="config.openshift.io", resource="clusterversions", name="version"),
        assessment="Progressing",
        completion=50,
        versions=Versions(previous=Version(version="5.0.0"), target=Version(version="5.1.0")),
        started_at=STARTED,
        estimated_completed_at=NOW + timedelta(minutes=24),
        waiting_for=(AwaitedOperator(name="network"),),
        conditions=(condition("Updating", "True", "ClusterVersionProgressing"),),
    )
    return insight(cluster_version=replace(found, **changes))


def operator(name: str, reason: str, moved: datetime = STARTED + timedelta(minutes=30)) -> Insight:
    """A healthy operator."""
    status: ConditionStatus = "True" if reason == "Progressing" else "False"
    return insight(
        cluster_operator=ClusterOperatorInsight(
            name=name,
            resource=ResourceRef(group="config.openshift.io", resource="clusteroperators", name=name),
            progressing=OperatorProgress(status=status, last_transition_time=moved),
            conditions=(condition("Updating", status, reason), condition("Healthy", "True", "AsExpected")),
        )
    )


def worker(name: str, *conditions: Condition, **changes: Any) -> Insight:
    """A node of the pool `worker`."""
    return insight(
        node=NodeInsight(
            name=name,
            resource=ResourceRef(resource="nodes", name=name),
            pool_resource=ResourceRef(resource="machineconfigpools", name="worker"),
            scope_type="WorkerPool",
            conditions=conditions,
            **changes,
        )
    )


def updating(reason: str, at: datetime) -> Condition:
    """The condition of a node that is in this phase since then."""
    return condition("Updating", "True" if reason in {"Draining", "Updating", "Rebooting"} else "False", reason, at=at)


def node_insight(name: str, reason: str, *, message: str = "", degraded: bool = False) -> Insight:
    """A node in a phase since ten minutes."""
    phase = updating(reason, NOW - timedelta(minutes=10))
    return worker(
        name,
        phase,
        condition("Available", "True", "AsExpected"),
        condition("Degraded", "True" if degraded else "False", "Degraded" if degraded else "AsExpected"),
        version="5.0.0",
        est_to_complete="10m0s" if phase.status == "True" else "",
        message=message,
    )


def pool_insight(name: str, **counts: int) -> Insight:
    """A pool by its counts."""
    summaries = tuple(PoolSummary(type=type_, count=count) for type_, count in counts.items())
    total, outdated = counts.get("Total", 0), counts.get("Outdated", 0)
    return insight(
        machine_config_pool=MachineConfigPoolInsight(
            name=name,
            resource=ResourceRef(resource="machineconfigpools", name=name),
            scope_type="WorkerPool",
            assessment="Progressing",
            completion=100 * (total - outdated) // total if total else 100,
            summaries=summaries,
        )
    )


def health(
    summary: str = "Node worker-1 is degraded", level: str = "Error", reference: str = "", **more: Any
) -> Insight:
    """Something that needs attention."""
    return insight(
        health=HealthInsight(
            scope=HealthScope(type="WorkerPool", resources=more.pop("resources", ())),
            impact=HealthImpact(
                level=level, type="Update Stalled", summary=summary, description=more.pop("description", "")
            ),
            remediation=HealthRemediation(reference=reference),
            **more,
        )
    )


def status(
    control_plane: tuple[Insight, ...] = (),
    workers: tuple[Insight, ...] = (),
    *,
    conditions: tuple[Condition, ...] = (condition("Available", "True", "AsExpected"),),
    omitted: Omitted = NONE_OMITTED,
    updating: ConditionStatus = "True",
) -> UpdateStatusStatus:
    """A status of a control plane and one worker pool."""
    return UpdateStatusStatus(
        control_plane=ControlPlane(
            informers=(Informer(name="i", insights=control_plane),), conditions=(condition("Updating", updating, "x"),)
        ),
        worker_pools=(
            WorkerPool(
                name="worker",
                resource=ResourceRef(resource="machineconfigpools", name="worker"),
                informers=(Informer(name="i", insights=workers),),
                omitted=omitted,
                conditions=(condition("Updating", updating, "x"),),
            ),
        ),
        conditions=conditions,
    )


USUAL = status(
    (version(), operator("etcd", "Updated"), operator("network", "Progressing"), operator("storage", "Pending")),
    (
        pool_insight("worker", Total=3, Outdated=2, Progressing=1, Draining=1, Available=3),
        node_insight("worker-0", "Completed"),
        node_insight("worker-1", "Draining"),
        node_insight("worker-2", "Pending"),
        health(started_at=NOW - timedelta(minutes=31), resources=(ResourceRef(resource="nodes", name="worker-1"),)),
    ),
)


def test_the_page_says_what_the_object_says() -> None:
    """Target, progress, times, attention, timeline, nodes."""
    text = read(page(USUAL, NOW, cluster="https://api.example.com:6443")).text
    for said in (
        "Updating to 5.1.0",
        "From 5.0.0.",
        "1 updated 1 updating 1 waiting",
        "Duration 1 h 37 min",
        "in 24 min",
        "Waits for network",
        "Needs attention (1)",
        "Node worker-1 is degraded Error",
        "since 2026-11-21 07:06 UTC (31 min)",
        "Concerns nodes worker-1",
        "etcd updated 06:30",
        "network updating, 1 h 7 min",
        "1 waiting: storage",
        "worker-1 draining, 10 min",
        "worker-1 Progressing Draining 5.0.0 +10m",
        "33 % of 3 nodes",
        "Cluster https://api.example.com:6443 As of 2026-11-21 07:37 UTC",
    ):
        assert said in text, said


def test_what_is_said_of_an_issue_is_there_where_something_is_said() -> None:
    """Its description, and no empty place for one."""
    shown = page(status(workers=(health(description="The daemon cannot write the file."),)), NOW)
    assert "The daemon cannot write the file." in shown
    bodies = [attrs for _, attrs in read(page(status(workers=(health(),)), NOW)).tags if attrs.get("class") == "body"]
    assert bodies == []


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(
            12, "12 waiting: o00, o01, o02, o03, o04, o05, o06, o07, o08, o09, o10, o11 ", id="as many as fit"
        ),
        pytest.param(
            15,
            "15 waiting: o00, o01, o02, o03, o04, o05, o06, o07, o08, o09, o10, o11 and 3 more ",
            id="and how many more",
        ),
    ],
)
def test_who_waits_is_named_as_far_as_there_is_room(count: int, said: str) -> None:
    """Twelve are enough for a line."""
    waiting = [operator(f"o{number:02}", "Pending") for number in range(count)]
    assert said in read(page(status((version(), *waiting)), NOW)).text + " "


def test_nothing_is_fetched_and_nothing_runs() -> None:
    """One file: no script, no address but those of links to read on; and a policy that forbids the rest."""
    reader = read(page(USUAL, NOW))
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "img", "iframe", "link", "object", "form"})
    assert not [attrs for _, attrs in reader.tags if {"src", "onclick", "action"} & attrs.keys()]
    policies = [attrs["content"] for tag, attrs in reader.tags if tag == "meta" and "http-equiv" in attrs]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "url(" not in page(USUAL, NOW)


EVIL = '"><script>alert(1)</script><b onmouseover="x">&amp;'


def test_texts_of_the_cluster_are_shown_as_they_are() -> None:
    """Whatever is written into names, messages and versions stays text."""
    evil = status(
        (
            version(
                assessment=EVIL,
                versions=Versions(
                    previous=Version(version=EVIL),
                    target=Version(version=EVIL, metadata=(VersionMetadata(key="Architecture", value=EVIL),)),
                ),
            ),
            operator(EVIL, "Updated"),
            operator(EVIL, "Pending"),
        ),
        (
            pool_insight(EVIL, Total=1, Outdated=1),
            node_insight(EVIL, "Draining", message=EVIL),
            node_insight(EVIL, EVIL, degraded=True),
            health(EVIL, EVIL, EVIL, description=EVIL, resources=(ResourceRef(resource=EVIL, name=EVIL),)),
            Insight(uid="u", acquired_at=NOW, type=EVIL),
        ),
        conditions=(condition("Available", "False", EVIL, EVIL),),
    )
    reader = read(page(evil, NOW, cluster=EVIL))
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "b"})
    assert not [attrs for _, attrs in reader.tags if "onmouseover" in attrs]
    assert reader.text.count(EVIL) >= 12


@pytest.mark.parametrize(
    ("url", "followed"),
    [
        pytest.param("https://docs.example.com/a?b=1&c=2", True, id="the web"),
        pytest.param("http://docs.example.com", True, id="the web in the clear"),
        pytest.param("javascript:alert(1)", False, id="a script"),
        pytest.param("data:text/html,x", False, id="data"),
        pytest.param("//example.com", False, id="no scheme"),
        pytest.param("http://[", False, id="no address at all"),
        pytest.param("<alert does not have a runbook_url annotation>", False, id="oc's text for none"),
    ],
)
def test_only_the_web_is_linked(url: str, followed: bool) -> None:
    """A runbook's address is an annotation of an alert: anybody's text."""
    reader = read(el("p", link(url, url)))
    assert [attrs["href"] for tag, attrs in reader.tags if tag == "a"] == ([url] if followed else [])
    assert reader.text == url


def test_what_could_not_be_told_is_not_well() -> None:
    """No positive word appears where an input could not be read."""
    unknown = status(
        conditions=(condition("Available", "False", "CannotWatch", "clusterversions could not be read"),),
        updating="Unknown",
    )
    text = read(page(unknown, NOW)).text
    assert "The update's state is not known" in text
    assert "Available: CannotWatch . clusterversions could not be read" in text
    assert "Nothing was found, but not everything could be read." in text
    assert "Nothing needs attention" not in text


def test_alerts_that_nobody_asked_for_are_no_doubt() -> None:
    """A cluster without an address for alerts is not warned about on every page."""
    conditions = (condition("Available", "True", "AsExpected"), condition("AlertsReachable", "Unknown", "NotAsked"))
    text = read(page(status((version(),), conditions=conditions), NOW)).text
    assert "Not everything is known" not in text
    assert "Nothing needs attention." in text


def test_a_newer_controllers_words_are_shown() -> None:
    """Levels, reasons and kinds that this version does not know are neither lost nor good."""
    newer = status(
        (version(assessment="Paused by policy"), operator("etcd", "Postponed")),
        (
            health("A new kind of trouble", "Fatal"),
            health("A known one", "Critical"),
            node_insight("worker-0", "Hibernating"),
            Insight(uid="x", acquired_at=NOW, type="HostedCluster"),
        ),
    )
    html = page(newer, NOW)
    text = read(html).text
    assert text.index("A new kind of trouble Fatal") < text.index("A known one Critical")
    assert "Paused by policy" in text
    assert "1 not known" in text
    assert "worker-0 Unknown Hibernating" in text
    assert "cannot read insights of the type HostedCluster" in text
    assert 'class="badge warn">Fatal' in html


def test_a_finished_update_is_told_as_such() -> None:
    """The duration ends with the update, not today; the drawing too."""
    completed = STARTED + timedelta(minutes=62)
    found = version(
        assessment="Completed",
        completion=100,
        completed_at=completed,
        conditions=(condition("Updating", "False", "ClusterVersionNotProgressing"),),
        waiting_for=(),
    )
    done = status((found, operator("etcd", "Updated")), updating="False")
    text = read(page(done, NOW + timedelta(days=30))).text
    assert "The cluster is at 5.1.0 Not updating" in text
    assert "Duration 1 h 2 min" in text
    assert "Completed 2026-11-21 07:02 UTC" in text
    assert "Timeline (UTC) 06:00 06:15 06:30 06:45 07:02 Operators" in text


def test_workers_after_the_control_plane() -> None:
    """While only pools are on their way the title says so."""
    found = version(conditions=(condition("Updating", "False", "ClusterVersionNotProgressing"),))
    assert "Worker nodes are updating to 5.1.0" in read(page(status((found,)), NOW)).text


def test_what_was_so_at_the_first_look_has_no_beginning() -> None:
    """A controller that came into the middle of an update does not say that everything happened at that moment."""
    looked = NOW - timedelta(minutes=10)
    nodes = (node_insight("worker-0", "Completed"), node_insight("worker-1", "Rebooting"))
    found = insight(
        cluster_operator=ClusterOperatorInsight(
            name="etcd",
            resource=ResourceRef(resource="clusteroperators", name="etcd"),
            conditions=(condition("Updating", "False", "Updated", at=looked),),
        )
    )
    text = read(page(status((version(), found), nodes), NOW)).text
    assert "worker-0 updated before 07:27" in text
    assert "worker-1 rebooting, 10 min or more" in text
    assert "etcd updated before 06:00" in text


def test_alerts_that_could_not_be_read_are_a_doubt() -> None:
    """Nothing found is then not nothing there."""
    conditions = (
        condition("Available", "True", "AsExpected"),
        condition("AlertsReachable", "False", "CannotReadAlerts", "403"),
    )
    text = read(page(status((version(),), conditions=conditions), NOW)).text
    assert "AlertsReachable: CannotReadAlerts . 403" in text
    assert "Nothing was found, but not everything could be read." in text


def test_hosts_of_one_domain_are_drawn_without_it() -> None:
    """Long names would push the drawing off the page; the tables have them in full."""
    names = ("ip-10-0-0-1.eu-central-1.compute.internal", "ip-10-0-0-2.eu-central-1.compute.internal")
    text = read(page(status((version(),), tuple(node_insight(name, "Draining") for name in names)), NOW)).text
    assert "ip-10-0-0-1 draining, 10 min" in text
    assert f"{names[0]} Progressing Draining" in text


def test_nodes_that_were_left_out_are_no_doubt() -> None:
    """They were looked at; their pool counts them."""
    conditions = (
        condition("Available", "True", "AsExpected"),
        condition("Complete", "False", "InsightsOmitted", "Left out to keep the object small: 4807 nodes"),
    )
    text = read(page(status((version(),), conditions=conditions), NOW)).text
    assert "Nothing needs attention." in text
    assert "Not everything is known" not in text


def test_long_pools_are_folded_and_what_is_left_out_is_counted() -> None:
    """Twelve rows are open, the troubled ones first."""
    nodes = tuple(node_insight(f"worker-{number:02}", "Pending", degraded=number == 19) for number in range(20))
    html = page(
        status((version(),), (pool_insight("worker", Total=120, Outdated=120), *nodes), omitted=Omitted(nodes=100)), NOW
    )
    text = read(html).text
    assert "8 more nodes" in text
    assert "100 more nodes are counted above and not listed" in text
    assert text.index("worker-19 Degraded") < text.index("worker-00 Outdated")


def test_an_object_without_content() -> None:
    """The controller may not have written yet."""
    assert "No status yet" in read(page(None, NOW)).text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-5, "0 s", id="a clock that runs ahead"),
        pytest.param(59, "59 s", id="seconds"),
        pytest.param(3599, "59 min", id="minutes"),
        pytest.param(3600, "1 h", id="an hour"),
        pytest.param(5 * 3600 + 61, "5 h 1 min", id="hours"),
        pytest.param(3 * 86400 + 7200, "3 d 2 h", id="days"),
    ],
)
def test_ages_have_two_units(seconds: int, text: str) -> None:
    """The two largest."""
    assert age(timedelta(seconds=seconds)) == text


def test_markup_is_escaped_once() -> None:
    """Text is escaped, markup is not again."""
    assert el("p", "a<b", el("i", '"'), title='"x"') == '<p title="&quot;x&quot;">a&lt;b<i>&quot;</i></p>'
    assert isinstance(el("p"), Markup)
