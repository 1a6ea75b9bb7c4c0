"""Decides on the build and the signature of one Module whose image is missing or lacks kernel modules. Pure.

The build comes first, then the signature of what was built. A failed run is replaced by another after
`FAILED_RUN_RETRY_S`, or at once if any of its inputs has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from runup.api.kmm_v1beta1 import Build, BuildArg, Sign
from runup.kernelmodules.decide import build_jobs, image_names, signing, texts
from runup.kernelmodules.decide.external_queries import BuildInputs, BuildInputsQuestion
from runup.kernelmodules.decide.mapping import Resolved
from runup.kernelmodules.decide.module_state import (
    Freshness,
    ModuleState,
    Task,
    freshness,
    requeued_state,
    with_more,
)
from runup.kernelmodules.decide.observed import Observed
from runup.kernelmodules.decide.readiness import RECHECK_INTERVAL_S
from runup.kernelmodules.decide.runs import MountedSecret, Purpose, Run, Runner, RunState, WantedRun

# Seconds until a failed run is tried again, so that a transient failure needs no administrator.
FAILED_RUN_RETRY_S = 1800.0
_STAGES = {"build": "Build", "sign": "Sign"}
_WAITING = {"build": texts.WAITING_BUILD, "sign": texts.WAITING_SIGN}
_TOOLKIT_VARIABLE = "DTK_AUTO"


class InvalidInputs(ValueError):
    """Raised if a run cannot be made from its inputs; the message says why."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step, build or signature: the question for its inputs, and the function that makes a run from the answer."""

    purpose: Purpose
    question: BuildInputsQuestion
    make: Callable[[BuildInputs], WantedRun]


def build_and_sign(task: Task, observed: Observed, resolved: Resolved, missing: str, image: Freshness) -> ModuleState:
    """Returns the progress of build and signature; `missing` is what the image lacks."""
    try:
        return _try_build_and_sign(task, observed, resolved, missing, image)
    except InvalidInputs as error:
        purpose: Purpose = "build" if resolved.sign is None else "sign"
        # Nothing was tried, so the reason also says what the image lacks.
        return requeued_state(f"{_failed(task, purpose, str(error))} ({missing})", image)


def _try_build_and_sign(
    task: Task, observed: Observed, resolved: Resolved, missing: str, image: Freshness
) -> ModuleState:
    """Returns the progress: of the build, then of the signature. Raises InvalidInputs."""
    build, sign = resolved.build, resolved.sign
    _check_buildable(task, resolved)
    # Until the cluster has said whether it serves Builds, nothing is started.
    if observed.runner is None:
        return requeued_state(missing, image)
    succeeded: tuple[Run, ...] = ()
    if build is not None:
        result = _run_or_progress(task, observed, _build_step(task, observed, resolved, build), image, succeeded)
        if isinstance(result, ModuleState):
            return result
        succeeded = (result,)
        if sign is None:
            return ModuleState(True, "Done", texts.built_text(pushed=task.push), kept_runs=succeeded)
    if sign is None:
        return requeued_state(missing, image)
    result = _run_or_progress(task, observed, _sign_step(task, observed, resolved, sign), image, succeeded)
    if isinstance(result, ModuleState):
        return result
    return ModuleState(True, "Done", texts.signed_text(pushed=task.push), kept_runs=(*succeeded, result))


def _check_buildable(task: Task, resolved: Resolved) -> None:
    """Raises InvalidInputs if it is clear before anything runs that the build or the signature cannot succeed."""
    _check_image(resolved.container_image)
    # The signature takes the image that the build has pushed.
    if resolved.build is not None and resolved.sign is not None and not task.push:
        raise InvalidInputs(texts.UNPUSHED)
    if resolved.build is None and resolved.sign is not None and not resolved.sign.unsigned_image:
        raise InvalidInputs(texts.NO_IMAGE_TO_SIGN)
    if task.push and image_names.is_pinned(resolved.container_image):
        raise InvalidInputs(
            f"{resolved.container_image} is named by its digest, so nothing can be pushed there: name it by a tag"
        )


