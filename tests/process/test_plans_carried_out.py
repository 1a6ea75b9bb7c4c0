"""A plan as requests: what each action sends, which refusals end it, and what becomes of those that do not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.kubekit.kube.apiscript import ScriptedApi, failure, reply, scripted_api, status

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.lang.text import stored_bytes
from runup.api.config_v1 import ClusterVersion
from runup.process.plan import Action, Apply, Delete, Event, PatchStatus, Plan
from runup.process.plan_executor import Executor, NotApplied, StatusRefused, event_object, status_operations

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VERSIONS, MAPS = resource_of(ClusterVersion), resource_of(ConfigMap)
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "ns"}}
APPLY = Apply(resource=MAPS, object=MAP)
PATCH = PatchStatus(
    resource=VERSIONS, key=NamespacedName("", "version"), fields={"conditions": []}, gone=(), resource_version="7"
)
DELETE = Delete(MAPS, NamespacedName("ns", "m"), uid="u")
EVENT = Event(
    resource=VERSIONS, key=NamespacedName("", "version"), type="Normal", reason="Reason", message="It happened."
)
# What shows whether a plan continued.
AFTER = Delete(MAPS, NamespacedName("ns", "after"))


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server that takes everything."""
    async with scripted_api() as found:
        found.answers(reply({}))
        yield found


async def carried_out(api: ScriptedApi, *actions: Action, component: str | None = None) -> None:
    """The plan of these, carried out at noon."""
    async with Client(ClusterConfig(server=api.url)) as client:
        clock = ManualClock(NOON)
        executor = Executor(client, clock) if component is None else Executor(client, clock, component=component)
        await executor.execute(Plan(actions))


@pytest.mark.parametrize(
    ("action", "target"),
    [
        pytest.param(
            APPLY,
            "PATCH /api/v1/namespaces/ns/configmaps/m?fieldManager=cluster-version-operator&force=true",
            id="an object that is ours",
        ),
        pytest.param(
            Apply(resource=MAPS, object=MAP, force=False),
            "PATCH /api/v1/namespaces/ns/configmaps/m?fieldManager=cluster-version-operator",
            id="an object that others may own",
        ),
        pytest.param(
            PATCH,
            "PATCH /apis/config.openshift.io/v1/clusterversions/version/status?fieldManager=cluster-version-operator",
            id="a status",
        ),
        pytest.param(DELETE, "DELETE /api/v1/namespaces/ns/configmaps/m", id="a deletion"),
        pytest.param(
            EVENT, "POST /api/v1/namespaces/default/events?fieldManager=cluster-version-operator", id="an event"
        ),
    ],
)
async def test_what_each_action_asks_for(api: ScriptedApi, action: Action, target: str) -> None:
    """One request, in the order of the plan."""
    await carried_out(api, action, AFTER)
    assert api.targets == [target, "DELETE /api/v1/namespaces/ns/configmaps/after"]


async def test_another_component_says_who_it_is(api: ScriptedApi) -> None:
    """As manager of fields, and as the source of events."""
    await carried_out(api, APPLY, EVENT, component="another")
    assert ["fieldManager=another" in target for target in api.targets] == [True, True]
    assert json.loads(api.bodies[1])["source"] == {"component": "another"}


def no(code: int, reason: str, message: str = "no", **details: Any) -> Any:
    """The answer to the first request; what comes after is taken."""
    return reply(status(code, reason, message) | ({"details": details} if details else {}), code)


