"""Assesses whether Modules will load on a kernel or on a release's kernels, by reading images only: nothing is built.

In: Modules, nodes, registries. Out: one `Readiness` for each Module and kernel. A limited number of images is read at a
time, and each question is asked once for all Modules that share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kubekit.api.core_v1 import Node
from kubekit.error_types import RunupError, Terminal
from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.control.image_stage import verify_image
from runup.kernelmodules.control.kernels import toolkit_at, toolkit_of_release
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide import verdict
from runup.kernelmodules.decide.external_queries import ImageQuestion
from runup.kernelmodules.decide.toolkit import Toolkit
from runup.kernelmodules.decide.verdict import ImageVerdict, Readiness, ReadinessWork, Toolkits, ToolkitUnknown

MAX_CONCURRENT_IMAGES = 8
"""The number of images read at a time: each takes some MiB of memory and a part of a CPU."""

Reading = Callable[[str], Awaitable[Toolkit]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The target to assess: `kernel` as `uname -r` prints it, or the image of a `release` or of a driver `toolkit`."""

    kernel: str = ""
    release: str = ""
    toolkit: str = ""


async def assess_modules(
    modules: Sequence[Module],
    nodes: Sequence[Node],
    wanted: Wanted,
    registries: Registries,
    *,
    at_once: int = MAX_CONCURRENT_IMAGES,
) -> tuple[Readiness, ...]:
    """Returns the readiness of every Module, sorted by namespace, name, architecture and kernel."""
    work = await work_of(modules, nodes, wanted, registries)
    verdicts = await verdicts_of([each.question for each in work.asked], registries, at_once=at_once)
    judged = [verdict.readiness_from(each, verdicts[each.question]) for each in work.asked]
    return tuple(
        sorted((*judged, *work.decided), key=lambda each: (each.namespace, each.name, each.architecture, each.kernel))
    )


async def work_of(
    modules: Sequence[Module], nodes: Sequence[Node], wanted: Wanted, registries: Registries
) -> ReadinessWork:
    """Returns the images to examine; reads the kernels of the release or driver toolkit for that."""
    if wanted.kernel:
        return verdict.for_kernel(modules, nodes, wanted.kernel)
    architectures = verdict.architectures(modules, nodes)
    return verdict.for_release(modules, nodes, await toolkits_of(architectures, _toolkit_reader(wanted, registries)))


async def toolkits_of(architectures: Sequence[str], read: Reading) -> Toolkits:
    """Returns the driver toolkit of each architecture, or why it is not known."""

    async def read_or_unknown(architecture: str) -> Toolkit | ToolkitUnknown:
        try:
            return await read(architecture)
        except RunupError as error:
            return ToolkitUnknown(error.message, final=isinstance(error, Terminal))

    return dict(zip(architectures, await asyncio.gather(*map(read_or_unknown, architectures)), strict=True))


async def verdicts_of(
    questions: Sequence[ImageQuestion], registries: Registries, *, at_once: int = MAX_CONCURRENT_IMAGES
) -> dict[ImageQuestion, ImageVerdict]:
    """Returns the verdict on each image; reads `at_once` images at a time."""
    gate = asyncio.Semaphore(at_once)
    # Modules may share an image: it is read once.
    distinct_questions = list(dict.fromkeys(questions))

    async def verify_within_gate(question: ImageQuestion) -> ImageVerdict:
        async with gate:
            return await verify_image(question, registries)

    return dict(
        zip(distinct_questions, await asyncio.gather(*map(verify_within_gate, distinct_questions)), strict=True)
    )


def _toolkit_reader(wanted: Wanted, registries: Registries) -> Reading:
    """Returns a function that reads the driver toolkit for an architecture, of the image or the release."""

    async def read(architecture: str) -> Toolkit:
        if wanted.toolkit:
            return await toolkit_at(wanted.toolkit, registries, architecture=architecture)
        return await toolkit_of_release(wanted.release, registries, architecture=architecture)

    return read
