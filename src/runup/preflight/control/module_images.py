"""What a preflight knows of the images of the cluster's kernel modules, asked for beside the checks.

In: snapshots, as the checks see them. Out: `Seen`, at once, and a call of `changed` when more is known. A registry may
take minutes, which no check has; so what was asked before is kept until its Module, the nodes that load it, or time
says otherwise. Only what is not verified is asked for again. Nothing is built.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import resource_of
from kubekit.kube.clock import Clock
from runup.api.kmm_v1beta1 import Module
from runup.checks.decide.model import Snapshot
from runup.kernelmodules.control.readiness import Wanted, assess
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide.flavours import Flavour
from runup.kernelmodules.decide.looked import AGAIN_S
from runup.kernelmodules.decide.toolkit import TOOLKIT
from runup.kernelmodules.decide.verdict import Readiness, Seen, Status, flavours, live

NO_TOOLKIT = f"no {TOOLKIT} is among the images of the target's release, so which kernels it brings is not known"
MODULES, NODES = resource_of(Module), resource_of(Node)


@dataclass(frozen=True, slots=True)
class _Input:
    """What a Module's answer rests on."""

    module: Module
    flavours: tuple[Flavour, ...]

    def same_as(self, other: _Input) -> bool:
        """Whether the answer is the same, too: a status or a label is no reason to ask again."""
        return (self.module.spec, self.flavours) == (other.module.spec, other.flavours)


@dataclass(frozen=True, slots=True)
class _Known:
    """An answer, and when it came."""

    input: _Input
    found: tuple[Readiness, ...]
    at: float

    def is_due(self, now: float) -> bool:
        """Whether another answer may be had by now."""
        return any(each.status is not Status.TRUE for each in self.found) and now - self.at >= AGAIN_S


class ModuleImages:
    """The images of the cluster's Modules for the kernels of one release, whose driver toolkit is `toolkit`.

    Where the release names none, nothing is asked.
    """

    def __init__(self, registries: Registries, toolkit: str, clock: Clock, changed: Callable[[], None]) -> None:
        self._registries = registries
        self._wanted = Wanted(toolkit=toolkit)
        self._clock = clock
        self._changed = changed
        self._known: dict[NamespacedName, _Known] = {}
        self._asking: asyncio.Task[None] | None = None

    def seen(self, snapshot: Snapshot) -> Seen:
        """What is known by now; what is not is asked for, and `changed` called when it is there."""
        modules, nodes = snapshot.objects.get(MODULES), snapshot.objects.get(NODES)
        if not modules:
            return Seen()
        if not self._wanted.toolkit:
            return Seen(why=NO_TOOLKIT)
        if nodes is None:
            lacking = snapshot.unreadable.get(NODES, "they were not read")
            return Seen(why=f"which nodes load it is not known: {lacking}")
        inputs = _inputs(modules, nodes)
        self._known = {
            key: known for key, known in self._known.items() if key in inputs and known.input.same_as(inputs[key])
        }
        self._ask(inputs, nodes)
        return Seen(tuple(each for known in self._known.values() for each in known.found))

    async def settled(self, snapshot: Snapshot) -> Seen:
        """The same once nothing is being asked any more."""
        seen = self.seen(snapshot)
        while self._asking is not None:
            await self._asking
            seen = self.seen(snapshot)
        return seen

    async def close(self) -> None:
        """Ask no further."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    def _ask(self, inputs: dict[NamespacedName, _Input], nodes: Sequence[Node]) -> None:
        now = self._clock.monotonic()
        open_ = {key: each for key, each in inputs.items() if key not in self._known or self._known[key].is_due(now)}
        if open_ and self._asking is None:
            self._asking = asyncio.create_task(self._answer(open_, nodes))
            self._asking.add_done_callback(self._done)

    async def _answer(self, open_: dict[NamespacedName, _Input], nodes: Sequence[Node]) -> None:
        try:
            found = await assess([each.module for each in open_.values()], nodes, self._wanted, self._registries)
        except Exception as error:  # noqa: BLE001 - a bug there costs these answers, not the preflight
            found = tuple(_failed(key, error) for key in open_)
        for key, each in open_.items():
            mine = tuple(one for one in found if NamespacedName(one.namespace, one.name) == key)
            self._known[key] = _Known(each, mine, self._clock.monotonic())

    def _done(self, asking: asyncio.Task[Any]) -> None:
        self._asking = None
        if not asking.cancelled():
            self._changed()


def _failed(key: NamespacedName, error: Exception) -> Readiness:
    why = f"looking at it failed: {type(error).__name__}: {error}"
    return Readiness(key.namespace, key.name, "", "", "Image", Status.UNKNOWN, why)


def _inputs(modules: Sequence[Module], nodes: Sequence[Node]) -> dict[NamespacedName, _Input]:
    return {key_of(module): _Input(module, flavours(module, nodes)) for module in live(modules)}
