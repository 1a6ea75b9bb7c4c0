"""The server of `runup graph serve`: serves a graph with the Cincinnati protocol, as OpenShift's update service does.

A client names a channel, and may name an architecture, its version and its cluster. The answer for a channel is built
once and carries an ETag, so that a client that polls every few minutes mostly gets 304 Not Modified.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from aiohttp import web

from kubekit.error_types import InputError
from kubekit.http.limited_site import LimitedSite
from kubekit.lang.text import count
from runup.advice.control.graph_source import Source
from runup.advice.decide.build_graph import graph_of_channel

PATHS = ("/api/upgrades_info/v1/graph", "/api/upgrades_info/graph", "/graph")
_TYPES = ("application/json", "application/vnd.redhat.cincinnati.v1+json")
_WILD = ("*/*", "application/*")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}")
# Names of `uname -m` that clients may send, in the names of Go that releases have.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# The maximum number of cached channels; unknown channels are not cached, so that clients cannot fill the memory.
_MAX_KEPT = 1000
JSON = dict[str, Any]


def parse_listen_address(text: str) -> tuple[str, int]:
    """Returns host and port. Raises InputError if `text` is not HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f'--listen must be HOST:PORT such as 127.0.0.1:8080, not "{text}"')
    return host.strip("[]"), int(port)


def negotiate_content_type(headers: Sequence[str]) -> str:
    """Returns the content type of the answer, or "" if the client accepts neither type.

    Without a header any type will do.
    """
    media_ranges = [part.partition(";") for header in headers for part in header.split(",") if part.strip()]
    # A weight of zero (q=0) excludes the type.
    names = [
        name.strip().lower() for name, _, parameters in media_ranges if not re.search(r"q=0(\.0*)?\s*(;|$)", parameters)
    ]
    if not media_ranges:
        return _TYPES[0]
    return next((kind for name in names for kind in _TYPES if name == kind or name in _WILD), "")


class Answers:
    """The response bodies of one graph, by channel, with their ETags."""

    def __init__(self, document: JSON, architecture: str) -> None:
        self._document = document
        self._architecture = architecture
        self._kept: dict[str, tuple[bytes, str]] = {}

    def of(self, channel: str, architecture: str) -> tuple[bytes, str]:
        """Returns body and ETag. An unknown channel or another architecture gets an empty graph, as clients expect."""
        is_known = architecture == self._architecture
        key = channel if is_known else ""
        if key not in self._kept:
            part = graph_of_channel(self._document, key)
            body = msgspec.json.encode(part)
            # Clients choose channel names, so answers to unknown ones are not cached.
            if len(self._kept) >= _MAX_KEPT or not part["nodes"]:
                return body, _tag(body)
            self._kept[key] = body, _tag(body)
        return self._kept[key]


def _tag(body: bytes) -> str:
    return f'"{sha256(body).hexdigest()[:32]}"'


def app(source: Source, architecture: str) -> web.Application:
    """Returns the web application that serves the graph."""
    answers = Answers(source.document, architecture)

    async def answer_request(request: web.Request) -> web.Response:
        """Answers one request for a graph as the update service does, errors included."""
        content_type = negotiate_content_type(request.headers.getall("Accept", []))
        if not content_type:
            return _error_response(406, "invalid_content_type", "invalid Content-Type requested")
        channel = request.query.get("channel", "")
        if not channel:
            return _error_response(400, "missing_params", "mandatory client parameters missing: channel")
        if not _CHANNEL.fullmatch(channel):
            return _error_response(400, "invalid_params", "client parameters are not valid: channel")
        requested_architecture = request.query.get("arch") or architecture
        body, tag = answers.of(channel, _ARCHITECTURES.get(requested_architecture, requested_architecture))
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept"}
        # RFC 9110, 13.1.2: with a matching ETag the answer is 304 without a body.
        if any(f'"{etag.value}"' == tag or etag.value == "*" for etag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=content_type, headers=headers)

    served = web.Application()
    served.add_routes([web.get(path, answer_request) for path in PATHS])
    served.add_routes([web.get("/healthz", _healthy)])
    return served


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _error_response(status: int, kind: str, value: str) -> web.Response:
    return web.json_response({"kind": kind, "value": value}, status=status)


def serve(source: Source, host: str, port: int, architecture: str) -> None:
    """Serves until interrupted; prints the address once it listens."""

    async def serve_forever() -> None:
        runner = web.AppRunner(app(source, architecture), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await LimitedSite(runner, host, port).start()
            bound = runner.addresses[0][1]
            name = f"[{host}]" if ":" in host else host
            sys.stdout.write(
                f"serving {count(len(source.document['nodes']), 'release')} at http://{name}:{bound}{PATHS[0]}\n"
            )
            sys.stdout.flush()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    asyncio.run(serve_forever())
