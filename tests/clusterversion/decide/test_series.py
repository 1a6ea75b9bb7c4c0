"""The cluster as time series: names, labels and values that others' rules and dashboards count on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import OWN
from tests.factories import NOW, SINCE, cluster_operator, cluster_version, condition, feature_gate

from runup.advice.decide.service import ServiceState
from runup.api.config_v1 import (
    AcceptRisk,
    CapabilitiesStatus,
    ConditionalUpdate,
    ConditionalUpdateRisk,
    Release,
    Update,
    UpdateHistory,
)
from runup.applying.decide.progress import Progress, WantedRelease
from runup.clusterversion.control.metrics import ClusterMetricsCollector
from runup.clusterversion.decide.metric_samples import samples, without_version
from runup.clusterversion.decide.observed import Observed, OperatorFacts
from runup.preflight.decide.preflight_deployment import PodSettings

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = OperatorFacts(
    release=Release(version="5.0.0", image=OWN), place=PodSettings(namespace="ns", node_name="node-1")
)
GATES = feature_gate("TechPreviewNoUpgrade", enabled=("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks"))


def observed(changes: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **more: Any) -> Observed:
    """A cluster of 5.0.0; `changes` are of its status, `spec` of its spec."""
    version = cluster_version(**(changes or {}))
    metadata = with_fields(version.metadata, creation_timestamp=SINCE)
    version = with_fields(version, metadata=metadata, spec=with_fields(version.spec, **(spec or {})))
    return Observed(cluster_version=version, facts=FACTS, **more)


def samples_of(name: str, look: Observed, created: datetime | None = CREATED) -> dict[tuple[str, ...], float]:
    """The samples of a family."""
    return {each.labels: each.value for each in samples(look, created) if each.family.name == name}


def entry(version: str, state: str = "Completed", at: datetime = SINCE) -> UpdateHistory:
    """An entry of history."""
    ended = at if state == "Completed" else None
    return UpdateHistory(state=state, started_time=at, completion_time=ended, version=version, image=f"i@{version}")  # type: ignore[arg-type]


def replace_entry(old: UpdateHistory, **changes: Any) -> UpdateHistory:
    """An entry of history with other fields."""
    return with_fields(old, **changes)


LATER = SINCE + timedelta(hours=1)


def test_a_cluster_at_rest() -> None:
    """Where it is, where it came from, and nothing that it is not."""
    found = samples_of("cluster_version", observed({"history": (entry("5.0.0", at=LATER), entry("4.22.0"))}))
    assert found == {
        ("current", "5.0.0", OWN, "5.0.0"): CREATED.timestamp(),
        ("initial", "4.22.0", "i@4.22.0", ""): SINCE.timestamp(),
        ("cluster", "5.0.0", OWN, "4.22.0"): SINCE.timestamp(),
        ("completed", "5.0.0", "i@5.0.0", "4.22.0"): LATER.timestamp(),
    }


def test_a_cluster_that_is_installed() -> None:
    """Nothing is completed, so it came from nowhere."""
    found = samples_of("cluster_version", observed({"history": (entry("5.0.0", "Partial"),)}), created=None)
    assert found["current", "5.0.0", OWN, ""] == 0
    assert set(found) == {
        ("current", "5.0.0", OWN, ""),
        ("initial", "5.0.0", "i@5.0.0", ""),
        ("cluster", "5.0.0", OWN, ""),
        ("updating", "5.0.0", "i@5.0.0", ""),
    }


def test_an_update_that_fails() -> None:
    """Since when it is under way, and since when it fails."""
    history = (entry("5.1.0", "Partial", LATER), entry("5.0.0"))
    conditions = (condition("Failing", "True", "X", "m", LATER),)
    desired = Release(version="5.1.0", image="i@5.1.0")
    look = observed({"history": history, "conditions": conditions, "desired": desired})
    found = samples_of("cluster_version", look)
    assert found["updating", "5.1.0", "i@5.1.0", "5.0.0"] == LATER.timestamp()
    assert found["failure", "5.1.0", "i@5.1.0", "5.0.0"] == LATER.timestamp()


def test_a_failure_is_that_of_the_requested_update() -> None:
    """Upstream's series answers whether a failure is one of an update, requested at the latest change."""
    status = {"history": (entry("5.0.0"),), "conditions": (condition("Failing", "True", "X", "m", SINCE),)}
    history = (replace_entry(entry("5.0.0"), completion_time=LATER),)
    look = observed(status | {"history": history}, {"desired_update": Update(version="5.1.0")})
    found = samples_of("cluster_version", look)
    assert found["failure", "5.1.0", "", "5.0.0"] == SINCE.timestamp()
    assert found["desired", "5.1.0", "", "5.0.0"] == LATER.timestamp()


