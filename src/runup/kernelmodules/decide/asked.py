"""What a validation asks outside of its caches, as values, and what came back.

Equal questions have one answer, whichever Module or validation asks. The shell answers them, so many at a time, and
what it does not know yet is simply not there: `None` is "not answered yet", never "no".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from runup.api.kmm_v1beta1 import TLSOptions, ValidatedKernel
from runup.kernelmodules.decide.flavours import Flavour


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """Is `image` there, and does it have these modules for this kernel?

    `secret` is the pull secret in `namespace`, empty for none; without `architectures` any will do.
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
    """Whether the image was found and has the modules; `reason` is why not."""

    verified: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseQuestion:
    """Which kernels of these kinds does this release bring? Without any, the usual one for amd64."""

    image: str
    flavours: tuple[Flavour, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernels:
    """One kernel a kind; `problem` is why they are not known, and then there is none."""

    kernels: tuple[ValidatedKernel, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MaterialQuestion:
    """What is a build, or a signature, made of? `config_map` is empty for a signature.

    `secrets` are names, each with the key that the Secret must have, if any.
    """

    namespace: str
    config_map: str = ""
    secrets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """The Dockerfile, and a version of every secret, which changes when the secret does; `problem` is what lacks."""

    dockerfile: str = ""
    versions: tuple[str, ...] = ()
    problem: str = ""


Question = ImageQuestion | ReleaseQuestion | MaterialQuestion
Found = Image | Kernels | Material


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and when."""

    found: Found
    at: datetime


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known by now, by question. `of_*` are None where it is not known yet."""

    known: Mapping[Question, Answer] = field(default_factory=dict)

    def of_image(self, question: ImageQuestion) -> tuple[Image, datetime] | None:
        """What came of the question, and when."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Image) else None

    def of_release(self, question: ReleaseQuestion) -> tuple[Kernels, datetime] | None:
        """What came of the question, and when."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Kernels) else None

    def of_material(self, question: MaterialQuestion) -> tuple[Material, datetime] | None:
        """What came of the question, and when."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Material) else None
