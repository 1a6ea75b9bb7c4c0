"""Who writes objects in a version that the target does not serve: of several entries those that count."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME, JSON, findings
from tests.factories import context

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of

(CHECK,) = (check for check in CHECKS if check.name == "RemovedAPIStored")
HEAD = CHECK.example.partition("  managedFields:")[0]
GROUP = "flowcontrol.apiserver.k8s.io"


def entry(manager: str, version: str = "v1beta3", time: str = "2026-01-13T08:00:00Z") -> str:
    """An entry of managedFields."""
    told = f', time: "{time}"' if time else ""
    return f"  - {{manager: {manager}, operation: Update, apiVersion: {GROUP}/{version}{told}}}\n"


@pytest.mark.parametrize(
    ("entries", "who"),
    [
        pytest.param([entry("a")], f"a in {GROUP}/v1beta3", id="one"),
        pytest.param([entry("kube-apiserver")], "", id="the API server"),
        pytest.param([entry("api-priority-and-fairness-config-consumer-v1")], "", id="a part of the API server"),
        pytest.param([entry("a", time="")], "", id="nobody knows when"),
        pytest.param([entry("a", time="2020-01-01T00:00:00Z")], "", id="long ago"),
        pytest.param([entry("a", "v1")], "", id="in a version that stays"),
        pytest.param([entry("a", time=""), entry("b")], f"b in {GROUP}/v1beta3", id="after one of no time"),
        pytest.param(
            [entry("a", time="2020-01-01T00:00:00Z"), entry("b")], f"b in {GROUP}/v1beta3", id="after one of long ago"
        ),
        pytest.param([entry("a", "v1"), entry("b")], f"b in {GROUP}/v1beta3", id="after one in a version that stays"),
        pytest.param(
            [entry("b"), entry("a"), entry("b")], f"a in {GROUP}/v1beta3 and b in {GROUP}/v1beta3", id="two, each once"
        ),
    ],
)
def test_who_writes_what_is_not_served_any_more(entries: list[str], who: str) -> None:
    """Lately, and in such a version."""
    told = check_page.messages(replace(CHECK, example=f"{HEAD}  managedFields:\n{''.join(entries)}"))
    assert [text.partition("Who writes: ")[2] for text in told] == ([f"{who}."] if who else [])


def written(kind: str, api: str, manager: str = "shop-operator") -> JSON:
    """An object that a manager wrote in a version of its kind."""
    fields = [{"manager": manager, "operation": "Update", "apiVersion": api, "time": "2026-01-13T08:00:00Z"}]
    return {
        "apiVersion": api.replace("beta1", "").replace("alpha1", ""),
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
    ],
)
def test_kinds_of_later_versions(kind: str, api: str, source: str, target: str) -> None:
    """Each is told by the minor version that goes without it, and by none before."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"nodeInfo": {"kubeletVersion": source}},
    }
    name = f"RemovedAPIStored-{kind}"
    assert [
        found for found, *_ in findings("RemovedAPIStored", written(kind, api), node, to=context(kubernetes=target))
    ] == [name]
    before = f"1.{int(target.split('.')[1]) - 1}.0"
    assert findings("RemovedAPIStored", written(kind, api), node, to=context(kubernetes=before)) == []


@pytest.mark.parametrize(("target", "told"), [("1.31.0", "Clear"), ("1.34.0", "Unknown")])
def test_an_alpha_version_is_no_reason_to_miss_a_list(target: str, told: str) -> None:
    """No server has one unless it is told to; a beta version is another matter."""
    check = BY_NAME["RemovedAPIStored"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    node["status"] = {"nodeInfo": {"kubeletVersion": f"v1.{int(target.split('.')[1]) - 1}.0"}}
    snapshot = snapshot_of(check.reads, [node], lacking=lambda read: "not collected" if read.kind in LATER else "")
    assert run_check(check, snapshot, context(kubernetes=target)).result == told


LATER = (
    "IPAddress",
    "ServiceCIDR",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "ValidatingAdmissionPolicy",
)
