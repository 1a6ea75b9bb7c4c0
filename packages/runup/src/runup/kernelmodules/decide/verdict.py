"""Decides which images are examined to show whether Modules will load on a kernel, and what each result means. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from kubekit.api.core_v1 import Node
from runup.api.kmm_v1beta1 import Module, Sign
from runup.kernelmodules.decide.admission import module_faults
from runup.kernelmodules.decide.mapping import Resolved, Unmapped, resolve
from runup.kernelmodules.decide.module_state import Image, ImageQuestion
from runup.kernelmodules.decide.readiness import Readiness, Status, loading_modules, loads_something
from runup.kernelmodules.decide.stages import architecture_of, nodes_selected
from runup.kernelmodules.decide.texts import NO_IMAGE_TO_SIGN, NOTHING_LOADED, invalid_module
from runup.kernelmodules.decide.toolkit import Flavour, Toolkit, flavour_of


class ExaminationOutcome(Enum):
    """The outcome of examining an image. An image that is `UNKNOWN` may be in order."""

    VERIFIED = "verified"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageVerdict:
    """The verdict on an image. `paths` are the modules' files; `fetched_bytes` counts layers as they were sent.

    `kernels` are those for which the image has any module, None if not all of it was read.
    """

    outcome: ExaminationOutcome
    message: str
    paths: tuple[str, ...] = ()
    fetched_bytes: int = 0
    kernels: frozenset[str] | None = None

    @property
    def verified(self) -> bool:
        """Returns whether the image exists and has all modules that are looked for."""
        return self.outcome is ExaminationOutcome.VERIFIED

    @property
    def answer(self) -> Image:
        """The verdict in the form in which `Observed.answers` holds it."""
        return Image(self.verified, self.message, self.kernels)


@dataclass(frozen=True, slots=True)
class ToolkitUnknown:
    """The reason why the kernels of an architecture are not known; `final` if asking again does not help."""

    why: str
    final: bool


Toolkits = Mapping[str, Toolkit | ToolkitUnknown]
"""The driver toolkits, or why they are not known, by architecture."""


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """A Module and a kernel whose image must be examined."""

    module: Module
    resolved: Resolved
    architecture: str
    question: ImageQuestion


@dataclass(frozen=True, slots=True)
class ReadinessWork:
    """The images to examine, and the readiness of the Modules for which no image need be examined."""

    asked: tuple[ImageCheck, ...] = field(default=())
    decided: tuple[Readiness, ...] = field(default=())


def flavours(module: Module, nodes: Sequence[Node]) -> tuple[Flavour, ...]:
    """Returns the kernel flavours of the nodes that `module` selects.

    If it selects no node, those of all nodes count; without any node it is amd64.
    """
    matching_nodes = nodes_selected(module.spec.selector, nodes) or nodes
    return tuple(sorted({flavour_of(node) for node in matching_nodes})) or (Flavour("amd64"),)


def work_for_kernel(modules: Sequence[Module], nodes: Sequence[Node], kernel: str) -> ReadinessWork:
    """Returns the images to examine for one kernel, whichever kernels the nodes run now.

    They are those for the architecture in the kernel's name or, if it has none, for the architectures of the nodes that
    each Module selects.
    """
    kernel_architecture = architecture_of(kernel)
    work = []
    for module in loading_modules(modules):
        chosen_architectures = (
            (kernel_architecture,)
            if kernel_architecture
            else tuple(sorted({flavour.architecture for flavour in flavours(module, nodes)}))
        )
        work += [_image_to_check(module, kernel, architecture) for architecture in chosen_architectures]
    return _split_work(work)


def work_for_release(modules: Sequence[Module], nodes: Sequence[Node], toolkits: Toolkits) -> ReadinessWork:
    """Returns the images to examine for a release: those of each Module for the kernels that its nodes will run."""
    return _split_work(
        [
            _check_of_flavour(module, flavour, toolkits)
            for module in loading_modules(modules)
            for flavour in flavours(module, nodes)
        ]
    )


def readiness_of_others(modules: Sequence[Module]) -> tuple[Readiness, ...]:
    """Returns the readiness of the Modules that load no kernel module, as a validation has them."""
    others = []
    for module in modules:
        if module.metadata.deletion_timestamp is not None or loads_something(module):
            continue
        faults = module_faults(module)
        status, stage = (Status.FALSE, "Image") if faults else (Status.TRUE, "Done")
        reason = invalid_module(faults) if faults else NOTHING_LOADED
        metadata = module.metadata
        others.append(
            Readiness(
                namespace=metadata.namespace,
                name=metadata.name,
                kernel="",
                architecture="",
                stage=stage,
                status=status,
                reason=reason,
            )
        )
    return tuple(others)


def architectures(modules: Sequence[Module], nodes: Sequence[Node]) -> tuple[str, ...]:
    """Returns the architectures for which the kernels of a release must be known."""
    return tuple(
        sorted({flavour.architecture for module in loading_modules(modules) for flavour in flavours(module, nodes)})
    )


def readiness_from(check: ImageCheck, verdict: ImageVerdict) -> Readiness:
    """Returns the readiness that follows from a verdict: Unknown if the image could still be built or signed."""
    if verdict.outcome is not ExaminationOutcome.FAILED:
        verified = verdict.outcome is ExaminationOutcome.VERIFIED
        status = Status.TRUE if verified else Status.UNKNOWN
        return _readiness(check, "Done" if verified else "Image", status, verdict.message)
    resolved = check.resolved
    if resolved.build is not None:
        signed = f", then {_signature_needs(resolved.sign)}" if resolved.sign else ""
        names = ", ".join(dict.fromkeys(secret.name for secret in resolved.build.secrets))
        config_map = f"{check.module.metadata.namespace}/{resolved.build.dockerfile_config_map.name}"
        needs = f"it would be built from the ConfigMap {config_map}{f' with the Secrets {names}' if names else ''}"
        stage, would = "Build", f"{needs}{signed}"
    elif resolved.sign is None:
        stage, would = "", ""
    elif not resolved.sign.unsigned_image:
        stage, would = "", NO_IMAGE_TO_SIGN
    else:
        stage, would = (
            "Sign",
            f"it would be made of {resolved.sign.unsigned_image} and {_signature_needs(resolved.sign)}",
        )
    if not stage:
        return _readiness(check, "Image", Status.FALSE, f"{verdict.message}{'; ' if would else ''}{would}")
    return _readiness(check, stage, Status.UNKNOWN, f"{verdict.message}; {would}, which was not tried")


def _check_of_flavour(module: Module, flavour: Flavour, toolkits: Toolkits) -> ImageCheck | Readiness:
    """Returns the image to check for Nodes of one kind of kernel, or why that is not known."""
    toolkit = toolkits.get(flavour.architecture) or ToolkitUnknown("its driver toolkit was not read", final=False)
    if isinstance(toolkit, ToolkitUnknown):
        status = Status.FALSE if toolkit.final else Status.UNKNOWN
        return _undecided_readiness(
            module, flavour.architecture, kernel="", status=status, why=f"the kernel is not known: {toolkit.why}"
        )
    # Kernels with large pages are separate builds, so the toolkit's own kernel would be the wrong one.
    if flavour.pages:
        why = (
            f"its nodes run kernels with {flavour.pages} pages, which the driver toolkit {toolkit.image} does not name"
        )
        return _undecided_readiness(module, flavour.architecture, kernel="", status=Status.UNKNOWN, why=why)
    if flavour.real_time and not toolkit.real_time:
        why = f"its nodes run real-time kernels, and the driver toolkit {toolkit.image} names none"
        return _undecided_readiness(module, flavour.architecture, kernel="", status=Status.FALSE, why=why)
    return _image_to_check(module, toolkit.chosen(real_time=flavour.real_time), flavour.architecture)


def _image_to_check(module: Module, kernel: str, architecture: str) -> ImageCheck | Readiness:
    """Returns the image to check for one kernel, or that the Module is invalid or has no mapping for it."""
    if faults := module_faults(module):
        return _undecided_readiness(
            module, architecture, kernel=kernel, status=Status.FALSE, why=invalid_module(faults)
        )
    try:
        resolved = resolve(module, kernel)
    except Unmapped as error:
        return _undecided_readiness(module, architecture, kernel=kernel, status=Status.FALSE, why=error.message)
    question = ImageQuestion(
        image=resolved.container_image,
        kernel=kernel,
        dir_name=resolved.dir_name,
        module_names=resolved.module_names,
        tls=resolved.registry_tls,
        namespace=module.metadata.namespace,
        secret=resolved.image_repo_secret,
        architectures=(architecture,) if architecture else (),
    )
    return ImageCheck(module, resolved, architecture, question)


def _split_work(work: Sequence[ImageCheck | Readiness]) -> ReadinessWork:
    return ReadinessWork(
        tuple(entry for entry in work if isinstance(entry, ImageCheck)),
        tuple(entry for entry in work if isinstance(entry, Readiness)),
    )


def _readiness(check: ImageCheck, stage: str, status: Status, reason: str) -> Readiness:
    """Returns the readiness of a Module for the kernel whose image was asked for."""
    metadata, resolved = check.module.metadata, check.resolved
    return Readiness(
        namespace=metadata.namespace,
        name=metadata.name,
        kernel=resolved.kernel,
        architecture=check.architecture,
        stage=stage,
        status=status,
        reason=reason,
        image=resolved.container_image,
    )


def _undecided_readiness(module: Module, architecture: str, kernel: str, status: Status, why: str) -> Readiness:
    return Readiness(
        namespace=module.metadata.namespace,
        name=module.metadata.name,
        kernel=kernel,
        architecture=architecture,
        stage="Image",
        status=status,
        reason=why,
    )


def _signature_needs(sign: Sign) -> str:
    return f"signed with the Secrets {sign.key_secret.name} and {sign.cert_secret.name}"
