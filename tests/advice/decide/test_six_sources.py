"""The cluster's own risks: acknowledgements, deletions, and which source owns each risk."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.factories import cluster_version

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from runup.advice.decide import risks
from runup.advice.decide.risks.cluster_state import Cluster
from runup.advice.decide.upgradeable import upgradeable
from runup.api.config_v1 import ComponentOverride, ConditionalUpdateRisk, Release

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


def _missing(name: str, namespace: str) -> str:
    """The Go operator's words (pkg/risk/adminack) for a ConfigMap that does not exist."""
    return f'Failed to retrieve ConfigMap {name} from namespace {namespace}: configmap "{name}" not found'


def _invalid(key: str) -> str:
    """The Go operator's words (pkg/risk/adminack) for an invalid key."""
    pattern = '"^ack-([4-5][.][0-9]{1,})-[^-]"'
    problem = f"admin-gates configmap gate name {key} has invalid format; must comply with {pattern}"
    return f'admin-gates configmap gate "{key}" is invalid: {problem}'


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
        {"AdminAck-ack-4.16": _invalid("ack-4.16")},
    ),
    "of a major version that no release has": (
        _cluster({"ack-6.0-x": TEXT}, {"ack-6.0-x": "true"}),
        {"AdminAck-ack-6.0-x": _invalid("ack-6.0-x")},
    ),
    "gates missing": (
        _cluster(None, {}),
        {"AdminAckUnknown": _missing("admin-gates", "openshift-config-managed")},
    ),
    "acknowledgements missing": (
        _cluster({}, None),
        {"AdminAckUnknown": _missing("admin-acks", "openshift-config")},
    ),
    "neither exists": (_cluster(), {"AdminAckUnknown": _missing("admin-gates", "openshift-config-managed")}),
    "not readable": (
        _cluster(admin_unreadable="forbidden"),
        {
            "AdminAckUnknown": "Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: "
            "forbidden"
        },
    ),
    "deletions": (
        _cluster({}, {}, deleting=('configmap "ns/b"', 'configmap "ns/a"')),
        {"ResourceDeletionInProgress": 'are in progress; resources=configmap "ns/a",configmap "ns/b"'},
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
        assert found[risk].evaluated().applies.status == "True"
        assert not found[risk].acceptable


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
    """A risk of another source never counts as the update service's when that service fails."""
    assert risks.is_from_source(_named(name)) is OWNED[name]


def test_an_alert_s_risk_is_known_by_its_reason() -> None:
    """Its name may be any."""
    assert risks.is_from_source(_named("BadNews", "Alert:firing"))


@pytest.mark.parametrize(
    ("not_known", "status"),
    [pytest.param((), None, id="known to be gone"), pytest.param(("AdminAck",), "False", id="not")],
)
def test_what_is_not_known_stays(not_known: tuple[str, ...], status: str | None) -> None:
    """If the operator cannot determine it, the condition stays unchanged."""
    found = Condition(type="Upgradeable", status="False", reason="AdminAckRequired", message="m")
    condition = upgradeable([], found, not_known=not_known)
    assert (condition.status if condition else None) == status


def test_upgradeable_names_its_reasons_in_the_order_of_the_sources() -> None:
    """Updating, overrides, deletions, acknowledgements, operators (openshift/cluster-version-operator, pkg/cvo)."""
    from msgspec.structs import replace

    cluster = _cluster({"ack-4.16-b": "B.", "ack-4.16-a": "A."}, {}, deleting=("x",), operators=None, unreadable="no")
    override = ComponentOverride(kind="Deployment", group="apps", namespace="n", name="d", unmanaged=True)
    progressing = Condition(type="Progressing", status="True")
    status = replace(cluster.version.status, conditions=(progressing,))
    version = replace(cluster.version, spec=replace(cluster.version.spec, overrides=(override,)), status=status)
    found = risks.risks_in_cluster(dataclasses.replace(cluster, version=version))
    docs = "https://docs.redhat.com/en/documentation/openshift_container_platform/4.16/html"
    page = f"{docs}/updating_clusters/understanding-openshift-updates-1"
    conditions = f"{page}#understanding_clusteroperator_conditiontypes_understanding-openshift-updates"
    gates = f"{docs}/updating_clusters/preparing-to-update-a-cluster#kube-api-removals_updating-cluster-prepare"
    assert [(risk.name, risk.url) for risk in found] == [
        ("ClusterVersionUpdating", conditions),
        ("ClusterVersionOverrides", f"{docs}/config_apis/clusterversion-config-openshift-io-v1#spec-8"),
        ("ResourceDeletionInProgress", f"{page}#update-manifest-application_how-updates-work"),
        ("AdminAck-ack-4.16-a", gates),
        ("AdminAck-ack-4.16-b", gates),
        ("ClusterOperatorUpgradeableUnknown", conditions),
    ]
    condition = upgradeable(found, None)
    assert condition is not None
    assert condition.message.split("\n* ")[1:] == [risk.message for risk in found]
