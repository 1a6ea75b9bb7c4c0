"""How grave it is that a claim would not give its pod the volume again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import SINCE


def claim(name: str, phase: str = "Bound", **metadata: Any) -> JSON:
    """A claim in namespace shop."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"volumeName": "pv-1"},
        "status": {"phase": phase},
    }


def pod(name: str, of: str) -> JSON:
    """A pod that a drain moves, with that claim."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": [{"kind": "StatefulSet", "name": "db"}]},
        "spec": {"nodeName": "worker-0", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": of}}]},
        "status": {"phase": "Running"},
    }


MADE_LATER = (pod("db-0", "new"), claim("other"))


@pytest.mark.parametrize(
    ("objects", "severity"),
    [
        pytest.param(MADE_LATER, "warning", id="not there"),
        pytest.param((pod("db-0", "a"), claim("a", "Lost")), "critical", id="lost"),
        pytest.param((pod("db-0", "a"), claim("a", deletionTimestamp=SINCE)), "critical", id="being deleted"),
        pytest.param((*MADE_LATER, pod("db-1", "a"), claim("a", "Lost")), "critical", id="one of each"),
    ],
)
def test_how_grave_it_is(objects: tuple[JSON, ...], severity: str) -> None:
    """Lists are taken one after the other: a claim that is not in its list may have been made since."""
    ((name, grave, *_),) = findings("VolumeClaimLost", *objects)
    assert (name, grave) == ("VolumeClaimLost", severity)
