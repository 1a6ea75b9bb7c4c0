"""Recognizes the distribution or service of a cluster by its nodes, and returns its row of the table.

The user need not name the distribution: kubelets, images, labels and annotations of nodes differ by distribution. The
table `data/distributions.yaml` has a source and a date for each range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.lang import yaml as kyaml

FILE = "distributions.yaml"


@cache
def table() -> dict[str, Any]:
    """Returns the whole table."""
    content = kyaml.load((resources.files(__package__) / "data" / FILE).read_bytes(), name=FILE)
    assert isinstance(content, dict)
    return content


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """Until when minor versions are supported: the last days, those of paid support, and who says so, as of when.

    `of` is whose support it is: the service's, or that of Kubernetes where a distribution has no calendar here.
    """

    of: str
    source: str
    as_of: str
    ends: Mapping[int, date]
    paid: Mapping[int, date]


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution or service: how its control plane and its nodes are updated, and how an update is reverted.

    `control_plane`, `nodes` and `back` may contain the placeholders `{minor}`, `{patch}` (versions) and `{group}` (a
    group of nodes).
    """

    name: str
    control_plane: str
    nodes: str
    steps: str
    back: str
    support: Support
    kube_proxy: str = ""


def distribution_of(nodes: Iterable[Node]) -> Distribution:
    """Returns the distribution of the nodes: the first row that any node matches, else the row of all others."""
    node_infos = [(node, node.status.node_info) for node in nodes]
    for row in table()["distributions"]:
        if any(
            (row.get("kubelet") and row["kubelet"] in info.kubelet_version)
            or (row.get("osImage") and info.os_image.startswith(row["osImage"]))
            or (row.get("provider") and node.spec.provider_id.startswith(row["provider"]))
            or any(label in node.metadata.labels for label in row.get("labels", ()))
            or any(annotation in node.metadata.annotations for annotation in row.get("annotations", ()))
            for node, info in node_infos
        ):
            return _distribution_named(row["name"])
    return _distribution_named("")


@cache
def _distribution_named(name: str) -> Distribution:
    """Returns the distribution called `name`, or the one for all others (`other`) if the table has no such row."""
    rows = table()
    row = next((distribution for distribution in rows["distributions"] if distribution["name"] == name), rows["other"])
    return Distribution(
        name=row["name"],
        control_plane=row["controlPlane"],
        nodes=row["nodes"],
        steps=row["steps"],
        back=row["back"],
        support=_parse_support(row["name"], row["support"])
        if "support" in row
        else _parse_support("Kubernetes", rows["upstream"]),
        kube_proxy=row.get("kubeProxy", ""),
    )


def _parse_support(name: str, row: Mapping[str, Any]) -> Support:
    return Support(
        of=name,
        source=row["source"],
        as_of=str(row["date"]),
        ends=_parse_days(row["ends"]),
        paid=_parse_days(row.get("paid") or {}),
    )


def _parse_days(rows: Mapping[str, Any]) -> dict[int, date]:
    return {int(minor.partition(".")[2]): date.fromisoformat(str(day)) for minor, day in rows.items()}