@pytest.mark.parametrize(
    ("action", "answer", "raised"),
    [
        pytest.param(APPLY, no(409, "Conflict"), Conflict, id="an object that changed meanwhile"),
        pytest.param(APPLY, no(403, "Forbidden"), NotApplied, id="an object that is refused"),
        pytest.param(APPLY, no(404, "NotFound"), NotApplied, id="its namespace is not there"),
        pytest.param(
            Apply(resource=MAPS, object=MAP, where_namespace=True),
            no(404, "NotFound"),
            None,
            id="nor is it needed where that is not",
        ),
        pytest.param(
            Apply(resource=MAPS, object=MAP, where_namespace=True),
            no(403, "Forbidden"),
            NotApplied,
            id="but it is where that is",
        ),
        pytest.param(
            Apply(resource=MAPS, object=MAP, optional=True), no(403, "Forbidden"), None, id="nothing hangs on it"
        ),
        pytest.param(
            Apply(resource=MAPS, object=MAP, optional=True),
            no(409, "Conflict"),
            Conflict,
            id="that somebody else was faster is told",
        ),
        pytest.param(PATCH, no(400, "BadRequest"), StatusRefused, id="a status that is no request"),
        pytest.param(PATCH, no(413, "RequestEntityTooLarge"), StatusRefused, id="a status that is too large"),
        pytest.param(PATCH, no(422, "Invalid"), StatusRefused, id="a status that is invalid"),
        pytest.param(
            PATCH, no(500, "InternalError", "etcdserver: request is too large"), StatusRefused, id="too large for etcd"
        ),
        pytest.param(PATCH, no(403, "Forbidden"), KubeError, id="a status that may not be written"),
        pytest.param(PATCH, no(409, "Conflict"), Conflict, id="a status that changed meanwhile"),
        pytest.param(DELETE, no(404, "NotFound"), None, id="what is gone already"),
        pytest.param(DELETE, no(403, "Forbidden"), KubeError, id="what may not be deleted"),
        pytest.param(EVENT, no(403, "Forbidden"), None, id="an event that cannot be stored"),
    ],
)
async def test_which_refusals_end_a_plan(
    api: ScriptedApi, action: Action, answer: Any, raised: type[Exception] | None
) -> None:
    """What comes after was decided on the assumption that it succeeds."""
    api.answers(answer, reply({}))
    if raised is None:
        await carried_out(api, action, AFTER)
    else:
        with pytest.raises(raised) as caught:
            await carried_out(api, action, AFTER)
        assert isinstance(caught.value, NotApplied | StatusRefused) is (raised in (NotApplied, StatusRefused))
    assert len(api.targets) == (2 if raised is None else 1)


@pytest.mark.parametrize(
    ("action", "answer", "what", "lasting"),
    [
        pytest.param(
            APPLY, no(403, "Forbidden", "you may not"), "ConfigMap ns/m: you may not", True, id="in a namespace"
        ),
        pytest.param(
            Apply(resource=VERSIONS, object={"metadata": {"name": "m"}}),
            no(422, "Invalid", "no"),
            "ClusterVersion m: no",
            True,
            id="of the whole cluster",
        ),
        pytest.param(
            APPLY,
            failure(429, "TooManyRequests", "later", Retry_After="0"),
            "ConfigMap ns/m: later",
            False,
            id="for now",
        ),
    ],
)
async def test_what_an_object_that_is_not_taken_says(
    api: ScriptedApi, action: Apply, answer: Any, what: str, lasting: bool
) -> None:
    """Which it is, in the server's words, and whether asking again can help."""
    api.answers(answer)
    with pytest.raises(NotApplied) as caught:
        await carried_out(api, action)
    assert (caught.value.what, caught.value.lasting) == (what, lasting)


async def test_an_optional_object_that_is_refused_is_logged(api: ScriptedApi) -> None:
    """Else nobody would know."""
    api.answers(no(403, "Forbidden", "you may not"))
    with capture_logs() as logs:
        await carried_out(api, Apply(resource=MAPS, object=MAP, optional=True))
    assert [(line["event"], line["kind"], line["name"], line["error"]) for line in logs] == [
        ("an object was refused", "ConfigMap", "m", "you may not")
    ]


