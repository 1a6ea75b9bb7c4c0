"""Versions in which objects of a definition are stored, on clusters that no release brings definitions to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import findings
from tests.factories import context

from runup.checks.decide.cluster_kinds import ClusterKind


@pytest.mark.parametrize(
    ("stored", "is_told"), [(["v1"], False), (["v1alpha1", "v1"], False), (["v1alpha0", "v1"], True), ([], False)]
)
def test_a_version_that_the_definition_does_not_have(stored: list[str], is_told: bool) -> None:
    """The API server refuses a definition without a version that it stores (apiextensions, validation)."""
    spec = {
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": name, "served": name == "v1", "storage": name == "v1"} for name in ("v1alpha1", "v1")],
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": spec,
        "status": {"storedVersions": stored},
    }
    update = replace(context("1.34.1", "1.35.0", "1.35.0"), cluster=ClusterKind.KUBERNETES)
    shown = [(name, severity) for name, severity, *_ in findings("CRDStoredVersionDropped", crd, to=update)]
    assert shown == [("CRDStoredVersionDropped", "warning")] * is_told
