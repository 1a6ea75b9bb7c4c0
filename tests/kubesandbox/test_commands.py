"""What a test does with a running server: snapshots, faults, dropped watches, its clock, users of any name."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.kubesandbox.test_command import SHIP

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.config import load
from kubesandbox.pytest_plugin import KubeApiFactory
from kubesandbox.testing import CommandError, KubeApi

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kube_api")]
MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SHIPS = Resource(group="example.com", version="v1", kind="Ship", plural="ships", namespaced=True)
REVIEW: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = Resource(group="authentication.k8s.io", version="v1", kind="SelfSubjectReview", plural="selfsubjectreviews",
                   namespaced=False)  # fmt: skip


@pytest.fixture(scope="module")
def api(kube_api_factory: KubeApiFactory) -> Iterator[KubeApi]:
    """One server for this module."""
    with kube_api_factory() as made:
        yield made


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def get(api: KubeApi, path: str) -> Any:
    context = ssl.create_default_context(cafile=str(api.ca))
    context.load_cert_chain(api.client_certificate, api.client_key)
    with urllib.request.urlopen(api.server + path, context=context, timeout=90) as answer:
        return json.load(answer)


def refusal_of(api: KubeApi, path: str) -> urllib.error.HTTPError:
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(api, path)
    return refused.value


def test_a_snapshot_is_restored(api: KubeApi) -> None:
    """New objects are gone, deleted ones are back with their UIDs, changed ones as they were; kinds, too."""
    kept, changed = api.load([config_map("kept", day="1"), config_map("changed", day="1")])
    snapshot = api.snapshot()
    api.load([config_map("changed", day="2"), config_map("new"), SHIP])
    api.load({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "argo"}}, namespace="default")
    with SyncClient(load(str(api.kubeconfig))) as client:
        client.send(calls.delete(MAPS, "kept", "default"))
    for _ in range(2):
        api.restore(snapshot)
        items = {item["metadata"]["name"]: item for item in get(api, "/api/v1/namespaces/default/configmaps")["items"]}
        assert "new" not in items
        assert items["kept"]["metadata"]["uid"] == kept["metadata"]["uid"]
        assert items["changed"]["data"] == changed["data"]
        assert refusal_of(api, "/apis/example.com/v1/ships").code == 404


def test_watches_see_a_restored_snapshot_as_changes(api: KubeApi) -> None:
    """A cache that follows a watch needs no new list."""
    snapshot = api.snapshot()
    version = get(api, "/api/v1/configmaps")["metadata"]["resourceVersion"]
    api.load(config_map("brief"))
    api.restore(snapshot)
    context = ssl.create_default_context(cafile=str(api.ca))
    context.load_cert_chain(api.client_certificate, api.client_key)
    path = f"/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=2&resourceVersion={version}"
    with urllib.request.urlopen(api.server + path, context=context, timeout=90) as answer:
        events = [json.loads(line) for line in answer]
    named = [event["type"] for event in events if event["object"]["metadata"]["name"] == "brief"]
    assert named == ["ADDED", "DELETED"]


def test_restores_in_milliseconds(api: KubeApi) -> None:
    """The time is that of what differs, among 200 objects."""
    api.load([config_map(f"many-{number}") for number in range(200)])
    snapshot = api.snapshot()
    api.load(config_map("one-more"))
    started = time.monotonic()
    api.restore(snapshot)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (409, "Conflict"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ],
)
def test_faults_have_the_answers_of_a_server(api: KubeApi, status: int, reason: str) -> None:
    """Reasons: apimachinery/pkg/apis/meta/v1/types.go. The second request is past `times`."""
    with api.fault(status=status, verbs=["list"], resource="configmaps", times=1):
        refused = refusal_of(api, "/api/v1/configmaps")
        assert (refused.code, json.load(refused)["reason"]) == (status, reason)
        assert refused.headers.get("Retry-After") == ("1" if status == 429 else None)
        get(api, "/api/v1/configmaps")


def test_faults_end_with_their_block_and_select_requests(api: KubeApi) -> None:
    with api.fault(status=500, resource="pods", namespace="default", verbs=["list"]):
        get(api, "/api/v1/configmaps")
        get(api, "/api/v1/pods")
        assert refusal_of(api, "/api/v1/namespaces/default/pods").code == 500
    get(api, "/api/v1/namespaces/default/pods")


def test_delays_requests(api: KubeApi) -> None:
    with api.fault(latency_s=0.3, resource="configmaps", times=1):
        started = time.monotonic()
        get(api, "/api/v1/configmaps")
        assert time.monotonic() - started >= 0.3


def test_dropped_watches_cannot_resume_if_they_are_expired(api: KubeApi) -> None:
    """A plain drop leaves the resourceVersion usable."""
    version = get(api, "/api/v1/configmaps")["metadata"]["resourceVersion"]
    api.load(config_map("after-the-list"))
    watch = f"/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={version}"
    context = ssl.create_default_context(cafile=str(api.ca))
    context.load_cert_chain(api.client_certificate, api.client_key)

    def first_event() -> Any:
        with urllib.request.urlopen(api.server + watch, context=context, timeout=90) as answer:
            return json.loads(answer.readline())

    api.drop_watches()
    assert first_event()["type"] == "ADDED"
    api.drop_watches(expired=True)
    event = first_event()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_moves_the_clock(api: KubeApi) -> None:
    """Objects have the moved time, and tokens expire."""
    token = api.token()
    before = api.advance(0)
    assert api.advance(48 * 3600) - before >= timedelta(hours=48)
    (made,) = api.load({**config_map("late"), "metadata": {"generateName": "late-", "namespace": "default"}})
    assert made["metadata"]["creationTimestamp"] >= f"{before + timedelta(hours=48):%FT%TZ}"
    context = ssl.create_default_context(cafile=str(api.ca))
    request = urllib.request.Request(f"{api.server}/api", headers={"Authorization": f"Bearer {token}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=context, timeout=30)
    assert refused.value.code == 401


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (lambda api: api.restore(99), "restore: there is no snapshot 99"),
        (lambda api: api.advance(-1), "the clock moves forward only, not by -1 seconds"),
        (lambda api: api.fault(resource=1).__enter__(), "Expected `str`, got `int`"),
        (lambda api: api.fault(verb="get").__enter__(), "unknown field `verb`"),
    ],
)
def test_names_what_is_wrong_with_a_command(api: KubeApi, command: Callable[[KubeApi], object], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        command(api)


def test_only_the_process_that_started_the_server_gives_commands(api: KubeApi) -> None:
    with pytest.raises(CommandError, match="snapshot needs the process that started the server"):
        KubeApi(Path(api.data)).snapshot()


def test_users_have_any_name_and_groups(api: KubeApi) -> None:
    """Each has a kubeconfig; without a Role they can only ask who they are."""
    files = {name: api.user_kubeconfig(name, ["pilots", "x:y/z"]) for name in ("jane@example.com", "a/b c")}
    for name, file in files.items():
        with SyncClient(load(str(file))) as client:
            review = client.send(calls.create(REVIEWS, REVIEW))
            assert review["status"]["userInfo"]["username"] == name
            assert review["status"]["userInfo"]["groups"] == ["pilots", "x:y/z", "system:authenticated"]
            with pytest.raises(KubeError, match=f'User "{name}" cannot get resource "configmaps"'):
                client.send(calls.get_raw(MAPS, "kept", "default"))
