"""The one object on an API server: made, written, edited and deleted by others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.updatestatus.control.world import DEADLINE_S, STATUSES, World, cluster_with_definitions

from kubekit.api.meta_v1 import Condition
from kubekit.kube import calls
from kubekit.kube.api_errors import Conflict
from kubekit.kube.clock import SystemClock
from runup.api.update_v1alpha1 import NAME, UpdateStatusStatus
from runup.updatestatus.control.status_store import UpdateStatusStore


def status(message: str) -> UpdateStatusStatus:
    """A status that says `message`."""
    from datetime import UTC, datetime

    since = datetime(2026, 11, 21, 6, tzinfo=UTC)
    condition = Condition(
        type="Available", status="True", reason="AsExpected", message=message, last_transition_time=since
    )
    return UpdateStatusStatus(conditions=(condition,))


class Kept:
    """A keeper at work."""

    def __init__(self, keeper: UpdateStatusStore, cluster: World) -> None:
        self.keeper, self.cluster = keeper, cluster
        self.notified = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what the watch tells."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self.notified.clear()
                await self.notified.wait()

    async def raw(self) -> dict[str, Any]:
        """The object as stored."""
        return await self.cluster.client.send(calls.get_raw(STATUSES, NAME))


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncGenerator[Kept, None]:
    """On a server without the object."""
    async with cluster_with_definitions(tmp_path) as cluster:
        holder: list[Kept] = []
        keeper = UpdateStatusStore(cluster.client, SystemClock(), lambda: holder[0].notified.set())
        holder.append(Kept(keeper, cluster))
        following = asyncio.create_task(keeper.reflector.run())
        await holder[0].until(lambda: not keeper.lacking)
        yield holder[0]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_nothing_is_written_before_it_is_known_what_there_is(kept: Kept) -> None:
    """Why not is said; after the first list there is no reason left."""
    assert kept.keeper.lacking == ""
    assert "is not listed yet" in UpdateStatusStore(kept.cluster.client, SystemClock(), lambda: None).lacking


async def test_the_object_is_made_and_nobody_keeps_book_of_its_fields(kept: Kept) -> None:
    """managedFields would be as large as the object; after the first write there are none, nor after the next."""
    assert await kept.keeper.read() is None
    await kept.keeper.write(status("one"))
    await kept.keeper.write(status("two"))
    stored = await kept.raw()
    assert stored["status"]["conditions"][0]["message"] == "two"
    assert stored["spec"] == {}
    assert "managedFields" not in stored["metadata"]


async def test_what_was_there_before_is_read(kept: Kept) -> None:
    """A new process starts from what the one before wrote."""
    await kept.keeper.write(status("before"))
    new = UpdateStatusStore(kept.cluster.client, SystemClock(), lambda: None)
    assert await new.read() == status("before")
    await new.write(status("after"))
    assert (await kept.raw())["status"]["conditions"][0]["message"] == "after"


async def test_an_edit_by_somebody_else_is_noticed_and_written_over(kept: Kept) -> None:
    """The watch tells; the next read is the server's."""
    await kept.keeper.write(status("ours"))
    await kept.until(lambda: kept.keeper.is_current)
    patch = {"status": {"conditions": []}}
    await kept.cluster.client.send(calls.merge_patch(STATUSES, NAME, patch, subresource="status"))
    await kept.until(lambda: not kept.keeper.is_current)
    assert await kept.keeper.read() == UpdateStatusStatus()
    await kept.keeper.write(status("ours again"))
    assert (await kept.raw())["status"]["conditions"][0]["message"] == "ours again"


async def test_a_write_on_an_old_version_is_a_conflict(kept: Kept) -> None:
    """What was decided on what is no more is not written; the read after it is the server's."""
    await kept.keeper.write(status("ours"))
    patch = {"metadata": {"labels": {"a": "b"}}}
    await kept.cluster.client.send(calls.merge_patch(STATUSES, NAME, patch))
    with pytest.raises(Conflict):
        await kept.keeper.write(status("unseen"))
    await kept.keeper.read()
    await kept.keeper.write(status("seen"))
    assert (await kept.raw())["metadata"]["labels"] == {"a": "b"}


async def test_a_deleted_object_comes_back_with_its_times(kept: Kept) -> None:
    """Since when things are so is not lost with the object."""
    await kept.keeper.write(status("ours"))
    await kept.until(lambda: kept.keeper.is_current)
    await kept.cluster.client.send(calls.delete(STATUSES, NAME))
    await kept.until(lambda: not kept.keeper.is_current)
    assert await kept.keeper.read() == status("ours")
    assert not kept.keeper.exists
    await kept.keeper.write(status("ours"))
    assert (await kept.raw())["status"]["conditions"][0]["message"] == "ours"


async def test_our_own_writes_are_no_news(kept: Kept) -> None:
    """The watch reports them too, in its own time; nothing is read for that."""
    await kept.keeper.write(status("first"))
    await kept.until(lambda: kept.keeper.is_current)
    for number in range(20):
        written = status(str(number))
        await kept.keeper.write(written)
        # The very object, however far behind the watch is: what the server sends would be another.
        assert await kept.keeper.read() is written
    await kept.until(lambda: kept.keeper.is_current)