@pytest.mark.parametrize(
    ("details", "causes"),
    [
        pytest.param({}, (), id="no field is named"),
        pytest.param(
            {"causes": [{"field": "status.a"}, {"field": "status.b"}]}, ("status.a", "status.b"), id="two are"
        ),
    ],
)
async def test_which_fields_of_a_status_are_refused(
    api: ScriptedApi, details: dict[str, Any], causes: tuple[str, ...]
) -> None:
    """As the server names them, with what was sent."""
    api.answers(no(422, "Invalid", "too many", **details))
    with pytest.raises(StatusRefused) as caught:
        await carried_out(api, PATCH)
    assert (caught.value.causes, caught.value.action, caught.value.message) == (causes, PATCH, "too many")


GUARD = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


@pytest.mark.parametrize(
    ("fields", "gone", "fresh", "operations"),
    [
        pytest.param({"a": 1}, (), False, [{"op": "add", "path": "/status/a", "value": 1}], id="a field"),
        pytest.param(
            {"a": 1, "b": None}, (), True, [{"op": "add", "path": "/status", "value": {"a": 1, "b": None}}], id="fresh"
        ),
        pytest.param(
            {},
            ("c", "d"),
            False,
            [
                {"op": "add", "path": "/status/c", "value": None},
                {"op": "remove", "path": "/status/c"},
                {"op": "add", "path": "/status/d", "value": None},
                {"op": "remove", "path": "/status/d"},
            ],
            id="fields that go, whether they are there or not",
        ),
    ],
)
def test_a_status_as_a_patch(
    fields: dict[str, Any], gone: tuple[str, ...], fresh: bool, operations: list[dict[str, Any]]
) -> None:
    """The version that was decided on comes first: on another one nothing of it is done."""
    patch = PatchStatus(
        resource=VERSIONS,
        key=NamespacedName("", "version"),
        fields=fields,
        gone=gone,
        resource_version="7",
        fresh=fresh,
    )
    assert status_operations(patch) == [GUARD, *operations]


def event(**changes: Any) -> Event:
    """An event about a ConfigMap."""
    said = {"resource": MAPS, "key": NamespacedName("ns", "m"), "type": "Warning", "reason": "R", "message": "It is."}
    return Event(**said | changes)


def test_an_event_as_it_is_stored() -> None:
    """Whose it is, what it says, and when; about what has no namespace it is kept in `default`."""
    found = event_object(event(), NOON, "us")
    name = found["metadata"].pop("name")
    assert found == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "namespace": "ns"},
        "type": "Warning",
        "reason": "R",
        "message": "It is.",
        "source": {"component": "us"},
        "firstTimestamp": "2026-01-01T12:00:00Z",
        "lastTimestamp": "2026-01-01T12:00:00Z",
        "count": 1,
    }
    prefix, _, digest = name.rpartition(".")
    assert (prefix, len(digest)) == ("m", 16)
    of_cluster = event_object(event(key=NamespacedName("", "version")), NOON, "us")
    assert of_cluster["metadata"]["namespace"] == "default"
    assert of_cluster["involvedObject"].keys() == {"apiVersion", "kind", "name"}
    assert event_object(event(uid="u"), NOON, "us")["involvedObject"]["uid"] == "u"


def test_the_same_event_has_the_same_name_and_no_other_has() -> None:
    """A retry does not say it twice; whatever differs is another one."""
    others = [event(key=NamespacedName("other", "m")), event(reason="S"), event(message="It is not.")]
    names = {event_object(each, NOON, "us")["metadata"]["name"] for each in (event(), *others)}
    assert len(names) == 4
    assert event_object(event(), NOON, "us") == event_object(event(), NOON, "us")
    assert event_object(event(), NOON.replace(second=1), "us")["metadata"]["name"] not in names


def test_what_an_event_says_fits() -> None:
    """The API takes 1024 bytes of it, and no control characters."""
    assert event_object(event(message="x" * 1024), NOON, "us")["message"] == "x" * 1024
    for long in ("x" * 1025, "\x07" + "ü" * 5000):
        found = event_object(event(message=long), NOON, "us")["message"]
        assert "\x07" not in found
        assert stored_bytes(found) <= 1024
        assert "more characters" in found
