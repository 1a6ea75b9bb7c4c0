"""Whether Modules will load on a kernel or a release's kernels, as far as can be told by reading: nothing is built.

In: Modules, nodes, registries. Out: one `Readiness` a Module and kernel. So many images at a time are asked for, each
question once, whichever Modules have it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kubekit.api.core_v1 import Node
from kubekit.errors import RunupError, Terminal
from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.control.images import verify_image
from runup.kernelmodules.control.kernels import toolkit_at, toolkit_of_release
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide import verdict
from runup.kernelmodules.decide.asked import ImageQuestion
from runup.kernelmodules.decide.toolkit import Toolkit
from runup.kernelmodules.decide.verdict import ImageVerdict, Readiness, Toolkits, Untold, Work

AT_ONCE = 8
"""How many images are read at a time: each takes some mebibytes, and a part of a processor."""

Reading = Callable[[str], Awaitable[Toolkit]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is judged: `kernel` as `uname -r` prints it, else `release`, else the driver toolkit `toolkit`."""

    kernel: str = ""
    release: str = ""
    toolkit: str = ""


async def assess(
    modules: Sequence[Module], nodes: Sequence[Node], wanted: Wanted, registries: Registries, *, at_once: int = AT_ONCE
) -> tuple[Readiness, ...]:
    """What is known of every Module, in order."""
    work = await work_of(modules, nodes, wanted, registries)
    verdicts = await verdicts_of([each.question for each in work.asked], registries, at_once=at_once)
    found = [verdict.judged(each, verdicts[each.question]) for each in work.asked]
    return tuple(
        sorted((*found, *work.decided), key=lambda each: (each.namespace, each.name, each.architecture, each.kernel))
    )


async def work_of(modules: Sequence[Module], nodes: Sequence[Node], wanted: Wanted, registries: Registries) -> Work:
    """What is to be asked; reads the kernels of a release."""
    if wanted.kernel:
        return verdict.for_kernel(modules, nodes, wanted.kernel)
    found = verdict.architectures(modules, nodes)
    return verdict.for_release(modules, nodes, await toolkits_of(found, _reading(wanted, registries)))


async def toolkits_of(architectures: Sequence[str], read: Reading) -> Toolkits:
    """The driver toolkit of each architecture, or why it is not known."""

    async def one(architecture: str) -> Toolkit | Untold:
        try:
            return await read(architecture)
        except RunupError as error:
            return Untold(error.message, final=isinstance(error, Terminal))

    return dict(zip(architectures, await asyncio.gather(*map(one, architectures)), strict=True))


async def verdicts_of(
    questions: Sequence[ImageQuestion], registries: Registries, *, at_once: int = AT_ONCE
) -> dict[ImageQuestion, ImageVerdict]:
    """The verdict on each image, `at_once` at a time."""
    gate = asyncio.Semaphore(at_once)
    several = list(dict.fromkeys(questions))

    async def one(question: ImageQuestion) -> ImageVerdict:
        async with gate:
            return await verify_image(question, registries)

    return dict(zip(several, await asyncio.gather(*map(one, several)), strict=True))


def _reading(wanted: Wanted, registries: Registries) -> Reading:
    async def read(architecture: str) -> Toolkit:
        if wanted.toolkit:
            return await toolkit_at(wanted.toolkit, registries, architecture=architecture)
        return await toolkit_of_release(wanted.release, registries, architecture=architecture)

    return read