def _run_or_progress(
    task: Task, observed: Observed, step: _Step, image: Freshness, succeeded: tuple[Run, ...]
) -> ModuleState | Run:
    """Returns the run of `step` if it has succeeded, else its progress."""
    stage, waiting = _STAGES[step.purpose], _WAITING[step.purpose]
    answer = observed.answers.of_material(step.question)
    if answer is None:
        return ModuleState(
            False,
            stage,
            waiting,
            open_questions=(*image.questions_to_repeat, step.question),
            kept_runs=succeeded,
            recheck_after_s=image.recheck_after_s,
        )
    material, at = answer
    fresh = freshness(step.question, at, task.now)
    try:
        wanted_run = step.make(material)
    except InvalidInputs as error:
        return with_more(requeued_state(_failed(task, step.purpose, str(error)), image), fresh, succeeded)
    run = next((run for run in observed.runs if (run.key, run.owner_uid) == (wanted_run.key, task.uid)), None)
    if run is not None and run.state is RunState.SUCCEEDED and not run.deleting:
        return run
    return with_more(_progress_of(task, observed, step.purpose, wanted_run, run, image), fresh, succeeded)


def _progress_of(
    task: Task, observed: Observed, purpose: Purpose, wanted_run: WantedRun, run: Run | None, image: Freshness
) -> ModuleState:
    """Returns the progress of a run that has not succeeded: to be started, waiting, running or failed."""
    stage, waiting = _STAGES[purpose], _WAITING[purpose]
    if run is None and wanted_run.key in observed.refused:
        return requeued_state(_failed(task, purpose, observed.refused[wanted_run.key]), image)
    if run is None:
        return ModuleState(
            False, stage, waiting, run_to_start=wanted_run, deletes_other_runs=True, recheck_after_s=RECHECK_INTERVAL_S
        )
    if run.deleting or run.state is RunState.RUNNING:
        # The detail is what the kubelet reports while the run cannot start: an administrator has to fix that.
        reason = f"{waiting}: {run.detail}" if run.detail else waiting
        return ModuleState(
            False, stage, reason, kept_runs=(run,), deletes_other_runs=True, recheck_after_s=RECHECK_INTERVAL_S
        )
    since_s = (task.now - run.ended_at).total_seconds() if run.ended_at else 0.0
    if since_s >= FAILED_RUN_RETRY_S:
        # Nothing is kept, so this pass deletes the failed run and the next one starts it again.
        return ModuleState(False, stage, waiting, deletes_other_runs=True, recheck_after_s=RECHECK_INTERVAL_S)
    retry = requeued_state(_failed(task, purpose, f"{purpose} failed: {run.detail}"), image)
    return replace(with_more(retry, Freshness((), FAILED_RUN_RETRY_S - since_s), (run,)), deletes_other_runs=True)


def _failed(task: Task, purpose: Purpose, error: str) -> str:
    say = texts.build_failed if purpose == "build" else texts.sign_failed
    return say(task.module.metadata.name, task.kernel, error)


def _build_step(task: Task, observed: Observed, resolved: Resolved, build: Build) -> _Step:
    """Returns the step that builds the image; if it is to be signed, under a temporary name."""
    names = tuple(dict.fromkeys(secret.name for secret in build.secrets))
    metadata = task.module.metadata
    # An image that is still to be signed is pushed under a temporary name.
    target = image_names.unsigned_name(resolved.container_image, metadata.namespace, metadata.name)
    target = resolved.container_image if resolved.sign is None else target

    def wanted_build(material: BuildInputs) -> WantedRun:
        """Returns the run of the build. Raises InvalidInputs if what it needs cannot be used."""
        dockerfile = _usable_dockerfile(material, observed)
        return _wanted_run(
            task,
            resolved,
            purpose="build",
            dockerfile=dockerfile,
            arguments=_arguments(task, build, dockerfile),
            secrets=tuple(MountedSecret(name, f"/run/secrets/{name}") for name in names),
            target=target if task.push else "",
            pull_tls=build.base_image_registry_tls,
            selector=tuple(sorted((build.selector or resolved.selector).items())),
            versions=material.versions,
        )

    secrets = (*((name, "") for name in names), *_registry_secret(resolved))
    return _Step(
        "build", BuildInputsQuestion(metadata.namespace, build.dockerfile_config_map.name, secrets), wanted_build
    )


