"""What keeps an updater's object from being written: another manager, a removed version, an annotation's limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api.meta_v1 import ObjectMeta
from runup.api.update_policy_v1alpha1 import (
    ClusterReference,
    ObjectField,
    RunIntent,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.rollout.decide.plain_cluster import Request, release_of
from runup.rollout.decide.updaters import (
    ANNOTATION,
    PUT_BACK,
    UpdaterObject,
    apply_body,
    cluster_of,
    field_of,
    request_of,
    to_put_back,
    updater_gate,
)

NOW = datetime(2027, 2, 2, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)
TARGET = "v1.35.1"
FIELD = ObjectField(
    api_version="upgrade.cattle.io/v1", kind="Plan", name="server", namespace="system-upgrade", path=".spec.version"
)
CLUSTER = ClusterReference(name="harbour", namespace="clusters")
INTENT = RunIntent(image="i", cluster_version_resource_version="7", leader="a", decided_at=NOW)


def run_of(actuator: Any = "Field", target: str = TARGET, **status: Any) -> UpdateRun:
    """A run to the target."""
    spec = UpdateRunSpec(target=release_of(target), actuator=actuator, field=FIELD, cluster=CLUSTER)
    return UpdateRun(metadata=ObjectMeta(name="r", uid="u"), spec=spec, status=UpdateRunStatus(**status))


def plan(value: Any = None, *managers: str, **metadata: Any) -> dict[str, Any]:
    """A Plan whose version these managers own."""
    entries = [{"manager": each, "fieldsV1": {"f:spec": {"f:version": {}}}} for each in managers]
    entries.append({"manager": "kubectl", "fieldsV1": {"f:spec": {"f:upgrade": {}}}})
    spec = {} if value is None else {"version": value}
    return {"metadata": {"resourceVersion": "7", "managedFields": entries, **metadata}, "spec": spec}


def cluster(version: str = TARGET, *, annotated: bool = True) -> dict[str, Any]:
    """A Cluster of Cluster API."""
    annotations = {ANNOTATION: ""} if annotated else {}
    return {"metadata": {"annotations": annotations}, "spec": {"topology": {"version": version}}}


def written(age: timedelta) -> dict[str, Any]:
    """The annotation of a write this long ago."""
    return {"annotations": {"update.runup.dev/written": (NOW - age).isoformat()}}


OURS = "runup-update"
FREE = field_of(FIELD, plan())
EARLIER = run_of(started=NOW - timedelta(minutes=59), step="Superseded")


@pytest.mark.parametrize(
    ("run", "found", "runs", "reason"),
    [
        pytest.param(run_of(), FREE, (), "Writable", id="a field that nobody manages"),
        pytest.param(run_of(), field_of(FIELD, plan("v1.34.0", OURS)), (), "Writable", id="our earlier version"),
        pytest.param(run_of(), field_of(FIELD, plan("v1.34.0", "argocd")), (), "OtherUpdate", id="34: Git's version"),
        pytest.param(run_of(), field_of(FIELD, plan("", "argocd")), (), "OtherUpdate", id="Git's empty version"),
        pytest.param(run_of(), field_of(FIELD, plan(TARGET, "argocd")), (), "Writable", id="Git has the same version"),
        pytest.param(run_of(), FREE, (EARLIER,), "OtherUpdate", id="34: removed 59 min after a run wrote it"),
        pytest.param(
            run_of(),
            FREE,
            (replace(EARLIER, status=replace(EARLIER.status, started=NOW - HOUR)),),
            "Writable",
            id="34: removed an hour ago",
        ),
        pytest.param(
            run_of(), field_of(FIELD, plan(**written(HOUR / 2))), (), "OtherUpdate", id="the object has the time"
        ),
        pytest.param(run_of(), field_of(FIELD, plan(**written(HOUR))), (), "Writable", id="the time is an hour ago"),
        pytest.param(run_of(), field_of(FIELD, plan(7)), (), "ActuatorMissing", id="a number is not replaced"),
        pytest.param(run_of(), UpdaterObject(text="Plan", problem="no kind"), (), "ActuatorMissing", id="unreadable"),
        pytest.param(run_of("RemoveAnnotation"), cluster_of(CLUSTER, cluster()), (), "Writable", id="36: it waits"),
        pytest.param(
            run_of("RemoveAnnotation"),
            cluster_of(CLUSTER, cluster(annotated=False)),
            (),
            "OtherUpdate",
            id="nothing holds the update",
        ),
        pytest.param(
            run_of("RemoveAnnotation"),
            cluster_of(CLUSTER, cluster("v1.34.2")),
            (),
            "OtherUpdate",
            id="the Cluster waits for another version",
        ),
        pytest.param(
            run_of("RemoveAnnotation", "v1.36.0"),
            cluster_of(CLUSTER, cluster("v1.36.0")),
            (),
            "FirstHopOnly",
            id="36: the second minor version would have no gate",
        ),
        pytest.param(
            run_of("RemoveAnnotation"),
            cluster_of(CLUSTER, {"metadata": {}, "spec": {}}),
            (),
            "ActuatorMissing",
            id="a Cluster without a topology",
        ),
    ],
)
def test_the_gate_of_an_updater(run: UpdateRun, found: UpdaterObject, runs: Any, reason: str) -> None:
    """Only an object that can be written opens the gate, and a missing one is unknown."""
    gate = updater_gate(run, found, runs, running="v1.34.2", now=NOW)
    assert gate is not None
    states = {"Writable": "Open", "ActuatorMissing": "Unknown"}
    assert (gate.reason, gate.state) == (reason, states.get(reason, "Closed"))
    assert updater_gate(run, None, runs, running="v1.34.2", now=NOW) is None


@pytest.mark.parametrize(
    ("run", "found", "expected"),
    [
        (run_of(), FREE, Request(other="no version", resource_version="7")),
        (run_of(), field_of(FIELD, plan(TARGET, OURS)), Request(is_ours=True, resource_version="7")),
        (run_of(), field_of(FIELD, plan(TARGET, "argocd")), Request(other=TARGET, resource_version="7")),
        (run_of(), field_of(FIELD, plan("v1.34.0", OURS)), Request(other="v1.34.0", resource_version="7")),
        (run_of("RemoveAnnotation"), cluster_of(CLUSTER, cluster(annotated=False)), Request()),
        (
            run_of("RemoveAnnotation", intent=INTENT),
            cluster_of(CLUSTER, cluster(annotated=False)),
            Request(is_ours=True),
        ),
        (run_of("RemoveAnnotation", intent=INTENT), cluster_of(CLUSTER, cluster()), Request()),
        (run_of("None"), None, Request()),
    ],
)
def test_what_was_requested(run: UpdateRun, found: UpdaterObject | None, expected: Request) -> None:
    """A version counts as ours if our manager owns it; a removed annotation, if the run intended it."""
    assert request_of(run, found) == expected


def test_applies_one_field() -> None:
    """The apply has nothing besides the identity, the version that was read, the field and the time of the write."""
    body = apply_body(FIELD, TARGET, "7", NOW)
    assert body == {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": {
            "name": "server",
            "namespace": "system-upgrade",
            "resourceVersion": "7",
            "annotations": {"update.runup.dev/written": "2027-02-02T22:00:00Z"},
        },
        "spec": {"version": TARGET},
    }
    assert field_of(FIELD, body).written == NOW


def test_36_the_annotation_is_put_back_once() -> None:
    """After a run that has begun, and not while a later run is not finished."""
    done = run_of("RemoveAnnotation", step="Done", started=NOW)
    assert to_put_back((done,)) is done
    marked = replace(done, metadata=replace(done.metadata, annotations={PUT_BACK: "true"}))
    skipped = run_of("RemoveAnnotation", step="Done")
    for runs in ((marked,), (skipped,), (done, run_of("RemoveAnnotation")), (run_of("Field", step="Done"),), ()):
        assert to_put_back(runs) is None
