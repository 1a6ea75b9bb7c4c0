"""The image of a target that is given by its version alone: the one that ClusterVersion lists."""

from __future__ import annotations

import pytest
from tests.factories import NOW

from kubekit.api import codec
from kubekit.lang.version import Version
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.snapshots import snapshot_of
from runup.evaluation.request import release_request
from runup.facts.facts import Facts
from runup.facts.target_release import TargetRelease

OFFERED, CONDITIONAL = "example.com/offered@sha256:1", "example.com/conditional@sha256:2"
CLUSTER = codec.convert(
    ClusterVersion,
    {
        "metadata": {"name": "version"},
        "status": {
            "availableUpdates": [{"version": "4.19.10", "image": OFFERED}],
            "conditionalUpdates": [{"release": {"version": "4.19.11", "image": CONDITIONAL}}],
        },
    },
)


@pytest.mark.parametrize(
    ("cluster", "version", "requested", "image"),
    [
        (CLUSTER, "4.19.10", "", OFFERED),
        (CLUSTER, "4.19.11", "", CONDITIONAL),
        (CLUSTER, "4.19.12", "", ""),
        (CLUSTER, "4.19.10", "example.com/other@sha256:3", "example.com/other@sha256:3"),
        (None, "4.19.10", "", ""),
    ],
    ids=["available", "conditional", "not listed", "the requested one counts", "no ClusterVersion"],
)
def test_checks_know_the_image(cluster: ClusterVersion | None, version: str, requested: str, image: str) -> None:
    request, _ = release_request(
        TargetRelease(),
        cluster,
        None,
        source=Version("4.18.25"),
        target=Version(version),
        target_version=version,
        image=requested,
    )
    assert request.context(Facts(snapshot=snapshot_of((), ())), NOW).target_image == image
    assert request.header(NOW).target_image == requested
