"""Which release a cluster runs before a rehearsal: what is reported of a cluster of which that is not known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.factories import node_json

from kubekit.error_types import InputError
from runup.dump.completeness import CompleteKinds
from runup.rehearse.control.cluster_source import ClusterSource, read_dump_source
from runup.rehearse.control.releases import rehearse_without_release, version_of


def source(*versions: dict[str, Any]) -> ClusterSource:
    """A dump with a ClusterVersion of these fields, if there are any."""
    kind = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    return ClusterSource(
        name="a dump", objects=[kind | fields for fields in versions], plurals={}, collected=CompleteKinds()
    )


def status(version: str) -> dict[str, Any]:
    """A ClusterVersion that runs that version."""
    return {"spec": {"clusterID": "x"}, "status": {"desired": {"version": version, "image": "i"}}}


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        pytest.param(source(), "the cluster has no ClusterVersion, so no release updates it; `runup ", id="none"),
        pytest.param(source(status("")), "the ClusterVersion does not say in status.desired which ", id="no version"),
        pytest.param(source(status("next")), "the ClusterVersion does not say in status.desired which ", id="a word"),
    ],
)
def test_a_release_that_is_not_known_is_an_error(cluster: ClusterSource, why: str) -> None:
    """Nothing is tried on a copy of it."""
    with pytest.raises(InputError, match=f"^{why}"):
        version_of(cluster)


def test_the_release_that_a_cluster_runs() -> None:
    """As its status has it."""
    assert version_of(source(status("5.0.0"))).status.desired.version == "5.0.0"


def test_names_the_kinds_that_were_not_read() -> None:
    """Those that lose a version in 1.26; a kind that was read in full is known.

    Source: https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-26
    """
    flow_control = {f"{kind}.flowcontrol.apiserver.k8s.io" for kind in ("FlowSchema", "PriorityLevelConfiguration")}
    cluster = replace(source(), kubernetes="1.25.4")
    unread = rehearse_without_release(cluster, "1.26", None, limit_s=1).unknown
    assert {each.kind for each in unread} == {"HorizontalPodAutoscaler.autoscaling", *flow_control}
    whole = CompleteKinds(whole=frozenset({("autoscaling", "horizontalpodautoscalers")}))
    unread = rehearse_without_release(replace(cluster, collected=whole), "1.26", None, limit_s=1).unknown
    assert {each.kind for each in unread} == flow_control


@pytest.mark.parametrize("events", [0, 2])
def test_says_how_much_of_a_dump_is_not_copied(events: int, tmp_path: Path) -> None:
    """Events show nothing about an update."""
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "default"}}
    lists = {"nodes": [node_json(kubelet="v1.34.2")], "events": [event] * events}
    for name, items in lists.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    left_out = {each.kind: each.count for each in read_dump_source(tmp_path).left_out}
    assert left_out.get("other kinds", 0) == events
    assert ("other kinds" in left_out) == bool(events)
