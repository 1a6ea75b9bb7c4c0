"""Who writes objects in a version that the target does not serve: of several entries those that count."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME, JSON, findings
from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies
from runup.checks.decide.snapshots import snapshot_of

(CHECK,) = (check for check in CHECKS if check.name == "RemovedAPIStored")
HEAD = CHECK.example.partition("  managedFields:")[0]
GROUP = "flowcontrol.apiserver.k8s.io"


OLD, NEWER = "2020-01-01T00:00:00Z", "2026-01-13T09:00:00Z"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def entry(manager: str, version: str = "v1beta3", time: str = "2026-01-13T08:00:00Z", *, owns: bool = False) -> str:
    """An entry of managedFields, of the manager that wrote the annotation of `kubectl apply` if it `owns` it."""
    shown = f', time: "{time}"' if time else ""
    fields = f', fieldsV1: {{"f:metadata": {{"f:annotations": {{".": {{}}, "f:{ANNOTATION}": {{}}}}}}}}' if owns else ""
    return f"  - {{manager: {manager}, operation: Update, apiVersion: {GROUP}/{version}{shown}{fields}}}\n"


def shown(entries: list[str], applied: str = "") -> list[tuple[str, str, str]]:
    """The severity, the end of the name, and who writes, of each finding about an object with these entries."""
    note = f"  annotations: {{{ANNOTATION}: '{applied}'}}\n" if applied else ""
    example = f"{HEAD}{note}  managedFields:\n{''.join(entries)}" if entries else f"{HEAD}{note}"
    outcome = run_check(CHECK, *check_page.example(replace(CHECK, example=example)))
    return [
        (
            found.severity if found.applies is Applies.YES else found.applies.value,
            found.name.removeprefix("RemovedAPIStored").removeprefix("-FlowSchema"),
            found.message.partition("Who writes: ")[2].rstrip("."),
        )
        for found in outcome.findings
    ]


def applied(version: str) -> str:
    """A manifest that was applied last."""
    return (
        f'{{"apiVersion":"{GROUP}/{version}","kind":"FlowSchema","metadata":{{"name":"shop"}},"spec":{{"x":"secret"}}}}'
    )


RECENT = f"in {GROUP}/v1beta3 on 2026-01-13"
LONG_AGO = f"in {GROUP}/v1beta3 on 2020-01-01"
FILE = f"from a file that says {GROUP}/v1beta3"
CSA = "kubectl-client-side-apply"


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        pytest.param([entry("a")], [("critical", "", f"a {RECENT}")], id="one"),
        pytest.param([entry("kube-apiserver")], [], id="the API server"),
        pytest.param([entry("api-priority-and-fairness-config-consumer-v1")], [], id="a part of the API server"),
        pytest.param([entry("a", time="")], [("info", "-Earlier", f"a in {GROUP}/v1beta3")], id="nobody knows when"),
        pytest.param([entry("a", time=OLD)], [("info", "-Earlier", f"a {LONG_AGO}")], id="long ago"),
        pytest.param([entry("a", "v1")], [], id="in a version that stays"),
        pytest.param(
            [entry("a", time=OLD), entry("b")],
            [("critical", "", f"b {RECENT}"), ("info", "-Earlier", f"a {LONG_AGO}")],
            id="one lately, one long ago",
        ),
        pytest.param([entry("a", "v1"), entry("b")], [("critical", "", f"b {RECENT}")], id="another manager"),
        pytest.param([entry("a"), entry("a", "v1", NEWER)], [], id="the same manager, later in a version that stays"),
        pytest.param([entry("a", time=OLD), entry("a", "v1")], [], id="long ago, later in a version that stays"),
        pytest.param(
            [entry("a", time=NEWER), entry("a", "v1")],
            [("critical", "", f"a {RECENT}")],
            id="a stable version before",
        ),
        pytest.param([entry("a"), entry("a", "v1")], [("critical", "", f"a {RECENT}")], id="both in one second"),
        pytest.param(
            [entry("b"), entry("a"), entry("b")], [("critical", "", f"a {RECENT} and b {RECENT}")], id="two, each once"
        ),
    ],
)
def test_who_writes_what_is_not_served_any_more(entries: list[str], found: list[tuple[str, str, str]]) -> None:
    """Newer evidence of the same manager cancels older; what is left weighs by its age."""
    assert shown(entries) == found


@pytest.mark.parametrize(
    ("entries", "manifest", "found"),
    [
        pytest.param(
            [entry(CSA, owns=True)],
            applied("v1beta3"),
            [("critical", "", f"applied by kubectl on 2026-01-13, {FILE}")],
            id="lately",
        ),
        pytest.param(
            [entry(CSA, time=OLD, owns=True)],
            applied("v1beta3"),
            [("warning", "-LastApplied", f"applied by kubectl on 2020-01-01, {FILE}")],
            id="long ago",
        ),
        pytest.param(
            [entry("argocd-controller", time=OLD, owns=True)],
            applied("v1beta3"),
            [("warning", "-LastApplied", f"applied by argocd-controller on 2020-01-01, {FILE}")],
            id="by Argo CD",
        ),
        pytest.param(
            [entry(CSA, time=OLD)],
            applied("v1beta3"),
            [("warning", "-LastApplied", f"applied by kubectl on 2020-01-01, {FILE}")],
            id="by a manager whose fields are not shown",
        ),
        pytest.param(
            [entry("a", "v1")],
            applied("v1beta3"),
            [("warning", "-LastApplied", f"applied by kubectl, {FILE}")],
            id="nobody knows when",
        ),
        pytest.param([entry(CSA, time=OLD, owns=True)], applied("v1"), [], id="later in a version that stays"),
        pytest.param([entry(CSA), entry(CSA, "v1", NEWER)], applied("v1beta3"), [], id="by kubectl in another version"),
        pytest.param([entry("a", "v1")], "no JSON", [], id="no manifest"),
        pytest.param([entry("a", "v1")], "[1]", [], id="another JSON"),
        pytest.param(
            [],
            applied("v1beta3"),
            [("warning", "-LastApplied", f"applied by kubectl, {FILE}"), ("Unknown", "Unknown", "")],
            id="no managers",
        ),
        pytest.param([], "", [("Unknown", "Unknown", "")], id="nothing"),
        pytest.param([], applied("v1"), [("Unknown", "Unknown", "")], id="no managers, and a version that stays"),
    ],
)
def test_manifests_that_were_applied(entries: list[str], manifest: str, found: list[tuple[str, str, str]]) -> None:
    """The next `kubectl apply` of the file fails; without managed fields others may write, too."""
    assert shown(entries, manifest) == found


def test_hidden_managers_are_unknown_once() -> None:
    """kubectl hides them by default, of every kind."""
    kinds = [written("FlowSchema", f"{GROUP}/v1beta3"), written("PriorityLevelConfiguration", f"{GROUP}/v1beta3")]
    for obj in kinds:
        obj["metadata"].pop("managedFields")
        obj["apiVersion"] = f"{GROUP}/v1"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"nodeInfo": {"kubeletVersion": "v1.31.4"}}
    outcome = run_check(BY_NAME["RemovedAPIStored"], snapshot_of(CHECK.reads, [node, *kinds]), context())
    assert [found.name for found in outcome.findings] == ["RemovedAPIStoredUnknown"]
    assert "FlowSchema and PriorityLevelConfiguration" in outcome.findings[0].message
    assert "--show-managed-fields" in outcome.findings[0].remediation


def written(kind: str, api: str, manager: str = "shop-operator") -> JSON:
    """An object that a manager wrote in a version of its kind."""
    fields = [{"manager": manager, "operation": "Update", "apiVersion": api, "time": "2026-01-13T08:00:00Z"}]
    return {
        "apiVersion": re.sub(r"(alpha|beta)\d+", "", api).replace("autoscaling/v1", "autoscaling/v2"),
        "kind": kind,
        "metadata": {"name": "one", "managedFields": fields},
    }


@pytest.mark.parametrize(
    ("kind", "api", "source", "target"),
    [
        ("ServiceCIDR", "networking.k8s.io/v1beta1", "v1.36.1", "1.37.0"),
        ("VolumeAttributesClass", "storage.k8s.io/v1beta1", "v1.36.1", "1.37.0"),
        ("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1beta1", "v1.33.1", "1.34.0"),
        ("DeviceClass", "resource.k8s.io/v1beta1", "v1.37.1", "1.38.0"),
        ("HorizontalPodAutoscaler", "autoscaling/v2beta2", "v1.25.1", "1.26.0"),
        ("CronJob", "batch/v1beta1", "v1.24.1", "1.25.0"),
        ("PodDisruptionBudget", "policy/v1beta1", "v1.24.1", "1.25.0"),
        ("EndpointSlice", "discovery.k8s.io/v1beta1", "v1.24.1", "1.25.0"),
        ("Role", "rbac.authorization.k8s.io/v1beta1", "v1.21.1", "1.22.0"),
        ("Ingress", "networking.k8s.io/v1beta1", "v1.21.1", "1.22.0"),
    ],
)
def test_kinds_of_later_versions(kind: str, api: str, source: str, target: str) -> None:
    """Each is reported by the minor version that goes without it, and by none before."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"nodeInfo": {"kubeletVersion": source}},
    }
    name = f"RemovedAPIStored-{kind}"
    known = snapshot_of(CHECK.reads, (written(kind, api), node))
    (found,) = run_check(CHECK, known, context(kubernetes=target)).findings
    assert found.name == name
    # Of a version that is not released this is a plan.
    assert ("is planned not to serve" in found.message) is (target == "1.38.0")
    before = f"1.{int(target.split('.')[1]) - 1}.0"
    assert findings("RemovedAPIStored", written(kind, api), node, to=context(kubernetes=before)) == []