def _sign_step(task: Task, observed: Observed, resolved: Resolved, sign: Sign) -> _Step:
    """Returns the step that signs the image that was built, or the one that the Module names."""
    metadata = task.module.metadata
    built = resolved.build is not None
    unsigned = image_names.unsigned_name(resolved.container_image, metadata.namespace, metadata.name)
    source = unsigned if built else sign.unsigned_image
    mounted = (MountedSecret(sign.key_secret.name, signing.KEY), MountedSecret(sign.cert_secret.name, signing.CERT))

    def wanted_signature(material: BuildInputs) -> WantedRun:
        """Returns the run of the signature. Raises InvalidInputs if what it needs cannot be used."""
        if material.problem:
            raise InvalidInputs(material.problem)
        image, program = _signer(task, observed)
        _check_image(image)
        _check_image(source)
        if problem := signing.why_not_signable(sign.files_to_sign):
            raise InvalidInputs(problem)
        return _wanted_run(
            task,
            resolved,
            purpose="sign",
            dockerfile=signing.dockerfile(source, image, program, sign.files_to_sign),
            secrets=mounted,
            target=resolved.container_image if task.push else "",
            pull_tls=resolved.registry_tls if built else sign.unsigned_image_registry_tls,
            selector=tuple(sorted(resolved.selector.items())),
            versions=material.versions,
        )

    secrets = ((sign.key_secret.name, "key"), (sign.cert_secret.name, "cert"), *_registry_secret(resolved))
    return _Step("sign", BuildInputsQuestion(metadata.namespace, "", secrets), wanted_signature)


def _registry_secret(resolved: Resolved) -> tuple[tuple[str, str], ...]:
    return ((resolved.image_repo_secret, ".dockerconfigjson"),) if resolved.image_repo_secret else ()


def _wanted_run(task: Task, resolved: Resolved, **purpose_fields: object) -> WantedRun:
    """Returns a run for the task's Module and kernel.

    `purpose_fields` are the other fields of WantedRun, which differ between a build and a signature.
    """
    return WantedRun(
        validation=task.validation,
        validation_uid=task.uid,
        namespace=task.module.metadata.namespace,
        module=task.module.metadata.name,
        kernel=task.kernel,
        auth_secret=resolved.image_repo_secret,
        push_tls=resolved.registry_tls,
        **purpose_fields,  # type: ignore[arg-type]
    )


def _usable_dockerfile(material: BuildInputs, observed: Observed) -> str:
    """Returns the Dockerfile; raises InvalidInputs if it is missing or too large, or if no builder image is set."""
    if material.problem:
        raise InvalidInputs(material.problem)
    if len(material.dockerfile.encode()) > build_jobs.LARGEST_DOCKERFILE:
        raise InvalidInputs(f"the Dockerfile has more than {build_jobs.LARGEST_DOCKERFILE // 1024} KiB")
    if observed.runner is Runner.JOBS and not observed.builder.image:
        raise InvalidInputs("no image with buildah is known to the operator: set its flag --build-image")
    return material.dockerfile


def _arguments(task: Task, build: Build, dockerfile: str) -> tuple[BuildArg, ...]:
    """Returns the build arguments: the Module's, overridden by ours (internal/buildsign/resource/common.go).

    Raises InvalidInputs if the Dockerfile uses `DTK_AUTO` and the driver toolkit is not known.
    """
    metadata = task.module.metadata
    own_arguments = {
        "KERNEL_VERSION": task.kernel,
        "KERNEL_FULL_VERSION": task.kernel,
        "MOD_NAME": metadata.name,
        "MOD_NAMESPACE": metadata.namespace,
    }
    if _TOOLKIT_VARIABLE in dockerfile:
        if not task.toolkit:
            raise InvalidInputs(texts.no_toolkit(task.kernel))
        own_arguments[_TOOLKIT_VARIABLE] = task.toolkit
    spec_arguments = {argument.name: argument.value for argument in build.build_args}
    return tuple(BuildArg(name=name, value=value) for name, value in {**spec_arguments, **own_arguments}.items())


def _signer(task: Task, observed: Observed) -> tuple[str, str]:
    """Returns the image with `sign-file` and its path: the operator's `--sign-image`, else the driver toolkit.

    Raises InvalidInputs if there is neither, or if Jobs have no image with buildah.
    """
    builder = observed.builder
    if observed.runner is Runner.JOBS and not builder.image:
        raise InvalidInputs("no image with buildah is known to the operator: set its flag --build-image")
    if builder.sign_image:
        return builder.sign_image, builder.sign_file
    if task.toolkit:
        return task.toolkit, f"/usr/src/kernels/{task.kernel}/scripts/sign-file"
    raise InvalidInputs("no image with sign-file is known to the operator: set its flag --sign-image")


def _check_image(image: str) -> None:
    """Raises InvalidInputs if `image`, which becomes part of a Dockerfile or an argument, is not an image's name."""
    if not image_names.is_image(image):
        raise InvalidInputs(f"{image!r} is not the name of an image")
