"""Commands of the process that started a server: snapshots, faults, watches and the clock.

In: one JSON object a line on standard input. Out: one JSON object a line on standard output, `{"error": ...}` for a
command that fails. Only the process that started the server has these pipes, so that no client of the API reaches them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson

from kubekit.kube.clock import MovableClock
from kubesandbox.apiserver import snapshots
from kubesandbox.apiserver.faults import Fault
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]


class Commands:
    """Carries out commands on a running server."""

    def __init__(self, server: ApiServer, clock: MovableClock) -> None:
        self._server, self._clock = server, clock
        self._snapshots: list[snapshots.Snapshot] = []
        self._by_name: dict[str, Callable[[JSON], Awaitable[JSON]]] = {
            "snapshot": self._snapshot,
            "restore": self._restore,
            "fault": self._fault,
            "remove_faults": self._remove_faults,
            "drop_watches": self._drop_watches,
            "advance": self._advance,
        }

    async def answer(self, line: bytes) -> bytes:
        """Returns the line that answers a command; never raises."""
        try:
            command = orjson.loads(line)
            result = await self._by_name[command.pop("command")](command)
        except Exception as error:  # noqa: BLE001 - one command that fails must not end the server
            result = {"error": str(error)}
        return orjson.dumps(result) + b"\n"

    async def _snapshot(self, _: JSON) -> JSON:
        self._snapshots.append(snapshots.take(self._server.store))
        return {"snapshot": len(self._snapshots) - 1}

    async def _restore(self, command: JSON) -> JSON:
        number = command["snapshot"]
        if number not in range(len(self._snapshots)):
            raise ValueError(f"there is no snapshot {number}")
        return {"written": await snapshots.restore(self._server.store, self._snapshots[number])}

    async def _fault(self, command: JSON) -> JSON:
        return {"id": self._server.faults.add(msgspec.convert(command, Fault))}

    async def _remove_faults(self, command: JSON) -> JSON:
        for number in command.get("ids") or [fault.id for fault in self._server.faults.active]:
            self._server.faults.remove(number)
        return {}

    async def _drop_watches(self, command: JSON) -> JSON:
        # Compacted first, so that a watch cannot resume at its last resourceVersion meanwhile.
        if command.get("expired"):
            self._server.store.compact()
        self._server.rest.reading.stop_watches()
        return {}

    async def _advance(self, command: JSON) -> JSON:
        self._clock.advance(command["seconds"])
        # Woken tasks take their first steps.
        await asyncio.sleep(0)
        return {"now": self._clock.now().isoformat()}