@pytest.mark.parametrize(("target", "shown"), [("1.31.0", "Clear"), ("1.34.0", "Unknown")])
def test_an_alpha_version_is_no_reason_to_miss_a_list(target: str, shown: str) -> None:
    """No server has one unless it is asked to; a beta version is another matter."""
    check = BY_NAME["RemovedAPIStored"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"nodeInfo": {"kubeletVersion": f"v1.{int(target.split('.')[1]) - 1}.0"}}
    snapshot = snapshot_of(check.reads, [node], lacking=lambda read: "not collected" if read.kind in LATER else "")
    assert run_check(check, snapshot, context(kubernetes=target)).result == shown


LATER = (
    "IPAddress",
    "ServiceCIDR",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "ValidatingAdmissionPolicy",
)


@pytest.mark.parametrize(
    ("kind", "api", "source", "target", "is_told"),
    [
        ("Workload", "scheduling.k8s.io/v1alpha2", "v1.36.1", "1.37.0", True),
        ("PodSecurityPolicy", "policy/v1beta1", "v1.24.1", "1.25.0", True),
        ("ResourceClaim", "resource.k8s.io/v1alpha2", "v1.30.1", "1.31.0", True),
        ("ServiceCIDR", "networking.k8s.io/v1beta1", "v1.36.1", "1.37.0", False),
        ("HorizontalPodAutoscaler", "autoscaling/v2beta2", "v1.22.1", "1.26.0", False),
    ],
)
def test_objects_without_a_version_that_stays(kind: str, api: str, source: str, target: str, is_told: bool) -> None:
    """No client can read them after the update; those that another version shows on the way are no such objects."""
    obj = written(kind, api) | {"apiVersion": api}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"nodeInfo": {"kubeletVersion": source}}
    names = [found for found, *_ in findings("RemovedAPIStored", obj, node, to=context(kubernetes=target))]
    assert (names == [f"RemovedAPIStored-{kind}-OutOfReach"]) is is_told
