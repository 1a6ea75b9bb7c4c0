"""What a copy on a real kube-apiserver has of a cluster: every object as it is, and the server's word on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.rows import programs
from tests.rehearse.control.test_seeded_releases import (
    ASKS,
    DENY,
    NAMESPACE,
    POLICY,
    VALUES,
    WEB,
    changed,
    widget,
    widgets,
)
from tests.rehearse.rehearsed_world import cluster_at_source, findings, wanted

from kubekit.kube.clock import SystemClock
from runup.rehearse.control.real_copy import open_real_copy
from runup.rehearse.control.real_server import find_programs
from runup.rehearse.control.rehearsal import rehearse
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


async def test_objects_are_copied_as_they_are(tmp_path: Path) -> None:
    """Uid, owner, status, managed fields and creation time are the cluster's, and even a fault is there."""
    loose, strict = widgets(properties={}), widgets(properties={"size": {"type": "integer"}}, required=["size"])
    async with cluster_at_source(tmp_path, loose, WEB) as cluster:
        await cluster.apply(widget(), manager="shop")
        await cluster.apply(await cluster.owned_by(WEB, changed(VALUES, "metadata.name", "made")), manager="shop")
        await cluster.edit(widget(), {"metadata": {"labels": {"a": "b"}}})
        await cluster.apply(strict)
        source = await cluster.source()
    account = ("default", "default")
    async with open_real_copy(
        source, SystemClock(), find_programs(str(programs())), account=account, scratch=tmp_path
    ) as copy:
        for named in (
            Identity("apps", "Deployment", NAMESPACE, "web"),
            Identity("", "ConfigMap", NAMESPACE, "made"),
            Identity("example.org", "Widget", NAMESPACE, "mine"),
            Identity("config.openshift.io", "ClusterVersion", "", "version"),
        ):
            (original,) = [
                obj for obj in source.objects if (obj["kind"], obj["metadata"]["name"]) == (named.kind, named.name)
            ]
            stored = copy.get(named)
            assert stored is not None, named
            assert {**stored, "metadata": {**stored["metadata"], "resourceVersion": ""}} == {
                **original,
                "metadata": {**original["metadata"], "resourceVersion": ""},
            }
        refused, tried = await copy.try_writes(source, SystemClock().monotonic() + 240)
    assert (refused, tried > 10) == ([], True)


async def test_a_policy_that_asks_the_authorizer(tmp_path: Path) -> None:
    """A real server evaluates what runup's own cannot."""
    asks = changed(POLICY, "spec.validations.0.expression", f"!{ASKS}")
    async with cluster_at_source(tmp_path, VALUES) as cluster:
        await cluster.apply(asks, DENY, manager="shop")
        source = await cluster.source()
    release = wanted(tmp_path, changed(VALUES, "data.mode", "faster"))
    shown = findings(await rehearse(source, replace(release, server=find_programs(str(programs()))), SystemClock()))
    assert {name: state for name, state in shown.items() if not name.startswith("RehearsalStoredRefused")} == {
        "RehearsalRefusedByPolicy-owned": "True"
    }
