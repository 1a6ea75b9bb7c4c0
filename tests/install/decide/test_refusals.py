"""Tests which conditions refuse an installation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runup.install.decide.component import (
    COMPONENTS,
    KERNEL_MODULES,
    OPERATOR,
    UPDATE_POLICY,
    UPDATE_STATUS,
    Certificates,
    Component,
    Options,
    Platform,
)
from runup.install.decide.inventory import Inventory, name_of
from runup.install.decide.refusals import CLUSTER_VERSION, OPERATOR_PLACE, VALIDATIONS, Cluster, Workload, refusals
from runup.release.decide.manifest import Identity

PLAIN = Cluster(version=(1, 34), groups=frozenset({"apps"}))
OPENSHIFT = Cluster(
    version=(1, 33),
    groups=frozenset({"apps", "security.openshift.io", "monitoring.coreos.com"}),
    owners={CLUSTER_VERSION: "", OPERATOR_PLACE: ""},
    workloads=(
        Workload(
            namespace="openshift-cluster-version", name="cluster-version-operator", image="quay.io/release", replicas=1
        ),
    ),
)
STOPPED = replace(OPENSHIFT, workloads=(replace(OPENSHIFT.workloads[0], replicas=0),))
HOSTED = replace(OPENSHIFT, workloads=())


def set_of(component: Component, namespace: str = "") -> Inventory:
    """The set of an installation."""
    return Inventory(name=name_of(component.name), namespace=namespace or component.namespace, component=component.name)


def ours(component: Component, replicas: int = 1) -> Workload:
    """The Deployment of an installation of ours."""
    return Workload(
        namespace=component.namespace,
        name=component.deployment,
        image="i",
        replicas=replicas,
        part_of=set_of(component).id,
    )


def why(cluster: Cluster, component: Component, *, take_over: bool = False, **changes: Any) -> str:
    """The refusals in one text."""
    options = replace(Options(image="i", namespace=component.namespace, platform=cluster.platform), **changes)
    return "\n".join(refusals(cluster, component, options, take_over=take_over))


_OPERATOR = Workload(namespace="cvo", name="cluster-version-operator", image="i", replicas=1)


@pytest.mark.parametrize("name", COMPONENTS)
def test_nothing_speaks_against_a_plain_cluster(name: str) -> None:
    """Nor against the second installation over the first."""
    component = COMPONENTS[name]
    of_operator = {CLUSTER_VERSION: set_of(OPERATOR).id, OPERATOR_PLACE: set_of(OPERATOR).id}
    plain = replace(PLAIN, owners=of_operator if component == UPDATE_POLICY else {})
    assert why(plain, component) == ""
    installed = replace(
        PLAIN,
        owners={**of_operator, VALIDATIONS: set_of(component).id},
        workloads=(ours(component),),
        installed=(set_of(component),),
    )
    assert why(installed, component) == ""


@pytest.mark.parametrize("component", [UPDATE_STATUS, KERNEL_MODULES, UPDATE_POLICY], ids=lambda each: each.name)
def test_what_works_beside_openshifts_operator_is_not_refused(component: Component) -> None:
    """The managing operator keeps ClusterVersion, and has nothing to do with these."""
    assert why(OPENSHIFT, component, monitoring=True) == ""


@pytest.mark.parametrize(
    ("cluster", "take_over", "says"),
    [
        pytest.param(OPENSHIFT, False, "scale deployment/cluster-version-operator --replicas=0", id="one that runs"),
        pytest.param(OPENSHIFT, True, "two operators would fight over it", id="one that runs, whatever is asked for"),
        pytest.param(STOPPED, False, "add --take-over", id="one that was stopped, by accident"),
        pytest.param(STOPPED, True, "", id="one that was stopped, on purpose"),
        pytest.param(HOSTED, False, "as of a hosted control plane", id="one that cannot be seen"),
        pytest.param(HOSTED, True, "", id="one that is known to be gone"),
        pytest.param(
            replace(PLAIN, user_reads_workloads=False), True, "is unknown", id="it cannot be looked for"
        ),
        pytest.param(
            replace(PLAIN, workloads=(_OPERATOR,)), False, "two operators",
            id="one in another namespace of a plain cluster",
        ),
        pytest.param(
            replace(PLAIN, owners={CLUSTER_VERSION: set_of(OPERATOR).id}), False, "",
            id="our own definitions, left by an earlier uninstallation",
        ),
    ],
)  # fmt: skip
def test_the_managing_operator_is_never_replaced_by_accident(cluster: Cluster, take_over: bool, says: str) -> None:
    """It is named, with what works next to it and how it is replaced."""
    text = why(cluster, OPERATOR, take_over=take_over)
    assert (says in text) if says else text == ""


def test_what_works_beside_it_is_named() -> None:
    """Whoever asked for the operator learns what he may have had in mind."""
    text = why(OPENSHIFT, OPERATOR)
    assert "Deployment openshift-cluster-version/cluster-version-operator (quay.io/release)" in text
    assert "runup install update-status" in text


@pytest.mark.parametrize("version", [(1, 28), (1, 9), (0, 99)])
def test_a_cluster_that_is_too_old_is_refused(version: tuple[int, int]) -> None:
    """With the oldest that is not."""
    assert "1.29 is the oldest" in why(replace(PLAIN, version=version), UPDATE_STATUS)


def test_the_oldest_cluster_is_taken() -> None:
    """1.29 itself; 1.30 where definitions need it."""
    assert why(replace(PLAIN, version=(1, 29)), UPDATE_STATUS) == ""
    assert "1.30 is the oldest" in why(replace(PLAIN, version=(1, 29)), KERNEL_MODULES)
    assert why(replace(PLAIN, version=(1, 30)), KERNEL_MODULES) == ""


@pytest.mark.parametrize("lacking", [CLUSTER_VERSION, OPERATOR_PLACE])
def test_update_policies_need_an_operator(lacking: Identity) -> None:
    """Without ClusterVersion or the reports of preflights no gate ever opens."""
    owners = {each: "" for each in (CLUSTER_VERSION, OPERATOR_PLACE) if each != lacking}
    assert "`runup install operator` creates both" in why(replace(PLAIN, owners=owners), UPDATE_POLICY)


def test_a_second_place_is_refused() -> None:
    """Its roles have the same names: one of the two would stop working."""
    elsewhere = replace(PLAIN, installed=(set_of(UPDATE_STATUS, "mine"),))
    assert "--namespace mine" in why(elsewhere, UPDATE_STATUS)
    assert why(elsewhere, UPDATE_STATUS, namespace="mine") == ""


def test_apis_that_are_missing_are_named() -> None:
    """Before anything is applied."""
    text = why(PLAIN, UPDATE_STATUS, monitoring=True, certificates=Certificates.CERT_MANAGER)
    assert "--monitoring=off" in text
    assert "--certificates=own" in text


@pytest.mark.parametrize("take_over", [False, True])
def test_somebody_elses_deployment_is_not_taken(take_over: bool) -> None:
    """Unless that is asked for."""
    theirs = replace(ours(UPDATE_STATUS), part_of="")
    text = why(replace(PLAIN, workloads=(theirs,)), UPDATE_STATUS, take_over=take_over)
    assert text == "" if take_over else "was not made by `runup install`" in text


def test_kmm_is_asked_about() -> None:
    """Two controllers would write the same statuses."""
    with_kmm = replace(PLAIN, owners={VALIDATIONS: ""})
    assert "KMM" in why(with_kmm, KERNEL_MODULES)
    assert why(with_kmm, KERNEL_MODULES, take_over=True) == ""
    assert why(with_kmm, UPDATE_STATUS) == ""


@pytest.mark.parametrize(
    ("groups", "platform"),
    [
        (frozenset({"apps"}), Platform.KUBERNETES),
        # Our own definitions.
        (frozenset({"apps", "config.openshift.io", "update.openshift.io"}), Platform.KUBERNETES),
        (frozenset({"apps", "config.openshift.io", "security.openshift.io"}), Platform.OPENSHIFT),
    ],
)
def test_which_platform_it_is(groups: frozenset[str], platform: Platform) -> None:
    """A plain cluster with our definitions is still plain."""
    assert Cluster(version=(1, 34), groups=groups).platform is platform