@pytest.mark.parametrize(
    ("update", "labels"),
    [
        pytest.param(Update(version="5.1.0"), ("5.1.0", ""), id="a version"),
        pytest.param(Update(image="x@y"), ("", "x@y"), id="an image"),
        pytest.param(Update(version="5.0.0"), None, id="the version that it has"),
        pytest.param(Update(image=cluster_version().status.desired.image), None, id="the image that it has"),
        pytest.param(Update(accept_risks=(AcceptRisk(name="A"),)), None, id="risks alone are no version"),
        pytest.param(Update(version="5.1.0", mode="Preflight"), None, id="a preflight is no update"),
        pytest.param(Update(version="5.1.0", mode="Other"), None, id="nor is what nobody knows"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_what_is_asked_for(update: Update | None, labels: tuple[str, str] | None) -> None:
    """As long as it is not worked towards."""
    look = observed(spec={"desired_update": update}, feature_gate=GATES)
    found = [each[1:3] for each in samples_of("cluster_version", look) if each[0] == "desired"]
    assert found == ([] if labels is None else [labels])


@pytest.mark.parametrize(
    ("changes", "spec", "expected"),
    [
        pytest.param({}, {}, {}, id="nobody was asked"),
        pytest.param(
            {"available_updates": (Release(version="5.0.1"),)},
            {},
            {("<default>", "stable-5.0"): 1.0},
            id="there are some",
        ),
        pytest.param({}, {"upstream": "https://x"}, {("https://x", "stable-5.0"): 0.0}, id="a service of one's own"),
        pytest.param(
            {"conditions": (condition("RetrievedUpdates"),)},
            {},
            {("<default>", "stable-5.0"): 0.0},
            id="there are none",
        ),
    ],
)
def test_updates_are_counted(changes: dict[str, Any], spec: dict[str, Any], expected: dict[Any, float]) -> None:
    """None where nobody knows."""
    assert samples_of("cluster_version_available_updates", observed(changes, spec)) == expected


def test_operators() -> None:
    """Up or not, by their own version; a condition that is unknown is neither."""
    sick = cluster_operator("etcd", available="False", degraded="Unknown")
    bare = replace_conditions(cluster_operator("dns"))
    look = observed(operators=(sick, bare))
    up = samples_of("cluster_operator_up", look)
    names = {labels[0]: (labels[2], value) for labels, value in up.items()}
    assert names["dns"] == ("NoAvailableCondition", 0.0)
    assert names["etcd"][1] == 0.0
    assert names["version"][1] == 1.0
    conditions = {labels[:2]: value for labels, value in samples_of("cluster_operator_conditions", look).items()}
    assert conditions["etcd", "Available"] == 0.0
    assert conditions["etcd", "Progressing"] == 0.0
    assert ("etcd", "Degraded") not in conditions


def replace_conditions(operator: Any) -> Any:
    """An operator that has not said anything."""
    return with_fields(operator, status=with_fields(operator.status, conditions=()))


def test_operators_that_could_not_be_listed_are_not_down() -> None:
    """Nothing is reported of them."""
    assert {labels[0] for labels in samples_of("cluster_operator_up", observed(operators=None))} == {"version"}


def test_the_update_service_of_the_flag_counts() -> None:
    """As where updates are requested from."""
    look = observed(spec={"upstream": "https://x"})
    look = replace(look, facts=replace(FACTS, update_service="https://flag"))
    assert list(samples_of("cluster_version_available_updates", look)) == [("https://flag", "stable-5.0")]


def test_a_capability_that_only_is_enabled() -> None:
    """A capability that the status lists as enabled, and not as known, has a series, too."""
    look = observed({"capabilities": CapabilitiesStatus(enabled_capabilities=("Build",))})
    assert samples_of("cluster_version_capability", look) == {("Build",): 1.0}


def test_capabilities_payload_and_the_update_service() -> None:
    """Each in a separate family."""
    status = CapabilitiesStatus(enabled_capabilities=("Build",), known_capabilities=("Build", "Console"))
    progress = Progress(wanted=WantedRelease("i", "5.1.0"), done=3, total=10)
    look = observed({"capabilities": status}, progress=progress, service=ServiceState(succeeded_at=NOW))
    assert samples_of("cluster_version_capability", look) == {("Build",): 1.0, ("Console",): 0.0}
    assert samples_of("cluster_version_payload", look) == {("5.1.0", "applied"): 3, ("5.1.0", "pending"): 7}
    assert samples_of("cluster_version_operator_update_retrieval_timestamp_seconds", look) == {("",): NOW.timestamp()}
    assert samples_of("cluster_version_payload", observed()) == {}


RISK = ConditionalUpdateRisk(
    name="Slow", message="m", url="u", conditions=(condition("Applies", "Unknown", "EvaluationFailed"),)
)
CONDITIONAL = ConditionalUpdate(Release(version="5.1.0"), conditions=(condition("Recommended", "False", "Slow"),))


def test_risks_are_told_where_they_can_be_accepted() -> None:
    """-1 for what nobody knows; without the gate nobody asked."""
    status = {"conditional_update_risks": (RISK,), "conditional_updates": (CONDITIONAL,)}
    name = "cluster_version_risk_conditions"
    assert samples_of(name, observed(status, feature_gate=GATES)) == {("Applies", "Slow", "EvaluationFailed"): -1.0}
    assert samples_of(name, observed(status)) == {}
    seconds = samples_of("cluster_version_conditional_update_condition_seconds", observed(status))
    assert list(seconds) == [("5.1.0", "Recommended", "False", "Slow")]


def test_changes_of_a_status_are_counted_and_nothing_else() -> None:
    """Not the first look, not another reason, not an operator that comes or goes."""
    series = ClusterMetricsCollector()
    up, down = cluster_operator("etcd"), cluster_operator("etcd", available="False")
    for operators in ((), (up,), (up,), (down,), (up,)):
        series.look(observed(operators=operators))
    assert counted(series) == 2.0
    series.look(observed(operators=()))
    assert counted(series) is None
    series.look(observed(operators=(down,)))
    assert counted(series) == 0.0


def test_a_condition_that_is_added_or_removed_has_changed() -> None:
    """As upstream's `clusterOperatorChanged` counts it, for an operator that stays."""
    series = ClusterMetricsCollector()
    up = cluster_operator("etcd")
    others = tuple(each for each in up.status.conditions if each.type != "Available")
    without = with_fields(up, status=with_fields(up.status, conditions=others))
    for operators in ((up,), (without,), (up,)):
        series.look(observed(operators=operators))
    assert counted(series) == 2.0


def counted(series: ClusterMetricsCollector) -> float | None:
    """The transitions of etcd's Available."""
    (family,) = (each for each in series.collect() if each.name == "cluster_operator_condition_transitions")
    found = [s.value for s in family.samples if s.labels == {"name": "etcd", "condition": "Available"}]
    return found[0] if found else None


def test_the_facts_are_the_tests_own() -> None:
    """The operator's own release is `current`, whatever the status says."""
    look = replace(observed(), facts=replace(FACTS, release=Release(version="5.1.0", image="mine")))
    assert ("current", "5.1.0", "mine", "5.0.0") in samples_of("cluster_version", look)


def test_a_cluster_without_a_version_is_told_as_such() -> None:
    """Next to its operators."""
    found = {(each.family.name, *each.labels): each.value for each in without_version([cluster_operator("etcd")])}
    assert found["cluster_operator_up", "version", "", "ClusterVersionNotFound"] == 0
    assert found["cluster_operator_conditions", "version", "Available", "ClusterVersionNotFound"] == 0
    assert [key[1] for key in found if key[0] == "cluster_operator_up"] == ["version", "etcd"]


# The series of openshift/cluster-version-operator 6e719331f with their labels: newOperatorMetrics (pkg/cvo/metrics.go),
# metricPayload (pkg/cvo/sync_worker.go) and metricPayloadErrors (pkg/payload/task.go). All are gauges.
UPSTREAM = {
    "cluster_version": ("type", "version", "image", "from_version"),
    "cluster_version_available_updates": ("upstream", "channel"),
    "cluster_version_capability": ("name",),
    "cluster_operator_up": ("name", "version", "reason"),
    "cluster_operator_conditions": ("name", "condition", "reason"),
    "cluster_version_risk_conditions": ("condition", "risk", "reason"),
    "cluster_operator_condition_transitions": ("name", "condition"),
    "cluster_installer": ("type", "version", "invoker"),
    "cluster_version_operator_update_retrieval_timestamp_seconds": ("name",),
    "cluster_version_conditional_update_condition_seconds": ("version", "condition", "status", "reason"),
    "cluster_version_payload": ("version", "type"),
    "cluster_operator_payload_errors": ("version",),
}


def test_series_are_those_of_upstream() -> None:
    """Names, labels and kind: rules and dashboards of others rely on them. The help texts are ours."""
    series = ClusterMetricsCollector()
    series.installed_by("openshift-install", "5.0.0", "user")
    series.failed_attempts = {"5.0.0": 1}
    status = {
        "available_updates": (Release(version="5.0.1"),),
        "capabilities": CapabilitiesStatus(known_capabilities=("Build",)),
        "conditional_update_risks": (RISK,),
        "conditional_updates": (CONDITIONAL,),
    }
    progress, service = Progress(wanted=WantedRelease("i", "5.1.0")), ServiceState(succeeded_at=NOW)
    series.look(observed(status, feature_gate=GATES, progress=progress, service=service))
    families = {family.name: family for family in series.collect()}
    assert {name: tuple(family.samples[0].labels) for name, family in families.items()} == UPSTREAM
    assert {family.type for family in families.values()} == {"gauge"}
    assert all(family.documentation for family in families.values())
