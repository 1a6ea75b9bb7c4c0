"""What the cluster itself has to say against updates: acknowledgements and deletions, and whose risks these are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import cluster_version

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from runup.advice.decide import risks
from runup.advice.decide.risks.cluster_state import Cluster
from runup.advice.decide.upgradeable import upgradeable
from runup.api.config_v1 import ConditionalUpdateRisk, Release

URL = "https://access.redhat.com/articles/6958394"
TEXT = f"Kubernetes 1.30 removes APIs. See {URL}, please."


def _cluster(gates: dict[str, str] | None = None, acks: dict[str, str] | None = None, **more: Any) -> Cluster:
    from msgspec.structs import replace

    version = cluster_version()
    status = replace(version.status, desired=Release(version="4.16.3", image="x"))
    maps = {
        "admin_gates": None if gates is None else ConfigMap(data=gates),
        "admin_acks": None if acks is None else ConfigMap(data=acks),
    }
    return Cluster(version=replace(version, status=status), **maps, **more)


KEY = "ack-4.16-apis-in-5.0"
ROWS: dict[str, tuple[Cluster, dict[str, str]]] = {
    "no gates": (_cluster({}, {}), {}),
    "a gate of this minor version": (_cluster({KEY: TEXT}, {}), {f"AdminAck-{KEY}": TEXT}),
    "acknowledged": (_cluster({KEY: TEXT}, {KEY: "true"}), {}),
    "acknowledged by another word": (_cluster({KEY: TEXT}, {KEY: "yes"}), {f"AdminAck-{KEY}": TEXT}),
    "another minor version's": (_cluster({"ack-4.15-apis": TEXT}, {}), {}),
    "not 4.1's": (_cluster({"ack-4.1-apis": TEXT}, {}), {}),
    "no words": (
        _cluster({KEY: ""}, {}),
        {f"AdminAck-{KEY}": f"admin-gates configmap gate {KEY} must contain a non-empty value."},
    ),
    "no gate's name": (
        _cluster({"ack-4.16": TEXT}, {}),
        {"AdminAck-ack-4.16": 'admin-gates configmap gate "ack-4.16" is invalid: a key is ack-X.Y-NAME.'},
    ),
    "gates missing": (
        _cluster(None, {}),
        {"AdminAckUnknown": "acknowledgement is not known. ConfigMap openshift-config-managed/admin-gates is missing."},
    ),
    "acknowledgements missing": (
        _cluster({}, None),
        {"AdminAckUnknown": "acknowledgement is not known. ConfigMap openshift-config/admin-acks is missing."},
    ),
    "neither is there: no mechanism": (_cluster(), {}),
    "not readable": (_cluster(admin_unreadable="forbidden"), {"AdminAckUnknown": "could not be read: forbidden"}),
    "deletions": (
        _cluster(deleting=("configmap b", "configmap a")),
        {"ResourceDeletionInProgress": "are in progress; resources=configmap a,configmap b"},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_sources(name: str) -> None:
    """Each risk with its words; all of them concern the minor version alone."""
    cluster, expected = ROWS[name]
    found = {risk.name: risk for risk in risks.risks_in_cluster(cluster)}
    assert set(found) == set(expected)
    for risk, text in expected.items():
        assert found[risk].message.endswith(text)
        assert not found[risk].everywhere
        assert (found[risk].judged().applies.status == "Unknown") is risk.endswith("Unknown")


def test_a_gate_s_link_is_in_its_text() -> None:
    """Without the punctuation that follows it."""
    (found,) = risks.risks_in_cluster(ROWS["a gate of this minor version"][0])
    assert found.url == URL


def _named(name: str, reason: str = "Match") -> ConditionalUpdateRisk:
    applies = Condition(type="Applies", status="True", reason=reason)
    return ConditionalUpdateRisk(name=name, message="m", url="https://u", conditions=(applies,))


OWNED = {
    "AdminAck-ack-4.16-x": True,
    "AdminAckUnknown": True,
    "ResourceDeletionInProgress": True,
    "ClusterOperatorUpgradeable-dns": True,
    "ClusterVersionOverrides": True,
    "ARO420UDRWorkerNodesFail": False,
}


@pytest.mark.parametrize("name", OWNED)
def test_whose_risk_it_is(name: str) -> None:
    """What a source here says is never taken for the update service's once that is away."""
    assert risks.is_from_source(_named(name)) is OWNED[name]


def test_an_alert_s_risk_is_known_by_its_reason() -> None:
    """Its name may be any."""
    assert risks.is_from_source(_named("BadNews", "Alert:firing"))


@pytest.mark.parametrize(
    ("not_known", "status"),
    [pytest.param((), None, id="known to be gone"), pytest.param(("AdminAck",), "False", id="not")],
)
def test_what_is_not_known_stays(not_known: tuple[str, ...], status: str | None) -> None:
    """An operator that cannot tell leaves the condition as it found it."""
    found = Condition(type="Upgradeable", status="False", reason="AdminAckRequired", message="m")
    condition = upgradeable([], found, not_known=not_known)
    assert (condition.status if condition else None) == status
