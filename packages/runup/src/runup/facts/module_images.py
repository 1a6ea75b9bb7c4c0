"""Looks up the images of the cluster's kernel modules in registries, in the background, and keeps the answers.

In: snapshots, as the checks see them. Out: `PreflightResults`, at once, and a call of `changed` when more is known. A
registry may take minutes, longer than a check may run. So an answer is kept until its Module or the nodes that load it
change; one that is not "verified" is looked up again after a while. Nothing is built. What looks them up is imported
when there are Modules: an administrator waits for the first risks, and most clusters have none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, key_of
from kubekit.api.scheme import resource_of
from kubekit.kube.clock import Clock
from runup.api.kmm_v1beta1 import Module
from runup.checks.decide.model import Snapshot
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide.readiness import (
    RECHECK_INTERVAL_S,
    PreflightResults,
    Readiness,
    Status,
    loading_modules,
)
from runup.kernelmodules.decide.toolkit import TOOLKIT, Flavour

NO_TOOLKIT = f"no {TOOLKIT} is among the images of the target's release, so which kernels it brings is not known"
MODULES, NODES = resource_of(Module), resource_of(Node)


class ModuleInput(msgspec.Struct, frozen=True):
    """The Module and the kernels that an answer depends on."""

    module: Module
    flavours: tuple[Flavour, ...]

    def same_as(self, other: ModuleInput) -> bool:
        """Returns whether the answer stays the same; a change of status or label alone does not change it."""
        return (self.module.spec, self.flavours) == (other.module.spec, other.flavours)


class KnownModule(msgspec.Struct, frozen=True):
    """The answer for one Module: what it depends on, its verdicts, and `at`, when it came, in monotonic seconds."""

    input: ModuleInput
    found: tuple[Readiness, ...]
    at: float

    def is_due(self, now: float) -> bool:
        """Returns whether the images should be looked up again at `now`, in monotonic seconds."""
        return (
            any(readiness.status is not Status.TRUE for readiness in self.found) and now - self.at >= RECHECK_INTERVAL_S
        )


class ModuleImages:
    """The images of the cluster's Modules for the kernels of one release, whose driver toolkit image is `toolkit`.

    `toolkit` is empty if the release names none; then no registry is asked. `changed` is called after each lookup.
    """

    def __init__(self, registries: Registries, toolkit: str, clock: Clock, changed: Callable[[], None]) -> None:
        self._registries = registries
        self._toolkit = toolkit
        self._clock = clock
        self._changed = changed
        self._known: dict[NamespacedName, KnownModule] = {}
        self._lookup_task: asyncio.Task[None] | None = None

    def seen(self, snapshot: Snapshot) -> PreflightResults:
        """Returns the known answers, and starts to look up the others; `changed` is called when answers arrive."""
        modules, nodes = snapshot.objects.get(MODULES), snapshot.objects.get(NODES)
        if not modules:
            return PreflightResults()
        # The driver toolkit image contains the kernel versions of the release.
        if not self._toolkit:
            return PreflightResults(why=NO_TOOLKIT)
        if nodes is None:
            lacking = snapshot.unreadable.get(NODES, "they were not read")
            return PreflightResults(why=f"which nodes load it is not known: {lacking}")
        from runup.kernelmodules.decide.verdict import flavours

        inputs = {key_of(each): ModuleInput(each, flavours(each, nodes)) for each in loading_modules(modules)}
        known = self._known.items()
        self._known = {key: answer for key, answer in known if key in inputs and answer.input.same_as(inputs[key])}
        self._start_lookup(inputs, nodes)
        return PreflightResults(tuple(readiness for answer in self._known.values() for readiness in answer.found))

    async def settled(self, snapshot: Snapshot) -> PreflightResults:
        """Returns the same as `seen`, once no lookup is running or due any more."""
        answers = self.seen(snapshot)
        while self._lookup_task is not None:
            await self._lookup_task
            answers = self.seen(snapshot)
        return answers

    async def close(self) -> None:
        """Cancels the lookup that is running, if any, and waits until it has ended."""
        if self._lookup_task is not None:
            self._lookup_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._lookup_task

    def _start_lookup(self, inputs: dict[NamespacedName, ModuleInput], nodes: Sequence[Node]) -> None:
        """Starts a lookup for the Modules that have no answer, or one that is due again, unless one is running."""
        now = self._clock.monotonic()
        due_modules = {
            key: module_input
            for key, module_input in inputs.items()
            if key not in self._known or self._known[key].is_due(now)
        }
        if due_modules and self._lookup_task is None:
            self._lookup_task = asyncio.create_task(self._look_up(due_modules, nodes))
            self._lookup_task.add_done_callback(self._on_lookup_done)

    async def _look_up(self, due_modules: dict[NamespacedName, ModuleInput], nodes: Sequence[Node]) -> None:
        """Examines the images of the `due_modules` and keeps the answers; if that fails, each answer is Unknown."""
        from runup.kernelmodules.control.module_check import AssessmentTarget, assess_modules

        target = AssessmentTarget(toolkit=self._toolkit)
        try:
            answers = await assess_modules(
                [module_input.module for module_input in due_modules.values()], nodes, target, self._registries
            )
        except Exception as error:  # noqa: BLE001 - a bug there costs these answers, not the preflight
            answers = tuple(
                Readiness(
                    namespace=key.namespace,
                    name=key.name,
                    kernel="",
                    architecture="",
                    stage="Image",
                    status=Status.UNKNOWN,
                    reason=f"looking at it failed: {type(error).__name__}: {error}",
                )
                for key in due_modules
            )
        for key, module_input in due_modules.items():
            own_answers = tuple(each for each in answers if NamespacedName(each.namespace, each.name) == key)
            self._known[key] = KnownModule(module_input, own_answers, self._clock.monotonic())

    def _on_lookup_done(self, lookup: asyncio.Task[Any]) -> None:
        self._lookup_task = None
        if not lookup.cancelled():
            self._changed()
