"""Watches: where they begin, what each watcher sees, how they end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = "an-administrator"


@pytest.fixture
async def session(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    """An administrator's plain HTTP session."""
    from kubesandbox.apiserver.http.messages import User

    server.authn.add_token(TOKEN, User("tester", groups=("system:masters",)))
    context = ssl.create_default_context(cadata=(server.data / "pki" / "ca.crt").read_text())
    connector = aiohttp.TCPConnector(ssl=context)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert load(str(server.kubeconfig)).server == server.url
    async with aiohttp.ClientSession(server.url, connector=connector, headers=headers) as made:
        yield made


class Stream:
    """The events of one watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> JSON:
        """The next event; an error where none comes."""
        async with asyncio.timeout(90):
            event: JSON = orjson.loads(await self._response.content.readline())
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Type and name of the next events."""
        return [(e["type"], e["object"]["metadata"].get("name", "")) for e in [await self.next() for _ in range(count)]]

    async def ended(self) -> bool:
        """Whether there is nothing more."""
        async with asyncio.timeout(90):
            return await self._response.content.readline() == b""


@asynccontextmanager
async def watching(session: aiohttp.ClientSession, **query: str) -> AsyncIterator[Stream]:
    """A watch of the ConfigMaps in `default`."""
    async with session.get(MAPS, params={"watch": "1", **query}) as response:
        assert response.status == 200
        yield Stream(response)


async def create(session: aiohttp.ClientSession, name: str, **labels: str) -> JSON:
    """A new ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
    async with session.post(MAPS, json=body) as response:
        assert response.status == 201
        made: JSON = await response.json()
        return made


async def patch(session: aiohttp.ClientSession, name: str, body: JSON) -> JSON:
    """A merge patch."""
    headers = {"Content-Type": "application/merge-patch+json"}
    async with session.patch(f"{MAPS}/{name}", data=orjson.dumps(body), headers=headers) as response:
        assert response.status == 200
        changed: JSON = await response.json()
        return changed


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["no revision", "revision zero"])
async def test_without_a_revision_everything_comes_first(session: aiohttp.ClientSession, query: dict[str, str]) -> None:
    """Existing objects are sent as ADDED, then new events follow."""
    await create(session, "a")
    async with watching(session, **query) as stream:
        assert await stream.take(1) == [("ADDED", "a")]
        await patch(session, "a", {"data": {"x": "1"}})
        await session.delete(f"{MAPS}/a")
        assert await stream.take(2) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_from_a_revision_only_what_came_after(session: aiohttp.ClientSession) -> None:
    """The client resumes exactly where it stopped; a deletion has a separate revision."""
    first = await create(session, "a")
    await create(session, "b")
    await session.delete(f"{MAPS}/a")
    async with watching(session, resourceVersion=first["metadata"]["resourceVersion"]) as stream:
        events = [await stream.next(), await stream.next()]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [("ADDED", "b"), ("DELETED", "a")]
    revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert revisions == sorted(revisions)
    assert revisions[1] > int(first["metadata"]["resourceVersion"])


async def test_a_forgotten_revision_is_an_error_event(session: aiohttp.ClientSession, server: ApiServer) -> None:
    """410 as an ERROR event, after which the stream ends; the message has both revisions."""
    await create(session, "a")
    await create(session, "b")
    server.store.compact()
    async with watching(session, resourceVersion="1") as stream:
        event = await stream.next()
        assert await stream.ended()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert event["object"]["message"] == f"too old resource version: 1 ({server.store.compacted})"


async def test_a_selector_makes_its_own_arrivals_and_departures(session: aiohttp.ClientSession) -> None:
    """An object that begins to match is ADDED, one that ceases to is DELETED."""
    async with watching(session, labelSelector="tier=front") as stream:
        await create(session, "a", tier="back")
        await patch(session, "a", {"metadata": {"labels": {"tier": "front"}}})
        await patch(session, "a", {"data": {"x": "1"}})
        await patch(session, "a", {"metadata": {"labels": {"tier": None}}})
        await create(session, "b", tier="front")
        assert await stream.take(4) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_one_object_can_be_watched_by_its_name(session: aiohttp.ClientSession) -> None:
    """A field selector on the name hides the others."""
    async with watching(session, fieldSelector="metadata.name=b") as stream:
        await create(session, "a")
        await create(session, "b")
        assert await stream.take(1) == [("ADDED", "b")]


async def test_a_streaming_list_says_when_it_is_complete(session: aiohttp.ClientSession, server: ApiServer) -> None:
    """Existing objects are sent, then a bookmark with the annotation and the revision of the list."""
    await create(session, "a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with watching(session, **query) as stream:
        assert await stream.take(1) == [("ADDED", "a")]
        bookmark = await stream.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(server.store.rv)


@pytest.mark.slow
async def test_a_watch_ends_when_its_time_is_over(session: aiohttp.ClientSession) -> None:
    """timeoutSeconds closes the stream without an error."""
    async with watching(session, timeoutSeconds="1") as stream:
        assert await stream.ended()


async def test_a_watch_can_show_metadata_alone(session: aiohttp.ClientSession) -> None:
    """PartialObjectMetadata in every event."""
    headers = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    async with session.get(MAPS, params={"watch": "1"}, headers=headers) as response:
        await create(session, "a")
        event = await Stream(response).next()
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "data" not in event["object"]


async def test_many_watchers_see_the_same_changes(session: aiohttp.ClientSession) -> None:
    """Fifty watchers, twenty changes, the same order for each."""
    async with watching(session) as probe:
        responses = [await session.get(MAPS, params={"watch": "1"}) for _ in range(50)]
        names = [f"m-{number}" for number in range(20)]
        for name in names:
            await create(session, name)
        expected = [("ADDED", name) for name in names]
        assert await probe.take(20) == expected
        for response in responses:
            assert await Stream(response).take(20) == expected
            response.close()
