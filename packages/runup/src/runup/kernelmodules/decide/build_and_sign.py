"""Decides on the build and the signature of one Module whose image is missing or lacks kernel modules. Pure.

The build comes first, then the signature of what was built. A failed run is replaced by another after
`FAILED_RUN_RETRY_S`, or at once if any of its inputs has changed.

A signature is a Dockerfile that copies files to a signing image, and back once signed. No text of a Module is part of a
shell command: the one script is constant, and file names and patterns are its arguments. A shell expands a pattern in
a variable to the files that match it, and evaluates nothing else that is in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from runup.api.kmm_v1beta1 import Build, BuildArg, Sign
from runup.kernelmodules.decide import build_jobs, module_state, readiness, texts
from runup.kernelmodules.decide.mapping import Resolved, as_tag
from runup.kernelmodules.decide.runs import MountedSecret, Purpose, Run, Runner, RunState, WantedRun

# Host, port and path with tag or digest (grammar of the container distribution project). A name that begins with a dash
# would be a flag of the program that it is given to.
_IMAGE = re.compile(
    r"(?:(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[A-Za-z0-9=_-]+)?"
)
# The most characters that the whole name of an image may have.
_MAX_NAME_LENGTH = 1024
# The most characters of a tag (OCI distribution specification).
LONGEST_TAG = 128


def tag_of(image: str) -> str:
    """Returns the tag of `image`, "" if it has none."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[2]


def is_image(text: str) -> bool:
    """Returns whether `text` is the name of an image and nothing else: no flag, no second word, no variable."""
    return len(text) <= _MAX_NAME_LENGTH and _IMAGE.fullmatch(text) is not None


def is_pinned(image: str) -> bool:
    """Returns whether the image is named by its digest, so that nothing can be pushed under this name."""
    return "@" in image


def unsigned_name(image: str, namespace: str, module: str) -> str:
    """Returns the name of the unsigned image: in the repository of `image`, with a tag that no other Module has."""
    tag = tag_of(image)
    name = image.removesuffix(f":{tag}") if tag else image
    unsigned_tag = "_".join(part for part in (tag, namespace, module, "kmm_unsigned") if part)
    return f"{name}:{fit_tag(unsigned_tag)}"


def fit_tag(tag: str) -> str:
    """Returns `tag`; if it exceeds 128 characters, its head with a part of its hash."""
    if len(tag) <= LONGEST_TAG:
        return tag
    digest = hashlib.sha256(tag.encode()).hexdigest()[:12]
    return f"{tag[: LONGEST_TAG - 13]}_{digest}"


KEY, CERT = "/run/secrets/key", "/run/secrets/cert"
_ROOT = "/signroot"
_GLOB = re.compile(r"[*?\[\]]")
# What paths and glob patterns are made of. A builder substitutes `$` in a COPY, so that it is not among them.
_PATH = re.compile(r"/[A-Za-z0-9/._+@:,=~%*?\[\]!^-]*")
# Without field separators the shell does not split what is in a variable. It passes on a pattern that matches nothing,
# and sign-file then says that there is no such file.
SCRIPT = f'set -e; IFS=; for pattern; do for file in $pattern; do "$0" sha256 {KEY}/key {CERT}/cert "$file"; done; done'


def why_not_signable(files: Iterable[str]) -> str:
    """Returns why these files cannot be signed, "" if they can."""
    files = tuple(files)
    if not files:
        return "filesToSign names no file"
    for file in files:
        if not file.startswith("/") or ".." in file.split("/"):
            return f"filesToSign: {file} is not an absolute path"
        if not _PATH.fullmatch(file):
            return (
                f"filesToSign: {file!r} has characters other than letters, digits and /._+@:,=~%-, "
                "or *?[]!^ of patterns"
            )
        if _path_to_copy(file) == "/" or file.count("/") < 2:
            return f"filesToSign: {file} would sign in the root of the image"
    return ""


