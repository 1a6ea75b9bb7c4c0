"""Which distribution or service a cluster is of, told from its nodes as their documentation shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import node

from kubekit.api.core_v1 import Node
from runup.checks.decide.removal_tables import document
from runup.rules import distributions as distribution_rules
from runup.rules.distributions import distribution_of


def of(kubelet: str, os_image: str = "Ubuntu 24.04.3 LTS", **metadata: Any) -> Node:
    """A node with what tells its distribution."""
    return node(kubelet=kubelet, info={"osImage": os_image}, **metadata)


def on_kind() -> Node:
    """A node as kind makes it (kubernetes-sigs/kind, pkg/cluster/internal/kubeadm/config.go: provider-id)."""
    made = of("v1.34.2", annotations={"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/c.sock"})
    return replace(made, spec=replace(made.spec, provider_id="kind://docker/kind/kind-control-plane"))


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        pytest.param((), "Kubernetes", id="no node"),
        pytest.param((of("v1.34.2"),), "Kubernetes", id="nothing tells it"),
        pytest.param((of("v1.33.5-eks-113cf36"),), "EKS", id="EKS by its kubelet"),
        pytest.param((of("v1.33.5", labels={"eks.amazonaws.com/compute-type": "hybrid"}),), "EKS", id="a hybrid node"),
        pytest.param((of("v1.33.5-gke.1080000"),), "GKE", id="GKE"),
        pytest.param((of("v1.33.5", labels={"kubernetes.azure.com/agentpool": "np1"}),), "AKS", id="AKS"),
        pytest.param((of("v1.34.1", "Talos (v1.11.2)"),), "Talos", id="Talos"),
        pytest.param((of("v1.34.2+rke2r1"),), "RKE2", id="RKE2"),
        pytest.param((of("v1.34.2+k3s1"),), "k3s", id="k3s"),
        pytest.param(
            (of("v1.34.2", annotations={"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/c.sock"}),),
            "kubeadm",
            id="kubeadm",
        ),
        pytest.param((on_kind(),), "kind", id="kind, which uses kubeadm"),
        pytest.param((of("v1.34.2"), of("v1.34.2+k3s1")), "k3s", id="one node is enough"),
    ],
)
def test_distributions(nodes: tuple[Node, ...], name: str) -> None:
    """Nobody has to name it."""
    assert distribution_of(nodes).name == name


def test_every_distribution_says_how_it_is_updated() -> None:
    """And each range whose it is, and as of when."""
    table = distribution_rules.table()
    for row in (*table["distributions"], table["other"]):
        assert all(row[field] for field in ("name", "controlPlane", "nodes", "steps", "back"))
        assert row["steps"].startswith("https://")
    calendars = [table["upstream"], *(row["support"] for row in table["distributions"] if "support" in row)]
    for row in (*calendars, *table["images"]):
        assert row["source"].startswith("https://")
        assert str(row["date"]).startswith("20")


def sourced_rows() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every row of the tables about other people's software, with its name and the date of its table."""
    addons, distributions = document("addons"), distribution_rules.table()
    for part in ("addons", "retired", "pauses"):
        yield from ((f"{part} {row['name']}", row, str(addons["date"])) for row in addons[part])
    yield "upstream", distributions["upstream"], ""
    for row in distributions["distributions"]:
        if support := row.get("support"):
            yield f"support {row['name']}", support, ""
        yield f"steps {row['name']}", {"source": row["steps"]}, str(distributions["date"])
    yield from ((f"image {row['name']}", row, "") for row in distributions["images"])
    for table, keys in (("minimums", ("containerd", "cgroupV2", "dockershim")), ("removed-addon-apis", ("removed",))):
        read = document(table)
        for key in keys:
            yield from ((f"{table} {number}", row, str(read["date"])) for number, row in enumerate(read[key]))


@pytest.mark.parametrize(("row", "date"), [pytest.param(row, date, id=name) for name, row, date in sourced_rows()])
def test_each_row_names_its_source_and_date(row: dict[str, Any], date: str) -> None:
    """Nobody can look at a number again of which nobody knows where and when it was read."""
    assert "://" in row["source"] or row["source"].startswith("openshift/")
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", str(row.get("date") or row.get("ended") or date))
