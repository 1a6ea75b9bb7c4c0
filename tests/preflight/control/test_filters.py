"""Which of a release's own checks a cluster gets: as it would get its manifests."""

from __future__ import annotations

import pytest
from tests.factories import cluster_version, feature_gate

from kubekit.lang.version import Version
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import CapabilitiesSpec, CapabilitiesStatus
from runup.checks.decide.declared_checks import declared_checks
from runup.evaluation.request import filters_of

CHECK = """\
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: theirs
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    {annotation}
spec:
  component: console
  reads: [{{name: nodes, version: v1, resource: nodes, fields: [metadata.name]}}]
  risk: {{name: Theirs, message: It is., url: "https://example.com/"}}
  expression: size(nodes) > 0
"""
WANTS_CONSOLE = CapabilitiesSpec(baseline_capability_set="None", additional_enabled_capabilities=("Console",))
WANTS_NOTHING = CapabilitiesSpec(baseline_capability_set="None")


@pytest.mark.parametrize(
    ("annotation", "spec", "enabled", "expected"),
    [
        pytest.param('example.com/note: "1"', WANTS_NOTHING, (), 1, id="no capability is named"),
        pytest.param("capability.openshift.io/name: Console", None, (), 1, id="every capability is wanted"),
        pytest.param("capability.openshift.io/name: Console", WANTS_CONSOLE, (), 1, id="it is asked for"),
        pytest.param("capability.openshift.io/name: Console", WANTS_NOTHING, (), 0, id="it is not asked for"),
        pytest.param("capability.openshift.io/name: Console", WANTS_NOTHING, ("Console",), 1, id="it cannot go again"),
        pytest.param("capability.openshift.io/name: Console+Build", WANTS_CONSOLE, (), 0, id="one of two is missing"),
        pytest.param("release.openshift.io/feature-gate: Some", None, (), 1, id="its gate is open"),
        pytest.param("release.openshift.io/feature-gate: Other", None, (), 0, id="its gate is closed"),
        pytest.param('release.openshift.io/feature-set: "Default"', None, (), 1, id="its feature set is the cluster's"),
        pytest.param("release.openshift.io/feature-set: TechPreviewNoUpgrade", None, (), 0, id="another feature set"),
    ],
)
def test_a_check_is_for_clusters_that_have_its_part(
    annotation: str, spec: CapabilitiesSpec | None, enabled: tuple[str, ...], expected: int
) -> None:
    """Capabilities count with what the cluster keeps; gates and feature sets by the running version."""
    from msgspec.structs import replace

    cluster = cluster_version(capabilities=CapabilitiesStatus(enabled_capabilities=enabled))
    cluster = replace(cluster, spec=replace(cluster.spec, capabilities=spec))
    filters = filters_of("5.2.0", Version("5.0.0"), cluster, feature_gate(enabled=("Some",)))
    checks = declared_checks({"preflight-checks/theirs.yaml": CHECK.format(annotation=annotation)}, filters)
    assert len(checks) == expected


@pytest.mark.parametrize(
    "gate",
    [
        pytest.param(None, id="no FeatureGate, or none that can be read"),
        pytest.param(feature_gate(version="4.22.0", enabled=("Some",)), id="one that says nothing of the version"),
        pytest.param(feature_gate(enabled=()), id="one that enables nothing"),
    ],
)
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param('example.com/note: "1"', 1, id="nothing is asked for"),
        pytest.param("release.openshift.io/feature-set: TechPreviewNoUpgrade", 0, id="a tech preview's"),
        pytest.param("release.openshift.io/feature-set: Other", 0, id="an unknown set's"),
        pytest.param("release.openshift.io/feature-set: Default", 1, id="the default set's"),
        pytest.param("release.openshift.io/feature-gate: Some", 0, id="a named gate's"),
        pytest.param("release.openshift.io/feature-gate: -Some", 1, id="for clusters without a gate"),
    ],
)
def test_no_feature_set_and_no_gate_is_assumed(annotation: str, expected: int, gate: FeatureGate | None) -> None:
    """Until the cluster has said so, nothing is enabled; that is no reason to let everything in.

    Source: docs/reference/upstream.md 2.4.
    """
    filters = filters_of("5.2.0", Version("5.0.0"), cluster_version(), gate)
    checks = declared_checks({"preflight-checks/theirs.yaml": CHECK.format(annotation=annotation)}, filters)
    assert len(checks) == expected