def dockerfile(source: str, sign_image: str, sign_file: str, files: Sequence[str]) -> str:
    """Returns the Dockerfile that signs `files` of the image `source` with the program `sign_file` of `sign_image`.

    A file name may be a glob pattern, which represents all files that match. The caller has checked the names of the
    images (`image_names.is_image`) and the files (`unusable`).
    """
    places = tuple(dict.fromkeys(map(_path_to_copy, files)))
    command = ["/bin/sh", "-c", SCRIPT, sign_file, *(_ROOT + file for file in files)]
    return "\n".join(
        (
            f"FROM {source} AS source",
            f"FROM {sign_image} AS signing",
            "USER 0",
            *(f"COPY --from=source {json.dumps([place, _ROOT + place])}" for place in places),
            # As JSON, a RUN has arguments instead of a command for a shell to parse.
            f"RUN {json.dumps(command)}",
            "FROM source",
            *(f"COPY --from=signing {json.dumps([_ROOT + place, place])}" for place in places),
            "",
        )
    )


def _path_to_copy(file: str) -> str:
    """Returns the path to copy: the file, or the last folder above the first glob character."""
    glob = _GLOB.search(file)
    return file if glob is None else file[: glob.start()].rpartition("/")[0] + "/"


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
    question: module_state.BuildInputsQuestion
    make: Callable[[module_state.BuildInputs], WantedRun]


def build_and_sign(
    task: module_state.Task,
    observed: module_state.Observed,
    resolved: Resolved,
    missing: module_state.Image,
    image: module_state.Freshness,
    architectures: Sequence[str],
) -> module_state.ModuleState:
    """Returns the progress of build and signature of an image that is `missing`, or lacks modules.

    `architectures` are those that need the image.
    """
    try:
        build, sign = resolved.build, resolved.sign
        _check_image(resolved.container_image)
        # The signature takes the image that the build has pushed.
        if resolved.build is not None and resolved.sign is not None and not task.push:
            raise InvalidInputs(texts.UNPUSHED)
        if resolved.build is None and resolved.sign is not None and not resolved.sign.unsigned_image:
            raise InvalidInputs(texts.NO_IMAGE_TO_SIGN)
        if task.push and is_pinned(resolved.container_image):
            raise InvalidInputs(
                f"{resolved.container_image} is named by its digest, so nothing can be pushed there: name it by a tag"
            )
        if task.push and (why := _why_not_pushed(task, resolved.container_image, missing, architectures)):
            raise InvalidInputs(why)
        # Until the cluster has said whether it serves Builds, nothing is started.
        if observed.runner is None:
            return module_state.requeued_state(missing.reason, image)
        succeeded: tuple[Run, ...] = ()
        if build is not None:
            result = _run_or_progress(
                task, observed, step=_build_step(task, observed, resolved, build), image=image, succeeded=succeeded
            )
            if isinstance(result, module_state.ModuleState):
                return result
            succeeded = (result,)
            if sign is None:
                return module_state.ModuleState(
                    verified=True, stage="Done", reason=texts.built_text(pushed=task.push), kept_runs=succeeded
                )
        if sign is None:
            return module_state.requeued_state(missing.reason, image)
        result = _run_or_progress(
            task, observed, step=_sign_step(task, observed, resolved, sign), image=image, succeeded=succeeded
        )
        if isinstance(result, module_state.ModuleState):
            return result
        return module_state.ModuleState(
            verified=True, stage="Done", reason=texts.signed_text(pushed=task.push), kept_runs=(*succeeded, result)
        )
    except InvalidInputs as error:
        purpose: Purpose = "build" if resolved.sign is None else "sign"
        # Nothing was tried, so the reason also says what the image lacks.
        return module_state.requeued_state(f"{_failed(task, purpose, str(error))} ({missing.reason})", image)


