"""What belongs to a Subscription: its version, its catalog's package, and the plan that brings one."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.api import codec
from runup.api.olm_v1alpha1 import ClusterServiceVersion, InstallPlan, PackageManifest, Subscription
from runup.checks.catalogue.olm.shared.installed_operators import installed_csv_of, packages_of, properties_in_plans


def named(kind: type[Any], name: str, namespace: str, **parts: Any) -> Any:
    """An object."""
    return codec.convert(kind, {"metadata": {"name": name, "namespace": namespace}, **parts})


def subscription(**spec: str) -> Subscription:
    """A Subscription of package m, whose version m.v1 is there."""
    found: Subscription = named(
        Subscription,
        "s",
        "ns",
        spec={"name": "m", "source": "c", "sourceNamespace": "market"} | spec,
        status={"installedCSV": "m.v1"},
    )
    return found


@pytest.mark.parametrize(
    ("name", "namespace", "found"),
    [
        pytest.param("m.v1", "ns", True, id="it"),
        pytest.param("m.v0", "ns", False, id="an earlier one"),
        pytest.param("m.v2", "ns", False, id="a later one"),
        pytest.param("m.v1", "na", False, id="in an earlier namespace"),
        pytest.param("m.v1", "nz", False, id="in a later namespace"),
    ],
)
def test_the_version_of_a_subscription(name: str, namespace: str, found: bool) -> None:
    """By name, in its own namespace."""
    csv = named(ClusterServiceVersion, name, namespace)
    assert installed_csv_of([csv], subscription()) == (csv if found else None)


@pytest.mark.parametrize(
    ("name", "namespace", "source", "where", "found"),
    [
        pytest.param("m", "ns", "c", "market", True, id="it"),
        pytest.param("a", "ns", "c", "market", False, id="an earlier package"),
        pytest.param("z", "ns", "c", "market", False, id="a later package"),
        pytest.param("m", "na", "c", "market", False, id="in an earlier namespace"),
        pytest.param("m", "nz", "c", "market", False, id="in a later namespace"),
        pytest.param("m", "ns", "a", "market", False, id="of an earlier catalog"),
        pytest.param("m", "ns", "z", "market", False, id="of a later catalog"),
        pytest.param("m", "ns", "c", "another", False, id="of a catalog elsewhere"),
    ],
)
def test_the_package_of_a_subscription(name: str, namespace: str, source: str, where: str, found: bool) -> None:
    """Looks up the operator in its catalog."""
    package = named(PackageManifest, name, namespace, status={"catalogSource": source, "catalogSourceNamespace": where})
    assert packages_of([package], subscription()) == ((package,) if found else ())


def test_a_subscription_that_does_not_say_where_its_catalog_is() -> None:
    """It is wherever it is."""
    package = named(PackageManifest, "m", "ns", status={"catalogSource": "c", "catalogSourceNamespace": "x"})
    assert packages_of([package], subscription(sourceNamespace="")) == (package,)


def plan(namespace: str, **lookups: str) -> InstallPlan:
    """An InstallPlan that brings versions with these properties."""
    found = [{"identifier": name.replace("_", "."), "properties": text} for name, text in lookups.items()]
    made: InstallPlan = named(InstallPlan, "p", namespace, status={"bundleLookups": found})
    return made


@pytest.mark.parametrize(
    ("plans", "said"),
    [
        pytest.param([], None, id="no plan"),
        pytest.param([plan("ns", m_v2="a", m_v0="b")], None, id="of others"),
        pytest.param([plan("ns", m_v2="a", m_v1="b")], "b", id="of it among others"),
        pytest.param([plan("na", m_v1="a"), plan("nz", m_v1="c"), plan("ns", m_v1="b")], "b", id="in other namespaces"),
        pytest.param([plan("ns", m_v1="a"), plan("ns", m_v1="b")], "a", id="the first that says"),
        pytest.param([plan("ns", m_v1="")], "", id="with nothing"),
    ],
)
def test_the_properties_with_which_a_version_comes(plans: list[InstallPlan], said: str | None) -> None:
    """Of a plan of its namespace."""
    assert properties_in_plans(plans, "ns", "m.v1") == said
