"""Clusters about which the checks without a separate example have something to ask."""

from __future__ import annotations

from typing import Any

from tests.factories import (
    cluster_operator,
    cluster_version,
    etcd,
    feature_gate,
    infrastructure,
    network,
    node,
    pdb,
    pod,
    pool,
    read_as,
)

from kubekit.api.scheme import Resource
from runup.checks.decide.model import Check, Snapshot


def snapshot_for(check: Check) -> Snapshot:
    """A usual cluster, as far as `check` reads it; two budgets share a pod, so that pods are asked about."""
    objects = (
        cluster_version(),
        cluster_operator(),
        infrastructure(),
        network(),
        feature_gate(),
        etcd(),
        node("worker-0", kubelet="v1.38.0"),
        pool(),
        pdb("one"),
        pdb("two"),
        pod(),
    )
    lists: dict[Resource, tuple[Any, ...]] = dict.fromkeys(check.reads, ())
    for obj in objects:
        resource = read_as(type(obj))
        if resource in lists:
            lists[resource] += (obj,)
    return Snapshot(objects=lists)
