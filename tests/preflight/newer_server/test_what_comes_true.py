"""What a preflight says of a cluster of Kubernetes 1.34, and what comes true when a newer server takes its etcd over.

A cluster with planted risks and lookalikes runs on the one server, the preflight judges it for the newer version, then
the newer server takes the older one's place on the same etcd, and each plant's request is made. Every risk is named
and comes true, no lookalike is or does. It takes the programs of both versions: those of `make e2e`, and of
`RUNUP_KUBERNETES=newest make e2e`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane import build
from tests.preflight.newer_server.cluster import (
    DEADLINE_S,
    Asking,
    asked_before,
    is_named,
    planted,
    report_of,
    tried_risks_about,
)
from tests.preflight.newer_server.plants import Plant, Request, plants

from kubekit.kube import config
from kubekit.kube.client_sync import SyncClient

JSON = dict[str, Any]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("a newer server on the same etcd"),
]
PLANTS = plants(b"", b"")
RISKS = [plant.id for plant in PLANTS if plant.risk]
LOOKALIKES = [plant.id for plant in PLANTS if not plant.risk]


@dataclass(frozen=True)
class Updated:
    """What the preflight said, and what the newer server answered to each plant's request: "" if it did it."""

    risks: tuple[JSON, ...]
    unknown: tuple[str, ...]
    before: dict[str, tuple[str, ...]]
    answers: dict[str, str]
    refused_objects: dict[str, str]


def programs(kubernetes: str) -> Path:
    """The programs of that version; skips where they do not exist, or fails where they are asked for by name."""
    if os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("KUBEBUILDER_ASSETS names programs of one version, and this takes two")
    try:
        return build.find({**os.environ, build.KUBERNETES: kubernetes})
    except build.Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required" and os.environ.get(build.KUBERNETES, "") == kubernetes:
            raise
        how = f"{build.KUBERNETES}={kubernetes} make e2e" if kubernetes else "make e2e"
        pytest.skip(f"this takes two versions of kube-apiserver, and one is not built ({how} does it): {error}")


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Updated]:
    """The cluster, judged on the older server and asked on the newer one."""
    older, newer = programs(""), programs(build.NEWEST)
    minor = build.version({build.KUBERNETES: build.NEWEST}).split(".")[1]
    with planted(tmp_path_factory.mktemp("newer-server"), older) as (plane, every):
        before = asked_before(plane.kubeconfig, every)
        report = report_of(plane.kubeconfig, f"1.{minor}")
        plane.restart_server(programs=newer)
        with SyncClient(config.load(str(plane.kubeconfig))) as client:
            asking = Asking(client)
            answers = asked_of(asking, every)
            refused = {
                request.path: why for plant in every for request in plant.planted if (why := changed(asking, request))
            }
    yield Updated(
        tuple(risk for risk in report["risks"] if risk["applies"] == "True"),
        tuple(check["name"] for check in report["checks"] if check["result"] == "Unknown"),
        before,
        answers,
        refused,
    )


def asked_of(asking: Asking, every: tuple[Plant, ...]) -> dict[str, str]:
    """What the server answers to each plant: to the risks until they come true, to the lookalikes after that.

    A server that has just started may not know each webhook and policy yet.
    """
    answers: dict[str, str] = {}
    deadline = time.monotonic() + DEADLINE_S
    for plant in sorted(every, key=lambda each: not each.risk):
        while True:
            answers[plant.id] = asking.ask(plant.request, dry_run=True)
            as_expected = re.search(plant.comes_true, answers[plant.id]) if plant.risk else not answers[plant.id]
            if as_expected or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    return answers


def changed(asking: Asking, request: Request) -> str:
    """What the newer server refuses a change of a planted object with."""
    if request.method != "POST" or request.body is None or "/v1beta1/" in request.path:
        return ""
    metadata: JSON = {"annotations": {"example.com/changed": "yes"}}
    path = f"{request.path}/{request.body['metadata']['name']}"
    why = asking.ask(Request("PATCH", path, {"metadata": metadata}), dry_run=True)
    return "" if "not found" in why or "could not find" in why else why


BY_ID = {plant.id: plant for plant in PLANTS}


@pytest.mark.parametrize("id_", RISKS)
def test_a_risk_is_named_and_comes_true(updated: Updated, id_: str) -> None:
    """By the preflight, of the objects that it is about; and on the newer server."""
    plant = BY_ID[id_]
    assert is_named(plant, updated.risks), sorted({risk["name"] for risk in updated.risks})
    assert re.search(plant.comes_true, updated.answers[id_]), updated.answers[id_]


@pytest.mark.parametrize("id_", LOOKALIKES)
def test_a_lookalike_is_not_named_and_does_not_happen(updated: Updated, id_: str) -> None:
    """Neither by a risk that is tried here, nor on the newer server."""
    plant = BY_ID[id_]
    assert tried_risks_about(plant, updated.risks) == set()
    assert updated.answers[id_] == ""


@pytest.mark.parametrize("id_", [plant.id for plant in PLANTS if plant.before])
def test_before_the_update(updated: Updated, id_: str) -> None:
    """The older server serves the version that goes, and asks the webhook that is not asked any more."""
    for why in updated.before[id_]:
        assert ("failed calling webhook" in why) if BY_ID[id_].risk == "WebhookRemovedVersion" else why == ""


def test_what_is_stored_can_be_changed(updated: Updated) -> None:
    """No validation of the newer server refuses an object as the older one stored it, but where a webhook does."""
    others = {path: why for path, why in updated.refused_objects.items() if "failed calling webhook" not in why}
    assert others == {}


def test_everything_could_be_told(updated: Updated) -> None:
    """A live cluster, asked by its administrator."""
    assert updated.unknown == ()


def test_enough_is_planted() -> None:
    """Forty of each."""
    assert len(BY_ID) == len(PLANTS)
    assert (len(RISKS) >= 40, len(LOOKALIKES) >= 40) == (True, True)
