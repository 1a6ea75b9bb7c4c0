"""Assesses whether Modules will load on a kernel or on a release's kernels, by reading images only: nothing is built.

In: Modules, nodes, registries. Out: one `Readiness` for each Module and kernel. A limited number of images is read at a
time, and each question is asked once for all Modules that share it. The kernels of a release are those of the driver
toolkit that its image names. Nothing of an image is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import Node
from kubekit.error_types import RunupError, Terminal, Waiting
from kubekit.oci.reference import parse
from kubekit.oci.registry_errors import FileNotFound, OciError, Unreachable
from runup.api.kmm_v1beta1 import Module, ValidatedKernel
from runup.kernelmodules.control.image_stage import ask_registry, verify_image
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide import toolkit, verdict
from runup.kernelmodules.decide.external_queries import ImageQuestion, Kernels, ReleaseQuestion
from runup.kernelmodules.decide.readiness import Readiness
from runup.kernelmodules.decide.toolkit import Flavour, Toolkit
from runup.kernelmodules.decide.verdict import ImageVerdict, ReadinessWork, Toolkits, ToolkitUnknown

WITHIN_S = 300.0
"""Time for one image, in seconds."""

AGAIN_S = 60.0
"""Seconds until an image that could not be read is worth another attempt."""

REASON = "ReleaseUnreadable"


async def kernels_of(question: ReleaseQuestion, registries: Registries) -> Kernels:
    """Returns the kernel of each flavour, or why one of them is not known."""
    kernels: list[ValidatedKernel] = []
    toolkits: dict[str, Toolkit] = {}
    for flavour in question.flavours or (Flavour("amd64"),):
        architecture = flavour.architecture
        try:
            if architecture not in toolkits:
                toolkits[architecture] = await toolkit_of_release(question.image, registries, architecture=architecture)
            kernel = toolkits[architecture].chosen(real_time=flavour.real_time)
        except RunupError as error:
            several = f"{flavour}: " if len(question.flavours) > 1 else ""
            return Kernels(problem=f"{several}{error.message}")
        kernels.append(ValidatedKernel(architecture, kernel, toolkits[architecture].image))
    return Kernels(tuple(kernels))


async def toolkit_of_release(release: str, registries: Registries, *, architecture: str = "amd64") -> Toolkit:
    """Returns the driver toolkit of a release image; raises Terminal and Waiting."""
    try:
        references = await _file(release, toolkit.REFERENCES_FILE, registries, architecture)
    except FileNotFound as error:
        raise Terminal(
            f"failed to find {toolkit.REFERENCES_FILE} in {release}, which is not a release image", reason=REASON
        ) from error
    return await toolkit_at(toolkit.toolkit_image(references, release), registries, architecture=architecture)


async def toolkit_at(image: str, registries: Registries, *, architecture: str = "amd64") -> Toolkit:
    """Returns the kernels that the driver toolkit `image` names; raises Terminal and Waiting."""
    try:
        data = await _file(image, toolkit.TOOLKIT_FILE, registries, architecture)
    except FileNotFound as error:
        raise toolkit.absent_error(image) from error
    return toolkit.toolkit_of(data, image, architecture)


async def _file(image: str, path: str, registries: Registries, architecture: str) -> bytes:
    """Returns the content of one file of an image; raises FileNotFound if it is missing, Terminal and Waiting."""
    notes: list[str] = []
    try:
        reference = parse(image)
        access = await registries.access("", "", notes)
        return await ask_registry(
            reference,
            access,
            lambda client: client.read_file(reference, path, architecture=architecture),
            within_s=WITHIN_S,
        )
    except FileNotFound:  # an OciError, too, but callers have their own text for it
        raise
    except TimeoutError as error:
        raise _retry_later(image, f"it was not read within {WITHIN_S:g} s", notes) from error
    except DecodeError as error:
        raise _retry_later(image, f"the cluster's answer is not clear: {error}", notes) from error
    except Unreachable as error:
        raise _retry_later(image, error.message, notes) from error
    except OciError as error:
        raise Terminal(_failure_text(image, error.message, notes), reason=REASON) from error


def _retry_later(image: str, why: str, notes: Sequence[str]) -> Waiting:
    return Waiting(_failure_text(image, why, notes), reason=REASON, retry_after_s=AGAIN_S)


def _failure_text(image: str, why: str, notes: Sequence[str]) -> str:
    notes_text = f" ({'; '.join(notes)})" if notes else ""
    return f"failed to get image spec from image {image}: {why}{notes_text}"


MAX_CONCURRENT_IMAGES = 8
"""The number of images read at a time: each takes some MiB of memory and a part of a CPU."""

ToolkitReader = Callable[[str], Awaitable[Toolkit]]
"""Reads the driver toolkit for an architecture. Raises RunupError."""


@dataclass(frozen=True, slots=True)
class AssessmentTarget:
    """The target to assess: `kernel` as `uname -r` prints it, or the image of a `release` or of a driver `toolkit`."""

    kernel: str = ""
    release: str = ""
    toolkit: str = ""


async def assess_modules(
    modules: Sequence[Module],
    nodes: Sequence[Node],
    target: AssessmentTarget,
    registries: Registries,
    *,
    at_once: int = MAX_CONCURRENT_IMAGES,
) -> tuple[Readiness, ...]:
    """Returns the readiness of every Module, sorted by namespace, name, architecture and kernel.

    What a registry does not answer is Unknown. `at_once` is the number of images that are read at a time.
    """
    work = await images_to_examine(modules, nodes, target, registries)
    # Modules may share an image: each question is asked once, and its verdict counts for all of them.
    verdicts = await verdicts_of([check.question for check in work.asked], registries, at_once=at_once)
    examined = [verdict.readiness_from(check, verdicts[check.question]) for check in work.asked]
    return tuple(
        sorted(
            (*examined, *work.decided),
            key=lambda readiness: (readiness.namespace, readiness.name, readiness.architecture, readiness.kernel),
        )
    )


async def images_to_examine(
    modules: Sequence[Module], nodes: Sequence[Node], target: AssessmentTarget, registries: Registries
) -> ReadinessWork:
    """Returns the images to examine, and the Modules that are decided without their image.

    Unless a kernel is given, reads from the registry which kernels the release or the driver toolkit image has; where
    that fails, the Modules' readiness is Unknown.
    """
    if target.kernel:
        return verdict.work_for_kernel(modules, nodes, target.kernel)

    async def read_toolkit(architecture: str) -> Toolkit:
        if target.toolkit:
            return await toolkit_at(target.toolkit, registries, architecture=architecture)
        return await toolkit_of_release(target.release, registries, architecture=architecture)

    toolkits = await toolkits_of(verdict.architectures(modules, nodes), read_toolkit)
    return verdict.work_for_release(modules, nodes, toolkits)


async def toolkits_of(architectures: Sequence[str], read_toolkit: ToolkitReader) -> Toolkits:
    """Returns the driver toolkit of each architecture, or why it is not known if `read_toolkit` raises RunupError."""

    async def read_or_unknown(architecture: str) -> Toolkit | ToolkitUnknown:
        try:
            return await read_toolkit(architecture)
        except RunupError as error:
            return ToolkitUnknown(error.message, final=isinstance(error, Terminal))

    return dict(zip(architectures, await asyncio.gather(*map(read_or_unknown, architectures)), strict=True))


async def verdicts_of(
    questions: Sequence[ImageQuestion], registries: Registries, *, at_once: int = MAX_CONCURRENT_IMAGES
) -> dict[ImageQuestion, ImageVerdict]:
    """Returns the verdict on each image; reads `at_once` images at a time."""
    slots = asyncio.Semaphore(at_once)
    # Modules may share an image: it is read once.
    distinct_questions = list(dict.fromkeys(questions))

    async def verify_in_slot(question: ImageQuestion) -> ImageVerdict:
        async with slots:
            return await verify_image(question, registries)

    return dict(zip(distinct_questions, await asyncio.gather(*map(verify_in_slot, distinct_questions)), strict=True))
