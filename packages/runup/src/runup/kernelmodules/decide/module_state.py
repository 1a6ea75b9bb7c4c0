"""The frozen input of one decision (`Observed`, `Task`) and its result for one Module (`ModuleState`). Pure.

Part of the input are the answers of registries and of the API server: a pass puts questions, and others answer them.
Equal questions have one answer, whichever Module or validation asks. An answer of None means "not answered yet", never
"no".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName
from runup.api.kmm_v1beta1 import Module, TLSOptions, ValidatedKernel
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.readiness import RECHECK_INTERVAL_S
from runup.kernelmodules.decide.runs import Run, Runner, WantedRun
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
    """The answer whether an image exists and has the modules; `reason` is why not.

    `kernels` are those for which it has any module, None if that could not be determined.
    """

    verified: bool
    reason: str = ""
    kernels: frozenset[str] | None = frozenset()


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
    """The Dockerfile and a hash of every Secret's content; `problem` names missing inputs."""

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
        """Returns the answer and its time, or None yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Image) else None

    def of_release(self, question: ReleaseQuestion) -> tuple[Kernels, datetime] | None:
        """Returns the answer and its time, or None yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, Kernels) else None

    def of_material(self, question: BuildInputsQuestion) -> tuple[BuildInputs, datetime] | None:
        """Returns the answer and its time, or None yet."""
        answer = self.known.get(question)
        return (answer.found, answer.at) if answer and isinstance(answer.found, BuildInputs) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The objects of one name: a PreflightValidationOCP and the PreflightValidation it created, or either alone.

    `modules` is None while they are not listed, and `modules_problem` says why. `runner` is None until it is known
    whether the cluster has OpenShift Builds. `refused` holds the API server's messages about runs that it rejected.
    """

    name: str
    ocp: PreflightValidationOCP | None = None
    validation: PreflightValidation | None = None
    # Every PreflightValidation and PreflightValidationOCP by name: a release for several architectures has several.
    validations: Mapping[str, PreflightValidation] = field(default_factory=dict)
    parents: Mapping[str, PreflightValidationOCP] = field(default_factory=dict)
    modules: tuple[Module, ...] | None = ()
    unreadable: tuple[Undecodable, ...] = ()
    modules_problem: str = ""
    # Why there may be more Modules than are listed: a Module that is absent need not be deleted then.
    incomplete: str = ""
    # None if they could not be listed.
    nodes: tuple[Node, ...] | None = ()
    runs: tuple[Run, ...] = ()
    runner: Runner | None = Runner.JOBS
    refused: Mapping[NamespacedName, str] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    builder: Builder = field(default_factory=Builder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A Module and the kernel to examine it for; `toolkit` is the driver toolkit's image, empty if it is not known.

    `validation` and `uid` are name and UID of the PreflightValidation. `others` are the images that validations of
    other kernels push, each with the name of such a validation and its kernel.
    """

    module: Module
    kernel: str
    toolkit: str
    push: bool
    validation: str
    uid: str
    now: datetime
    others: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleState:
    """The result of examining a Module, and what must be done for it.

    The answers to `open_questions` are missing or old. With `deletes_other_runs` the Module's runs besides `kept_runs`
    are deleted: they have other inputs, or are an older attempt. With `keeps_previous_status` nothing is known yet.
    """

    verified: bool
    stage: str
    reason: str
    open_questions: tuple[Question, ...] = ()
    kept_runs: tuple[Run, ...] = ()
    run_to_start: WantedRun | None = None
    deletes_other_runs: bool = False
    recheck_after_s: float | None = None
    keeps_previous_status: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of an answer. If it is old, `questions_to_repeat` has its question.

    An old answer counts until there is a new one.
    """

    questions_to_repeat: tuple[Question, ...] = ()
    recheck_after_s: float = RECHECK_INTERVAL_S


def freshness(question: Question, at: datetime, now: datetime) -> Freshness:
    """Returns the freshness at `now` of an answer that was given `at`."""
    remaining_s = RECHECK_INTERVAL_S - (now - at).total_seconds()
    return Freshness((question,)) if remaining_s <= 0 else Freshness((), min(remaining_s, RECHECK_INTERVAL_S))


def requeued_state(reason: str, fresh: Freshness) -> ModuleState:
    """Returns the result of a failure that is tried again."""
    return ModuleState(
        verified=False,
        stage="Requeued",
        reason=reason,
        open_questions=fresh.questions_to_repeat,
        recheck_after_s=fresh.recheck_after_s,
    )


def with_more(state: ModuleState, fresh: Freshness, more_runs: tuple[Run, ...] = ()) -> ModuleState:
    """Returns `state` with `fresh`, another answer that it depends on, and with `more_runs` to keep."""
    waits = [delay_s for delay_s in (state.recheck_after_s, fresh.recheck_after_s) if delay_s is not None]
    return replace(
        state,
        open_questions=(*state.open_questions, *fresh.questions_to_repeat),
        kept_runs=(*state.kept_runs, *more_runs),
        recheck_after_s=None if not waits else min(waits),
    )
