"""Which release a cluster runs before a rehearsal: what is reported of a cluster of which that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.error_types import InputError
from runup.dump.completeness import CompleteKinds
from runup.rehearse.control.cluster_source import ClusterSource
from runup.rehearse.control.releases import version_of


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
