"""Examines whether Modules will load, for preflights and for `runup kmod check`: reads Modules, nodes, registries only.

Images are read; nothing is built, and nothing of an image is run. The kernels of a release are those of the driver
toolkit that its image names. If listing the nodes of a cluster is forbidden, the check continues without them, and a
note says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object, key_of
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError, RunupError, Terminal, Waiting
from kubekit.kube.api_errors import Forbidden, NotFound
from kubekit.kube.list_pages import Listing
from kubekit.oci.access import Access
from kubekit.oci.image_locations import LAYOUT, REGISTRY, parse_location, read_image_files
from kubekit.oci.reference import parse
from kubekit.oci.registry_errors import FileNotFound, OciError, Unreachable
from runup import __version__
from runup.api.kmm_v1beta1 import Module, ValidatedKernel
from runup.dump.dump_files import BadDump
from runup.dump.load import read
from runup.kernelmodules.control.image_stage import ask_registry, verify_image
from runup.kernelmodules.control.registries import ClusterRegistries, GivenRegistries, Registries, with_registries_of
from runup.kernelmodules.decide import toolkit, verdict
from runup.kernelmodules.decide.module_state import ImageQuestion, Kernels, ReleaseQuestion
from runup.kernelmodules.decide.readiness import Readiness, loading_modules
from runup.kernelmodules.decide.toolkit import REFERENCES_FILE, Flavour, Toolkit, toolkit_image
from runup.process.connection import Connection
from runup.process.read_only_client import ReadOnlyClient
from runup.process.steps import step

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
    except codec.DecodeError as error:
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
            (*examined, *work.decided, *verdict.readiness_of_others(modules)),
            key=lambda readiness: (readiness.namespace, readiness.name, readiness.architecture, readiness.kernel),
        )
    )


async def images_to_examine(
    modules: Sequence[Module], nodes: Sequence[Node], target: AssessmentTarget, registries: Registries
) -> verdict.ReadinessWork:
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


async def toolkits_of(architectures: Sequence[str], read_toolkit: ToolkitReader) -> verdict.Toolkits:
    """Returns the driver toolkit of each architecture, or why it is not known if `read_toolkit` raises RunupError."""

    async def read_or_unknown(architecture: str) -> Toolkit | verdict.ToolkitUnknown:
        try:
            return await read_toolkit(architecture)
        except RunupError as error:
            return verdict.ToolkitUnknown(error.message, final=isinstance(error, Terminal))

    return dict(zip(architectures, await asyncio.gather(*map(read_or_unknown, architectures)), strict=True))


async def verdicts_of(
    questions: Sequence[ImageQuestion], registries: Registries, *, at_once: int = MAX_CONCURRENT_IMAGES
) -> dict[ImageQuestion, verdict.ImageVerdict]:
    """Returns the verdict on each image; reads `at_once` images at a time."""
    slots = asyncio.Semaphore(at_once)
    # Modules may share an image: it is read once.
    distinct_questions = list(dict.fromkeys(questions))

    async def verify_in_slot(question: ImageQuestion) -> verdict.ImageVerdict:
        async with slots:
            image_verdict = await verify_image(question, registries)
        current.done += 1
        return image_verdict

    with step("Reading images of kernel modules", len(distinct_questions)) as current:
        verdicts = await asyncio.gather(*map(verify_in_slot, distinct_questions))
    return dict(zip(distinct_questions, verdicts, strict=True))


AGENT = f"runup-kmod-check/{__version__}"
K = TypeVar("K", bound=Object)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The kernel or image to check for; `modules` are NAME or NAMESPACE/NAME, all if empty, `dump` a folder or ""."""

    to_image: str
    kernel: str
    toolkit_image: str
    modules: tuple[str, ...]
    dump: str
    at_once: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the check; `notes` say what could not be read, so that the answer may be incomplete."""

    found: tuple[Readiness, ...] = ()
    notes: list[str] = field(default_factory=list)


def check_modules(connection: Connection, request: CheckRequest, access: Access) -> CheckResult:
    """Returns the readiness of the chosen Modules.

    Raises InputError if the folder is not a dump, or if there is no Module of a name that was given.
    """
    if request.to_image.startswith(LAYOUT):
        files, _ = read_image_files(parse_location(request.to_image), (REFERENCES_FILE.partition("/")[0],), access)
        target = AssessmentTarget(toolkit=toolkit_image(files.get(REFERENCES_FILE, b"{}"), request.to_image))
    else:
        image, toolkit = (text.removeprefix(REGISTRY) for text in (request.to_image, request.toolkit_image))
        target = AssessmentTarget(request.kernel, image, toolkit)
    # The registries of the release and the toolkit image were typed by the user, so their access is not for Modules.
    access = with_registries_of(access, *filter(None, (target.release, target.toolkit)))
    if request.dump:
        return _check_dump(request, target, access)

    async def check_cluster() -> CheckResult:
        async with ReadOnlyClient(connection.config(), namespace="", user_agent=AGENT) as client:
            try:
                modules = await client.listing(Module)
            except NotFound:
                return CheckResult()  # no such kind, so no such objects
            try:
                nodes = await client.listing(Node)
            except Forbidden as error:
                nodes = Listing([], "", incomplete=(f"which there are is not known: {error.message}",))
            notes = []
            for kind, undecoded, incomplete in (
                ("Module", modules.undecoded, modules.incomplete),
                ("Node", nodes.undecoded, nodes.incomplete),
            ):
                notes += [f"{kind} {bad}" for bad in undecoded] + [f"{kind}s: {why}" for why in incomplete]
            registries = ClusterRegistries(client, access)
            chosen_modules = _choose_modules(modules.items, request.modules)
            found = await assess_modules(chosen_modules, nodes.items, target, registries, at_once=request.at_once)
            return CheckResult(found, notes)

    return asyncio.run(check_cluster())


def _check_dump(request: CheckRequest, target: AssessmentTarget, access: Access) -> CheckResult:
    resources = [resource_of(kind) for kind in (Module, Node)]
    try:
        # Without its ClusterVersion a folder is not recognised as a dump.
        dump = read(Path(request.dump), only=("clusterversions", *(resource.plural for resource in resources)))
    except BadDump as error:
        raise InputError(error.message) from error
    notes = []
    for resource in resources:
        key = (resource.group, resource.plural)
        if key in dump.collected.partly and key not in dump.collected.whole:
            notes.append(f"{resource.name}: {dump.collected.why_partly(key)}")
        elif key not in dump.collected.whole:
            notes.append(f"the dump holds no {resource.name}: whether there were any is not known")
    notes += dump.problems
    modules, nodes = _decode_objects(Module, dump.objects, notes), _decode_objects(Node, dump.objects, notes)
    chosen_modules = _choose_modules(modules, request.modules)
    registries = GivenRegistries(access)
    assessing = assess_modules(chosen_modules, nodes, target, registries, at_once=request.at_once)
    return CheckResult(asyncio.run(assessing), notes)


def _choose_modules(modules: Sequence[Module], module_names: Sequence[str]) -> list[Module]:
    """Returns the named Modules, or all if none is named; raises InputError for an unknown name."""
    if not module_names:
        return list(modules)
    loading = loading_modules(modules)
    for name in module_names:
        if not any(name in (module.metadata.name, str(key_of(module))) for module in loading):
            known_names = ", ".join(str(key_of(module)) for module in loading) or "none"
            raise InputError(f"there is no Module {name} that loads a kernel module; there are: {known_names}")
    return [module for module in loading if {module.metadata.name, str(key_of(module))} & set(module_names)]


def _decode_objects(kind: type[K], objects: Sequence[codec.JSON], notes: list[str]) -> list[K]:
    """Returns the objects of `kind` in a dump; adds a note for each that cannot be decoded."""
    resource = resource_of(kind)
    decoded = []
    for obj in objects:
        if (obj["kind"], obj["apiVersion"]) != (resource.kind, resource.api_version):
            continue
        try:
            decoded.append(codec.convert(kind, obj))
        except codec.DecodeError as error:
            metadata = obj.get("metadata") or {}
            notes.append(f"{resource.kind} {metadata.get('namespace', '')}/{metadata.get('name')}: {error}")
    return decoded
