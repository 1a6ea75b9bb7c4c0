"""Reads the kernels of a release from its registry: the release image names the driver toolkit, which has the kernels.

In: a pull spec and the architectures of the nodes. Out: a `Toolkit` each; raises Terminal if the images do not have the
expected content, Waiting if they could not be read. Nothing of an image is run.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubekit.api.codec import DecodeError
from kubekit.error_types import RunupError, Terminal, Waiting
from kubekit.oci.reference import parse
from kubekit.oci.registry_errors import FileNotFound, OciError, Unreachable
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.kernelmodules.control.image_stage import ask_registry
from runup.kernelmodules.control.registries import Registries
from runup.kernelmodules.decide import toolkit
from runup.kernelmodules.decide.external_queries import Kernels, ReleaseQuestion
from runup.kernelmodules.decide.flavours import Flavour
from runup.kernelmodules.decide.toolkit import Toolkit

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
