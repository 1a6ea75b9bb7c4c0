"""`runup graph serve`: a graph by the Cincinnati protocol, as OpenShift's update service answers it.

A client names a channel, and may name an architecture, its version and its cluster. Answers are made once a channel and
carry an ETag, so that a client that asks every few minutes is mostly told that nothing changed.
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

from runup.advice.cli.graph.source import Source
from runup.advice.decide.building import of_channel
from runup.cli.errors import CommandError

PATHS = ("/api/upgrades_info/v1/graph", "/api/upgrades_info/graph", "/graph")
_TYPES = ("application/json", "application/vnd.redhat.cincinnati.v1+json")
_WILD = ("*/*", "application/*")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# A channel that nobody has is not worth remembering.
_MAX_KEPT = 1000
JSON = dict[str, Any]


def address(text: str) -> tuple[str, int]:
    """Host and port; raises CommandError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(f'--listen must be HOST:PORT such as 127.0.0.1:8080, not "{text}"')
    return host.strip("[]"), int(port)


def accepted(headers: Sequence[str]) -> str:
    """The content type to answer with, empty where the client takes none of ours; no header takes any."""
    asked = [part.partition(";") for header in headers for part in header.split(",") if part.strip()]
    # A weight of zero means: not this one.
    names = [name.strip().lower() for name, _, rest in asked if not re.search(r"q=0(\.0*)?\s*(;|$)", rest)]
    if not asked:
        return _TYPES[0]
    return next((kind for name in names for kind in _TYPES if name == kind or name in _WILD), "")


class Answers:
    """The bodies of one graph by channel, each with its ETag."""

    def __init__(self, document: JSON, architecture: str) -> None:
        self._document = document
        self._architecture = architecture
        self._kept: dict[str, tuple[bytes, str]] = {}

    def of(self, channel: str, architecture: str) -> tuple[bytes, str]:
        """Body and ETag. An unknown channel or another architecture is an empty graph, as clients expect."""
        known = architecture == self._architecture
        key = channel if known else ""
        if key not in self._kept:
            part = of_channel(self._document, key)
            body = msgspec.json.encode(part)
            if len(self._kept) >= _MAX_KEPT or not part["nodes"]:
                return body, _tag(body)
            self._kept[key] = body, _tag(body)
        return self._kept[key]


def _tag(body: bytes) -> str:
    return f'"{sha256(body).hexdigest()[:32]}"'


def app(found: Source, architecture: str) -> web.Application:
    """The service."""
    answers = Answers(found.document, architecture)

    async def answer(request: web.Request) -> web.Response:
        kind = accepted(request.headers.getall("Accept", []))
        if not kind:
            return _refused(406, "invalid_content_type", "invalid Content-Type requested")
        channel = request.query.get("channel", "")
        if not channel:
            return _refused(400, "missing_params", "mandatory client parameters missing: channel")
        if not _CHANNEL.fullmatch(channel):
            return _refused(400, "invalid_params", "client parameters are not valid: channel")
        asked = request.query.get("arch") or architecture
        body, tag = answers.of(channel, _ARCHITECTURES.get(asked, asked))
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept"}
        if any(f'"{each.value}"' == tag or each.value == "*" for each in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=kind, headers=headers)

    served = web.Application()
    served.add_routes([web.get(path, answer) for path in PATHS])
    served.add_routes([web.get("/healthz", _healthy)])
    return served


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _refused(status: int, kind: str, value: str) -> web.Response:
    return web.json_response({"kind": kind, "value": value}, status=status)


def serve(found: Source, host: str, port: int, architecture: str) -> None:
    """Serve until interrupted; says where once it does."""
    asyncio.run(_serve(found, host, port, architecture))


async def _serve(found: Source, host: str, port: int, architecture: str) -> None:
    runner = web.AppRunner(app(found, architecture), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"serving {len(found.document['nodes'])} releases at http://{name}:{bound}{PATHS[0]}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
