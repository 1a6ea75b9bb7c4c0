"""The definitions of update policies on an API server: what is stored, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents import document
from tests.servers import CRD, api_server, eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Invalid, NotFound
from kubekit.kube.client_sync import SyncClient
from runup.api.update_policy_v1alpha1 import UpdateCalendar, UpdatePolicy
from runup.rollout.control import policy_objects

FOLDER = Path(__file__).parents[3] / "deploy" / "update-policy"
CALENDARS, POLICIES = resource_of(UpdateCalendar), resource_of(UpdatePolicy)
NIGHTS = {"timeZone": "Europe/Berlin", "windows": [{"opens": "0 22 * * TUE,THU", "for": "6h"}]}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncClient]:
    """A server that serves calendars and policies."""
    with (
        api_server(tmp_path_factory.mktemp("policy") / "data") as kubeconfig,
        SyncClient(config.load(str(kubeconfig))) as client,
    ):
        for file in sorted(FOLDER.glob("01_*.crd.yaml")):
            client.send(calls.create(CRD, document(file)))
        eventually(lambda: _is_served(client), "the kinds are served")
        yield client


def _is_served(client: SyncClient) -> bool:
    try:
        return all(client.send(calls.list_raw(resource)) is not None for resource in (CALENDARS, POLICIES))
    except NotFound:
        return False


def create(client: SyncClient, resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Sends the object as a dry run."""
    identity = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    return client.send(calls.create(resource, {**identity, "spec": spec}, dry_run=True))


@pytest.mark.parametrize(
    ("resource", "name", "spec"),
    [
        (CALENDARS, "nights", NIGHTS),
        (CALENDARS, "nights", {**NIGHTS, "freezes": [{"from": "2026-12-18", "to": "2027-01-04T08:00"}]}),
        (POLICIES, "cluster", {}),
        (POLICIES, "cluster", {"calendars": ["Always"], "gates": {"approvals": [{"name": "cab", "count": 2}]}}),
        (
            POLICIES,
            "cluster",
            {"target": {"follow": "Exact", "version": "5.1.0", "image": "r@sha256:" + "a" * 64}, "paused": True},
        ),
    ],
)
def test_accepts(client: SyncClient, resource: Resource, name: str, spec: dict[str, Any]) -> None:
    """Every form of the reference is stored as it is."""
    assert create(client, resource, name, spec)["spec"] == spec


@pytest.mark.parametrize(
    ("resource", "name", "spec", "error"),
    [
        (CALENDARS, "nights", {"windows": NIGHTS["windows"]}, "spec.timeZone"),
        (CALENDARS, "nights", {"timeZone": "UTC", "windows": []}, "spec.windows"),
        (CALENDARS, "nights", {"timeZone": "UTC", "windows": NIGHTS["windows"] * 17}, "spec.windows"),
        (CALENDARS, "nights", {"timeZone": "UTC", "windows": [{"opens": "0 22 * * TUE"}]}, "spec.windows[0].for"),
        (
            CALENDARS,
            "nights",
            {"timeZone": "UTC", "windows": [{"opens": "0 22 * * TUE", "for": "six"}]},
            "spec.windows[0].for",
        ),
        (POLICIES, "other", {}, "a cluster has one UpdatePolicy, named cluster"),
        (POLICIES, "cluster", {"calendars": ["Always", "nights"]}, "Always must be the only entry"),
        (POLICIES, "cluster", {"target": {"follow": "Exact"}}, "Exact needs a version"),
        (POLICIES, "cluster", {"target": {"image": "example.com/release:5.1.0"}}, "spec.target.image"),
        (POLICIES, "cluster", {"gates": {"preflight": {"failOn": "unknown"}}}, "spec.gates.preflight.failOn"),
        (POLICIES, "cluster", {"gates": {"approvals": [{"name": "cab", "count": 0}]}}, "count"),
    ],
)
def test_refuses(client: SyncClient, resource: Resource, name: str, spec: dict[str, Any], error: str) -> None:
    """The schema refuses what a gate could misread: 58 has the image by tag, 15 and 16 what calendars lack."""
    with pytest.raises(Invalid) as raised:
        create(client, resource, name, spec)
    assert error in raised.value.message


def test_reads_policy_and_calendars(client: SyncClient) -> None:
    """What is stored is read again; a cluster without a policy has none."""
    assert policy_objects.policy(client) is None
    for resource, name, spec in ((CALENDARS, "nights", NIGHTS), (POLICIES, "cluster", {"calendars": ["nights"]})):
        identity = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        client.send(calls.create(resource, {**identity, "spec": spec}))
    policy = policy_objects.policy(client)
    assert policy is not None
    assert policy.spec.calendars == ("nights",)
    [calendar] = policy_objects.calendars(client)
    assert calendar.spec.windows[0].for_ == "6h"