def _why_not_pushed(
    task: module_state.Task, target: str, image: module_state.Image, architectures: Sequence[str]
) -> str:
    """Returns why a push to `target` would harm other nodes, "" if it would not.

    A name with the kernel in it is only for that kernel, so nodes with other kernels do not use it. Nodes of several
    architectures do if the kernel's name has none.
    """
    if re.search(rf"(?<![A-Za-z0-9]){re.escape(as_tag(task.kernel))}(?![A-Za-z0-9])", target):
        return texts.replaced_index(target) if len(architectures) > 1 and image.kernels is None else ""
    other_kernels = None if image.kernels is None else image.kernels - {task.kernel}
    if other_kernels is None or other_kernels:
        return texts.overwritten(target, other_kernels)
    return texts.pushed_twice(target, *task.others[target]) if target in task.others else ""


def _run_or_progress(
    task: module_state.Task,
    observed: module_state.Observed,
    step: _Step,
    image: module_state.Freshness,
    succeeded: tuple[Run, ...],
) -> module_state.ModuleState | Run:
    """Returns the run of `step` if it has succeeded, else its progress."""
    stage, waiting = _STAGES[step.purpose], _WAITING[step.purpose]
    answer = observed.answers.of_material(step.question)
    if answer is None:
        return module_state.ModuleState(
            verified=False,
            stage=stage,
            reason=waiting,
            open_questions=(*image.questions_to_repeat, step.question),
            kept_runs=succeeded,
            recheck_after_s=image.recheck_after_s,
        )
    material, at = answer
    fresh = module_state.freshness(step.question, at, task.now)
    try:
        wanted_run = step.make(material)
    except InvalidInputs as error:
        return module_state.with_more(
            module_state.requeued_state(_failed(task, step.purpose, str(error)), image), fresh, succeeded
        )
    run = next((run for run in observed.runs if (run.key, run.owner_uid) == (wanted_run.key, task.uid)), None)
    if run is not None and run.state is RunState.SUCCEEDED and not run.deleting:
        return run
    return module_state.with_more(
        _progress_of(task, observed, purpose=step.purpose, wanted_run=wanted_run, run=run, image=image),
        fresh,
        succeeded,
    )


def _progress_of(
    task: module_state.Task,
    observed: module_state.Observed,
    purpose: Purpose,
    wanted_run: WantedRun,
    run: Run | None,
    image: module_state.Freshness,
) -> module_state.ModuleState:
    """Returns the progress of a run that has not succeeded: to be started, waiting, running or failed."""
    stage, waiting = _STAGES[purpose], _WAITING[purpose]
    if run is None and wanted_run.key in observed.refused:
        return module_state.requeued_state(_failed(task, purpose, observed.refused[wanted_run.key]), image)
    if run is None:
        return module_state.ModuleState(
            verified=False,
            stage=stage,
            reason=waiting,
            run_to_start=wanted_run,
            deletes_other_runs=True,
            recheck_after_s=readiness.RECHECK_INTERVAL_S,
        )
    if run.deleting or run.state is RunState.RUNNING:
        # The detail is what the kubelet reports while the run cannot start: an administrator has to fix that.
        reason = f"{waiting}: {run.detail}" if run.detail else waiting
        return module_state.ModuleState(
            verified=False,
            stage=stage,
            reason=reason,
            kept_runs=(run,),
            deletes_other_runs=True,
            recheck_after_s=readiness.RECHECK_INTERVAL_S,
        )
    since_s = (task.now - run.ended_at).total_seconds() if run.ended_at else 0.0
    if since_s >= FAILED_RUN_RETRY_S:
        # Nothing is kept, so this pass deletes the failed run and the next one starts it again.
        return module_state.ModuleState(
            verified=False,
            stage=stage,
            reason=waiting,
            deletes_other_runs=True,
            recheck_after_s=readiness.RECHECK_INTERVAL_S,
        )
    retry = module_state.requeued_state(_failed(task, purpose, f"{purpose} failed: {run.detail}"), image)
    return replace(
        module_state.with_more(retry, module_state.Freshness((), FAILED_RUN_RETRY_S - since_s), (run,)),
        deletes_other_runs=True,
    )


def _failed(task: module_state.Task, purpose: Purpose, error: str) -> str:
    say = texts.build_failed if purpose == "build" else texts.sign_failed
    return say(task.module.metadata.name, task.kernel, error)


