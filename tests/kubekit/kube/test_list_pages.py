"""Pages of a list: where the next one's token is read, and when the next one is asked for."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiohttp import web
from tests.kubekit.kube.apiscript import scripted_api, silence

from kubekit.api.codec import DecodeError, Undecodable
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import ClusterConfig
from kubekit.kube.list_pages import Listing, early_token

DEADLINE_S = 90.0
MANY = ",".join('{"metadata":{"name":"n"}}' for _ in range(2000))


@pytest.mark.parametrize(
    ("body", "token"),
    [
        pytest.param('{"kind":"NodeList","metadata":{"continue":"t"},"items":[]}', "t", id="before the items"),
        pytest.param(
            '{"metadata":{"continue":"t"},"items":[' + MANY + "]}", "t", id="before more items than are looked at"
        ),
        pytest.param('{"items":[],"metadata":{"continue":"t"}}', "", id="a custom kind's stands behind the items"),
        pytest.param('{"items":[' + MANY + '],"metadata":{"continue":"t"}}', "", id="behind many items"),
        pytest.param('{"metadata":{"resourceVersion":"5"},"items":[]}', "", id="the last page has none"),
        pytest.param('{"metadata":{"continue":"a\\"items\\":b"},"items":[]}', 'a"items":b', id="one that quotes"),
        pytest.param('{"metadata":{"continue":7},"items":[]}', "", id="one that is not text"),
        pytest.param('{"metadata":{"continue":"t"},,"items":[]}', "", id="no JSON"),
        pytest.param("", "", id="nothing at all"),
    ],
)
def test_a_token_is_read_ahead_where_it_comes_first(body: str, token: str) -> None:
    """Items that cannot be read ahead are read with the whole page, including errors."""
    assert early_token(body.encode()) == token


@pytest.mark.parametrize(("before", "token"), [(16_384, "t"), (16_385, ""), (17_000, "")])
def test_how_far_is_read_ahead(before: int, token: str) -> None:
    """16 KiB, with the name of the items in them: a list's own metadata is a few hundred bytes."""
    head, items = '{"metadata":{"continue":"t"}', '"items":'
    body = f"{head},{' ' * (before - len(head) - 1 - len(items))}{items}[]}}"
    assert early_token(body.encode()) == token


def test_a_list_of_which_something_cannot_be_read() -> None:
    """A caller that needs all of it gets the first error; the others can be had."""
    bad = (Undecodable("ns", "a", "why"), Undecodable("", "b", "so"))
    assert Listing([1, 2], "5").complete("Node") == [1, 2]
    with pytest.raises(DecodeError, match=r"^Node ns/a cannot be read: why$"):
        Listing([1], "5", bad).complete("Node")


@pytest.mark.parametrize(
    ("body", "items"),
    [
        (b'{"metadata":{"resourceVersion":"5","continue":"t"},"items":[{"kind":"Own"}]}', [{"kind": "Own"}]),
        (b'{"metadata":null,"items":null}', []),
        (b"{}", []),
    ],
    ids=["with its own kind", "nulls", "nothing"],
)
def test_a_page_of_dicts(body: bytes, items: list[dict[str, str]]) -> None:
    """What an item says about itself counts."""
    page = calls.list_raw(resource_of(Node)).decode(body)
    assert list(page.items) == [{"apiVersion": "v1"} | item for item in items]
    assert (page.resource_version, page.continue_) == (("5", "t") if items else ("", ""))


@contextmanager
def two_pages(asked: threading.Event) -> Iterator[str]:
    """A server in a separate thread, with a list of two pages; `asked` is set when the second is asked for."""

    class Pages(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            second = "continue=t" in self.path
            metadata = {"resourceVersion": "5"} | ({} if second else {"continue": "t"})
            item = {"metadata": {"name": "b" if second else "a"}}
            body = json.dumps({"metadata": metadata, "items": [item]}, separators=(",", ":")).encode()
            if second:
                asked.set()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


async def test_the_next_page_is_on_its_way_while_this_one_is_taken_in() -> None:
    """The server makes it meanwhile: of a large list that is half of the time."""
    asked = threading.Event()
    seen: dict[str, bool] = {}

    def keep(obj: Node) -> Node:
        seen[obj.metadata.name] = asked.wait(DEADLINE_S)
        return obj

    with two_pages(asked) as url:
        async with Client(ClusterConfig(server=url)) as client:
            found = await client.listing(Node, keep=keep)
    assert [obj.metadata.name for obj in found.items] == ["a", "b"]
    assert seen == {"a": True, "b": True}


async def test_a_page_that_nobody_waits_for_any_more_is_given_up() -> None:
    """The one before it was no list."""

    async def first(_request: object) -> web.StreamResponse:
        return web.Response(body=b'{"metadata":{"continue":"t"},"items":"none"}', content_type="application/json")

    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        api.answers(first, silence)
        with pytest.raises(DecodeError):
            await client.listing(Node)
        asking = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "Client.send"]
        assert all(task.cancelling() for task in asking)
        assert len(asking) == 1
