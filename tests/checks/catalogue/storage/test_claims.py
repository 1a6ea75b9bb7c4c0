"""How grave it is that a claim would not give its pod the volume again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import SINCE, pod_json


def claim(name: str, phase: str = "Bound", **metadata: Any) -> JSON:
    """A claim in namespace shop."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"volumeName": "pv-1"},
        "status": {"phase": phase},
    }


def pod_with_claim(name: str, claim: str) -> JSON:
    """A pod that a drain moves, with that claim."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    return pod_json(name, owner="StatefulSet", spec={"volumes": [volume]})


MADE_LATER = (pod_with_claim("db-0", "new"), claim("other"))


@pytest.mark.parametrize(
    ("objects", "severity"),
    [
        pytest.param(MADE_LATER, "warning", id="not there"),
        pytest.param((pod_with_claim("db-0", "a"), claim("a", "Lost")), "critical", id="lost"),
        pytest.param(
            (pod_with_claim("db-0", "a"), claim("a", deletionTimestamp=SINCE)), "critical", id="being deleted"
        ),
        pytest.param((*MADE_LATER, pod_with_claim("db-1", "a"), claim("a", "Lost")), "critical", id="one of each"),
    ],
)
def test_how_grave_it_is(objects: tuple[JSON, ...], severity: str) -> None:
    """Lists are taken one after the other: a claim that is not in its list may have been made since."""
    ((name, grave, *_),) = findings("VolumeClaimLost", *objects)
    assert (name, grave) == ("VolumeClaimLost", severity)
