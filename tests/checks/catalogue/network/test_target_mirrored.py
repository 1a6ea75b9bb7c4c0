"""Tests the findings about mirrors before the target's image is known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import JSON, findings
from tests.factories import context

from runup.checks.decide.model import Applies

NAME = "TargetOnlyMirrored"


def mirrored(name: str, source: str, policy: str = "NeverContactSource") -> JSON:
    """A set of mirrors for one source."""
    entry = {"source": source, "mirrors": ["mirror.example.com/a"], "mirrorSourcePolicy": policy}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": name},
        "spec": {"imageDigestMirrors": [entry]},
    }


BASE = mirrored("base", "registry.access.redhat.com/ubi9")
RUNNING = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": {"name": "version"},
    "status": {"desired": {"version": "5.0.0", "image": "quay.io/example/release@sha256:4"}},
}


@pytest.mark.parametrize(
    ("objects", "about"),
    [
        pytest.param((BASE, RUNNING), [], id="of other images"),
        pytest.param((BASE, RUNNING, mirrored("quay", "quay.io/example")), ["quay"], id="of releases"),
        pytest.param((BASE, RUNNING, mirrored("quay", "quay.io", "AllowContactingSource")), [], id="open for releases"),
        pytest.param((BASE,), ["base"], id="nobody knows what runs"),
    ],
)
def test_an_image_that_is_not_known(objects: tuple[JSON, ...], about: list[str]) -> None:
    """It is looked for where the running release came from."""
    found = findings(NAME, *objects, to=replace(context(), target_image=""))
    assert found == ([(f"{NAME}Unknown", "warning", Applies.UNKNOWN, about)] if about else [])
