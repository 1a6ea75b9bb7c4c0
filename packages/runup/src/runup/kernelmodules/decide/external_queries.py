"""Questions of a validation that its caches cannot answer, and the answers to them, as values.

Equal questions have one answer, whichever Module or validation asks. `control` answers them, a limited number at a
time. An answer of `None` means "not answered yet", never "no".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from runup.api.kmm_v1beta1 import TLSOptions, ValidatedKernel
from runup.kernelmodules.decide.toolkit import Flavour

# The kind of the account whose pull secrets count for a Module that names none.
BUILDER_ACCOUNT = "ServiceAccount"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageQuestion:
    """The question whether `image` exists and has these modules for this kernel.

    `secret` is the pull secret in `namespace`, empty for none. Without `architectures`, any architecture counts.
    """

    image: str
    kernel: str
    dir_name: str
    module_names: tuple[str, ...]
    tls: TLSOptions
    namespace: str
    secret: str = ""
    architectures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """The answer whether an image exists and has the modules; `reason` is why not."""

    verified: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseQuestion:
    """The question which kernels of these flavours a release has. Without flavours, the standard kernel for amd64."""

    image: str
    flavours: tuple[Flavour, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of a release, one for each flavour; empty if `problem` says why they are not known."""

    kernels: tuple[ValidatedKernel, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BuildInputsQuestion:
    """The question for the inputs of a build or a signature. `config_map` is empty for a signature.

    `secrets` are names, each with the key that the Secret must have, if any.
    """

    namespace: str
    config_map: str = ""
    secrets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """The Dockerfile and, for every Secret, a hash that changes with its content; `problem` is what is missing."""

    dockerfile: str = ""
    versions: tuple[str, ...] = ()
    problem: str = ""


Question = ImageQuestion | ReleaseQuestion | BuildInputsQuestion
AnswerValue = Image | Kernels | BuildInputs


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its time."""

    found: AnswerValue
    at: datetime


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that are known by now, by question. The `of_*` methods return None for a question without answer."""

    known: Mapping[Question, Answer] = field(default_factory=dict)

    def of_image(self, question: ImageQuestion) -> tuple[Image, datetime] | None:
        """Returns the answer and its time, None if there is none yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Image) else None

    def of_release(self, question: ReleaseQuestion) -> tuple[Kernels, datetime] | None:
        """Returns the answer and its time, None if there is none yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Kernels) else None

    def of_material(self, question: BuildInputsQuestion) -> tuple[BuildInputs, datetime] | None:
        """Returns the answer and its time, None if there is none yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, BuildInputs) else None