def _build_step(task: module_state.Task, observed: module_state.Observed, resolved: Resolved, build: Build) -> _Step:
    """Returns the step that builds the image; if it must be signed, under a temporary name."""
    names = tuple(dict.fromkeys(secret.name for secret in build.secrets))
    metadata = task.module.metadata
    # An image that is still to be signed is pushed under a temporary name.
    target = unsigned_name(resolved.container_image, metadata.namespace, metadata.name)
    target = resolved.container_image if resolved.sign is None else target

    def wanted_build(material: module_state.BuildInputs) -> WantedRun:
        """Returns the run of the build. Raises InvalidInputs if what it needs cannot be used."""
        if material.problem:
            raise InvalidInputs(material.problem)
        if len(material.dockerfile.encode()) > build_jobs.LARGEST_DOCKERFILE:
            raise InvalidInputs(f"the Dockerfile has more than {build_jobs.LARGEST_DOCKERFILE // 1024} KiB")
        if observed.runner is Runner.JOBS and not observed.builder.image:
            raise InvalidInputs("no image with buildah is known to the operator: set its flag --build-image")
        dockerfile = material.dockerfile
        # The Module's arguments are overridden by ours (internal/buildsign/resource/common.go).
        # (internal/buildsign/resource/common.go).
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
        return _wanted_run(
            task,
            resolved,
            purpose="build",
            dockerfile=dockerfile,
            arguments=tuple(
                BuildArg(name=name, value=value) for name, value in {**spec_arguments, **own_arguments}.items()
            ),
            secrets=tuple(MountedSecret(name, f"/run/secrets/{name}") for name in names),
            target=target if task.push else "",
            pull_tls=build.base_image_registry_tls,
            selector=tuple(sorted((build.selector or resolved.selector).items())),
            versions=material.versions,
        )

    secrets = (*((name, "") for name in names), *_registry_secret(resolved))
    return _Step(
        "build",
        module_state.BuildInputsQuestion(metadata.namespace, build.dockerfile_config_map.name, secrets),
        wanted_build,
    )


def _sign_step(task: module_state.Task, observed: module_state.Observed, resolved: Resolved, sign: Sign) -> _Step:
    """Returns the step that signs the image that was built, or the one that the Module names."""
    metadata = task.module.metadata
    built = resolved.build is not None
    unsigned = unsigned_name(resolved.container_image, metadata.namespace, metadata.name)
    source = unsigned if built else sign.unsigned_image
    mounted = (MountedSecret(sign.key_secret.name, KEY), MountedSecret(sign.cert_secret.name, CERT))

    def wanted_signature(material: module_state.BuildInputs) -> WantedRun:
        """Returns the run of the signature. Raises InvalidInputs if what it needs cannot be used."""
        if material.problem:
            raise InvalidInputs(material.problem)
        image, program = _signer(task, observed)
        _check_image(image)
        _check_image(source)
        if problem := why_not_signable(sign.files_to_sign):
            raise InvalidInputs(problem)
        return _wanted_run(
            task,
            resolved,
            purpose="sign",
            dockerfile=dockerfile(source, image, program, sign.files_to_sign),
            secrets=mounted,
            target=resolved.container_image if task.push else "",
            pull_tls=resolved.registry_tls if built else sign.unsigned_image_registry_tls,
            selector=tuple(sorted(resolved.selector.items())),
            versions=material.versions,
        )

    secrets = ((sign.key_secret.name, "key"), (sign.cert_secret.name, "cert"), *_registry_secret(resolved))
    return _Step("sign", module_state.BuildInputsQuestion(metadata.namespace, "", secrets), wanted_signature)


def _registry_secret(resolved: Resolved) -> tuple[tuple[str, str], ...]:
    return ((resolved.image_repo_secret, ".dockerconfigjson"),) if resolved.image_repo_secret else ()


def _wanted_run(task: module_state.Task, resolved: Resolved, **purpose_fields: object) -> WantedRun:
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


def _signer(task: module_state.Task, observed: module_state.Observed) -> tuple[str, str]:
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
    if not is_image(image):
        raise InvalidInputs(f"{image!r} is not the name of an image")
