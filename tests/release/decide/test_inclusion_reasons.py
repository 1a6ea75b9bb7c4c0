"""Why a live cluster gets a manifest or not: every rule, and what could not be read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.factories import cluster_version, feature_gate

from runup.api.config_v1 import ComponentOverride
from runup.release.decide.inclusion_reasons import ClusterFacts, Explained, describe, explain_manifest, manifests_named
from runup.release.decide.manifest import Manifest, parse_manifests

P = "include.release.openshift.io/self-managed-high-availability"
SET = "release.openshift.io/feature-set"
GATE = "release.openshift.io/feature-gate"
CAPS = "capability.openshift.io/name"


def manifest(annotations: dict[str, str] | None, kind: str = "ConfigMap", name: str = "x") -> Manifest:
    """A manifest with these annotations."""
    metadata: dict[str, Any] = {"name": name, "namespace": "a"}
    metadata |= {} if annotations is None else {"annotations": annotations}
    found, errors = parse_manifests("f.yaml", json.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
    assert not errors
    return found[0]


def facts(**changes: Any) -> ClusterFacts:
    """A cluster of 5.0.0 in technology preview with gate A."""
    gate = feature_gate("TechPreviewNoUpgrade", enabled=("A",), version="5.0.0")
    return replace(ClusterFacts(cluster_version(), gate), **changes)


def verdicts(found: Explained) -> dict[str, str]:
    """Rule -> verdict, of those that were asked."""
    return {ruling.rule: ruling.verdict for ruling in found.rulings if ruling.verdict != "not asked"}


UNREADABLE = {"gate": "featuregates is forbidden"}


@pytest.mark.parametrize(
    ("annotations", "cluster", "answer", "by"),
    [
        pytest.param({P: "true"}, facts(), "in", "", id="nothing speaks against it"),
        pytest.param(None, facts(), "out", "annotations", id="no annotations"),
        pytest.param({}, facts(), "out", "profile", id="another profile"),
        pytest.param({P: "true", SET: "Default"}, facts(), "out", "feature set", id="another feature set"),
        pytest.param({P: "true", GATE: "A"}, facts(), "in", "", id="a gate that is on"),
        pytest.param({P: "true", GATE: "B"}, facts(), "out", "feature gates", id="a gate that is not"),
        pytest.param(
            {P: "true", GATE: "A"}, facts(feature_gate=None), "out", "feature gates", id="no FeatureGate: no gate is on"
        ),
        pytest.param(
            {P: "true", GATE: "A"},
            facts(feature_gate=None, errors=UNREADABLE),
            "unknown",
            "feature gates",
            id="a FeatureGate that may not be read is none that is absent",
        ),
        pytest.param({P: "true"}, facts(errors=UNREADABLE), "in", "", id="what nobody asks need not be read"),
        pytest.param(
            {GATE: "A"}, facts(errors=UNREADABLE), "out", "profile", id="kept out in any case, whatever is not known"
        ),
        pytest.param(
            {P: "true"}, facts(errors={"operator": "forbidden"}), "unknown", "profile", id="an unreadable Deployment"
        ),
        pytest.param(
            {P: "true"},
            facts(environment={"CLUSTER_PROFILE": "single-node-developer"}),
            "out",
            "profile",
            id="the profile of the operator's Deployment",
        ),
        pytest.param(
            {P: "true", "exclude.release.openshift.io/hosted": "true"},
            facts(environment={"EXCLUDE_MANIFESTS": "hosted"}),
            "out",
            "excluded identifier",
            id="the identifier of the operator's Deployment",
        ),
        pytest.param({P: "true", CAPS: "Nope"}, facts(), "out", "capabilities", id="a capability that nobody knows"),
    ],
)
def test_the_answer_and_the_rule(
    annotations: dict[str, str] | None, cluster: ClusterFacts, answer: str, by: str
) -> None:
    """In, out, or not known, by which rule."""
    described = describe(cluster, major=5)
    found = explain_manifest(manifest(annotations), described.filters, described.unreadable)
    assert (found.answer, found.decided_by.rule if found.decided_by else "") == (answer, by)


def test_every_rule_is_told_not_only_the_first() -> None:
    """Whoever fixes the first would meet the second."""
    version = cluster_version()
    entry = ComponentOverride(kind="ConfigMap", namespace="a", name="x", unmanaged=True)
    spec = type(version.spec)(overrides=(entry,))
    described = describe(facts(cluster_version=type(version)(spec=spec, status=version.status)), major=5)
    found = explain_manifest(manifest({GATE: "B"}), described.filters)
    assert verdicts(found) == {
        "annotations": "passes", "feature gates": "fails", "profile": "fails", "overrides": "fails",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "namespace", "found"),
    [
        pytest.param("ConfigMap", "", 1, id="as the API writes it"),
        pytest.param("configmaps", "", 1, id="as a plural"),
        pytest.param("configmap", "a", 1, id="in its namespace"),
        pytest.param("configmap", "b", 0, id="in another namespace"),
        pytest.param("configmap.apps", "", 0, id="of another group"),
        pytest.param("secret", "", 0, id="another kind"),
    ],
)
def test_which_manifest_is_meant(kind: str, namespace: str, found: int) -> None:
    """Kinds as people type them."""
    assert len(manifests_named([manifest({P: "true"})], kind, "x", namespace)) == found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        pytest.param("clusterrole", 1, id="no group"),
        pytest.param("clusterroles.rbac.authorization.k8s.io", 1, id="its group"),
        pytest.param("clusterrole.apps", 0, id="an earlier group"),
        pytest.param("clusterrole.storage.k8s.io", 0, id="a later group"),
    ],
)
def test_a_group_must_be_the_whole_one(kind: str, found: int) -> None:
    """Where one is named."""
    text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"
    assert len(manifests_named(parse_manifests("0000_50_a_0.yaml", text)[0], kind, "x")) == found


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        pytest.param("NetworkPolicy", "networkpolicies", id="ies"),
        pytest.param("Ingress", "ingresses", id="es"),
        pytest.param("Box", "boxes", id="xes"),
        pytest.param("Batch", "batches", id="ches"),
        pytest.param("Node", "nodes", id="s"),
    ],
)
def test_plurals_as_people_type_them(kind: str, typed: str) -> None:
    """And no others."""
    found = parse_manifests("0000_50_a_0.yaml", f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n")[0]
    assert len(manifests_named(found, typed, "x")) == len(manifests_named(found, kind, "x")) == 1
    assert manifests_named(found, f"{typed}s", "x") == manifests_named(found, typed, "y") == ()
