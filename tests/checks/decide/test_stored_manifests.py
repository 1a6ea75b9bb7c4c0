"""Manifests as text: what a target does not serve, what will go, and what nobody knows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import context

from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Snapshot
from runup.checks.decide.removal_tables import table
from runup.checks.decide.stored_manifests import Manifest, Manifests, file_check, helm_check

# The versions are those of https://kubernetes.io/docs/reference/using-api/deprecation-guide/.
BUDGET = Manifest(
    api_version="policy/v1beta1", kind="PodDisruptionBudget", namespace="shop", name="web", place="a.yaml:1"
)
SCHEMA = Manifest(
    api_version="flowcontrol.apiserver.k8s.io/v1beta3", kind="FlowSchema", namespace="", name="fs", place="b.yaml:7"
)
REVIEW = Manifest(
    api_version="authentication.k8s.io/v1beta1", kind="TokenReview", namespace="", name="t", place="e.yaml:1"
)
ROLE = Manifest(
    api_version="rbac.authorization.k8s.io/v1beta1", kind="Role", namespace="shop", name="r", place="f.yaml:1"
)
ISSUER = Manifest(api_version="cert-manager.io/v1alpha2", kind="Issuer", namespace="shop", name="ca", place="g.yaml:1")
SERVED = Manifest(api_version="policy/v1", kind="PodDisruptionBudget", namespace="shop", name="web", place="a.yaml:9")
CUSTOM = Manifest(
    api_version="example.com/v1beta1", kind="PodDisruptionBudget", namespace="shop", name="web", place="c.yaml:1"
)
IN_D = {"namespace": "", "place": "d.yaml:1"}
EARLY = Manifest(
    api_version="resource.k8s.io/v1beta9", kind="ResourceClaim", namespace="", name="gpu", place="d.yaml:1"
)


def findings_of(check: Check, minor: int) -> list[tuple[str, str, str]]:
    """Name, severity and whether it applies, of each finding."""
    target = f"1.{minor}.0"
    update = replace(context(f"1.{minor - 1}.0", target, target), cluster=ClusterKind.KUBERNETES)
    found = run_check(check, Snapshot(), update).findings
    return sorted((each.name, each.severity, each.applies.value) for each in found)


UNKNOWN = ("RemovedAPIInManifestUnknown", "warning", "Unknown")
ROWS = {
    "removed before": ((BUDGET,), 30, [("RemovedAPIInManifest-PodDisruptionBudget", "critical", "True")]),
    "removed by the target": ((SCHEMA,), 32, [("RemovedAPIInManifest-FlowSchema", "critical", "True")]),
    "removed by the next": ((SCHEMA,), 31, [("DeprecatedAPIInManifest-FlowSchema", "info", "True")]),
    "removed three minors on": ((SCHEMA,), 29, [("DeprecatedAPIInManifest-FlowSchema", "info", "True")]),
    "removed later": ((SCHEMA,), 28, []),
    "not deprecated yet, removed later": ((REVIEW,), 18, []),
    "deprecated long before it goes": ((ROLE,), 17, [("DeprecatedAPIInManifest-Role", "info", "True")]),
    "a definition's that its add-on dropped": ((ISSUER,), 36, [("RemovedAPIInManifest-Issuer", "warning", "True")]),
    "a definition's that its add-on serves": ((replace(ISSUER, api_version="cert-manager.io/v1"),), 36, []),
    "served": ((SERVED,), 36, []),
    "a definition's beside what is served": ((CUSTOM, SERVED), 36, []),
    "a definition's alone": ((CUSTOM,), 36, [UNKNOWN]),
    "none at all": ((), 36, [UNKNOWN]),
    "an early version that the table knows nothing of": (
        (EARLY,),
        36,
        [("RemovedAPIInManifestUnknown", "warning", "Unknown")],
    ),
    "a version that only later versions of Kubernetes serve": (
        (Manifest(api_version="admissionregistration.k8s.io/v1", kind="MutatingAdmissionPolicy", name="a", **IN_D),),
        34,
        [("RemovedAPIInManifest-MutatingAdmissionPolicy", "critical", "True")],
    ),
    "and those that serve it": (
        (Manifest(api_version="admissionregistration.k8s.io/v1", kind="MutatingAdmissionPolicy", name="a", **IN_D),),
        36,
        [],
    ),
    "a kind that Kubernetes does not have": (
        (Manifest(api_version="batch/v1", kind="CronJobb", name="a", **IN_D),),
        36,
        [("RemovedAPIInManifestUnknown", "warning", "Unknown")],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_manifests_in_files(row: str) -> None:
    """Applying what is removed fails; what will be is reported three minor versions ahead."""
    manifests, minor, expected = ROWS[row]
    assert findings_of(file_check(Manifests(manifests)), minor) == expected


def test_beyond_the_table_nothing_is_fine_that_is_early() -> None:
    """A later minor version may remove any alpha or beta version."""
    beyond = table("removed-apis").last + 1
    unknown = [("RemovedAPIInManifestUnknown", "warning", "Unknown")]
    assert findings_of(file_check(Manifests((EARLY,))), beyond) == unknown
    assert findings_of(file_check(Manifests((SERVED, CUSTOM))), beyond) == []


def test_what_could_not_be_read_is_unknown() -> None:
    """Next to what was found."""
    read = Manifests((BUDGET,), ("x.yaml:1 (it is a template)",))
    assert findings_of(file_check(read), 36) == [
        ("RemovedAPIInManifest-PodDisruptionBudget", "critical", "True"),
        ("RemovedAPIInManifestUnknown", "warning", "Unknown"),
    ]
    assert findings_of(helm_check(Manifests((), ("secrets (forbidden)",))), 36) == [
        ("RemovedAPIInHelmReleaseUnknown", "warning", "Unknown")
    ]


def test_releases_of_helm() -> None:
    """What runs continues running; the next upgrade of the release fails."""
    read = Manifests((replace(BUDGET, place="release shop/web of chart web-1.2.3"), SERVED))
    assert findings_of(helm_check(read), 30) == [("RemovedAPIInHelmRelease-PodDisruptionBudget", "warning", "True")]
    assert findings_of(helm_check(Manifests((SERVED,))), 30) == []
    update = replace(context("1.24.0", "1.25.0", "1.25.0"), cluster=ClusterKind.KUBERNETES)
    (finding,) = run_check(helm_check(read), Snapshot(), update).findings
    assert "release shop/web of chart web-1.2.3" in finding.message
    assert finding.resources[0].text == "PodDisruptionBudget.policy shop/web"


def test_releases_of_helm_for_a_target_whose_kubernetes_is_not_known() -> None:
    """Nothing can be compared."""
    update = context("4.16.0", "4.17.0", "")
    outcome = run_check(helm_check(Manifests((BUDGET,))), Snapshot(), update)
    assert [(found.name, found.applies.value) for found in outcome.findings] == [
        ("RemovedAPIInHelmReleaseUnknown", "Unknown")
    ]
    assert "which Kubernetes 4.17.0 ships is not known" in outcome.findings[0].message


@pytest.mark.parametrize(
    ("manifest", "replacement"),
    [
        pytest.param(BUDGET, "policy/v1:", id="the version that stays"),
        pytest.param(
            Manifest(
                api_version="flowcontrol.apiserver.k8s.io/v1beta1",
                kind="FlowSchema",
                namespace="",
                name="f",
                place="a:1",
            ),
            "flowcontrol.apiserver.k8s.io/v1:",
            id="the one after those that went, too",
        ),
        pytest.param(
            Manifest(api_version="extensions/v1beta1", kind="Ingress", namespace="", name="i", place="a:1"),
            "networking.k8s.io/v1:",
            id="another group",
        ),
        pytest.param(
            Manifest(api_version="policy/v1beta1", kind="PodSecurityPolicy", namespace="", name="p", place="a:1"),
            "no version of this kind stays",
            id="none",
        ),
    ],
)
def test_the_way_out_names_the_replacement(manifest: Manifest, replacement: str) -> None:
    """The replacement is the version in https://kubernetes.io/docs/reference/using-api/deprecation-guide/."""
    update = replace(context("1.35.0", "1.36.0", "1.36.0"), cluster=ClusterKind.KUBERNETES)
    (finding,) = run_check(file_check(Manifests((manifest,))), Snapshot(), update).findings
    assert replacement in finding.remediation


@pytest.mark.parametrize(
    ("manifests", "fix"),
    [((BUDGET,), "Write it in policy/v1:"), ((BUDGET, replace(BUDGET, name="other")), "Write them in policy/v1:")],
    ids=["one", "two"],
)
def test_the_way_out_counts_the_manifests(manifests: tuple[Manifest, ...], fix: str) -> None:
    """One manifest is "it", several are "them"."""
    update = replace(context("1.35.0", "1.36.0", "1.36.0"), cluster=ClusterKind.KUBERNETES)
    (finding,) = run_check(file_check(Manifests(manifests)), Snapshot(), update).findings
    assert finding.remediation.startswith(fix)
