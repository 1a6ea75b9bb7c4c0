"""Build and signature of one Module whose image is not there, or not as it should be. Pure.

Build first, then signature; what the build makes is what is signed. A run that failed gets another after
`ANOTHER_RUN_S`, or at once when anything that it is made of has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from runup.api.kmm_v1beta1 import Build, BuildArg, Sign
from runup.kernelmodules.decide import images, jobs, signing, texts
from runup.kernelmodules.decide.asked import Material, MaterialQuestion
from runup.kernelmodules.decide.looked import AGAIN_S, Freshness, Looked, Task, freshness, requeued, with_more
from runup.kernelmodules.decide.mapping import Resolved
from runup.kernelmodules.decide.observed import Observed
from runup.kernelmodules.decide.runs import Mounted, Purpose, Run, Runner, State, Wanted

# A build that failed for a reason of the moment should not need a person.
ANOTHER_RUN_S = 1800.0
_STAGES = {"build": "Build", "sign": "Sign"}
_WAITING = {"build": texts.WAITING_BUILD, "sign": texts.WAITING_SIGN}
_TOOLKIT_VARIABLE = "DTK_AUTO"


class Impossible(ValueError):
    """The run cannot be made from what it is to be made of; the message says why."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One of the two runs: what it is made of is asked first."""

    purpose: Purpose
    question: MaterialQuestion
    make: Callable[[Material], Wanted]


def make(task: Task, observed: Observed, resolved: Resolved, missing: str, image: Freshness) -> Looked:
    """How far build and signature are; `missing` is what the image lacks."""
    try:
        return _make(task, observed, resolved, missing, image)
    except Impossible as error:
        purpose: Purpose = "build" if resolved.sign is None else "sign"
        # Nothing was tried, so what the image lacks is the news.
        return requeued(f"{_failed(task, purpose, str(error))} ({missing})", image)


def _make(task: Task, observed: Observed, resolved: Resolved, missing: str, image: Freshness) -> Looked:
    build, sign = resolved.build, resolved.sign
    _check(task, resolved)
    if observed.runner is None:
        return requeued(missing, image)
    done: tuple[Run, ...] = ()
    if build is not None:
        made = _look(task, observed, _building(task, observed, resolved, build), image, done)
        if isinstance(made, Looked):
            return made
        done = (made,)
        if sign is None:
            return Looked(True, "Done", texts.built(pushed=task.push), keep=done)
    if sign is None:
        return requeued(missing, image)
    made = _look(task, observed, _signing(task, observed, resolved, sign), image, done)
    if isinstance(made, Looked):
        return made
    return Looked(True, "Done", texts.signed(pushed=task.push), keep=(*done, made))


def _check(task: Task, resolved: Resolved) -> None:
    """What can be said before anything runs; raises Impossible."""
    if resolved.build is not None and resolved.sign is not None and not task.push:
        raise Impossible(texts.UNPUSHED)
    if resolved.build is None and resolved.sign is not None and not resolved.sign.unsigned_image:
        raise Impossible(texts.NO_IMAGE_TO_SIGN)
    if task.push and images.is_pinned(resolved.container_image):
        raise Impossible(
            f"{resolved.container_image} is named by its digest, so nothing can be pushed there: name it by a tag"
        )


def _look(task: Task, observed: Observed, step: _Step, image: Freshness, done: tuple[Run, ...]) -> Looked | Run:
    """The run when it has succeeded, else how far it is."""
    stage, waiting = _STAGES[step.purpose], _WAITING[step.purpose]
    answer = observed.answers.of_material(step.question)
    if answer is None:
        return Looked(False, stage, waiting, open=(*image.again, step.question), keep=done, again_s=image.wait_s)
    material, at = answer
    fresh = freshness(step.question, at, task.now)
    try:
        wanted = step.make(material)
    except Impossible as error:
        return with_more(requeued(_failed(task, step.purpose, str(error)), image), fresh, done)
    run = next((each for each in observed.runs if (each.key, each.owner_uid) == (wanted.key, task.uid)), None)
    if run is not None and run.state is State.SUCCEEDED and not run.deleting:
        return run
    return with_more(_unfinished(task, observed, step.purpose, wanted, run, image), fresh, done)


def _unfinished(
    task: Task, observed: Observed, purpose: Purpose, wanted: Wanted, run: Run | None, image: Freshness
) -> Looked:
    stage, waiting = _STAGES[purpose], _WAITING[purpose]
    if run is None and wanted.key in observed.refused:
        return requeued(_failed(task, purpose, observed.refused[wanted.key]), image)
    if run is None:
        return Looked(False, stage, waiting, start=wanted, settled=True, again_s=AGAIN_S)
    if run.deleting or run.state is State.RUNNING:
        # What keeps it from beginning is the kubelet's to say, and the administrator's to mend.
        reason = f"{waiting}: {run.detail}" if run.detail else waiting
        return Looked(False, stage, reason, keep=(run,), settled=True, again_s=AGAIN_S)
    since_s = (task.now - run.ended_at).total_seconds() if run.ended_at else 0.0
    if since_s >= ANOTHER_RUN_S:
        return Looked(False, stage, waiting, settled=True, again_s=AGAIN_S)
    failed = requeued(_failed(task, purpose, f"{purpose} failed: {run.detail}"), image)
    return replace(with_more(failed, Freshness((), ANOTHER_RUN_S - since_s), (run,)), settled=True)


def _failed(task: Task, purpose: Purpose, error: str) -> str:
    say = texts.build_failed if purpose == "build" else texts.sign_failed
    return say(task.module.metadata.name, task.kernel, error)


def _building(task: Task, observed: Observed, resolved: Resolved, build: Build) -> _Step:
    names = tuple(dict.fromkeys(each.name for each in build.secrets))
    metadata = task.module.metadata
    target = images.unsigned(resolved.container_image, metadata.namespace, metadata.name)
    target = resolved.container_image if resolved.sign is None else target

    def made(material: Material) -> Wanted:
        dockerfile = _usable(material, observed)
        return _wanted(
            task,
            resolved,
            purpose="build",
            dockerfile=dockerfile,
            arguments=_arguments(task, build, dockerfile),
            secrets=tuple(Mounted(name, f"/run/secrets/{name}") for name in names),
            target=target if task.push else "",
            pull_tls=build.base_image_registry_tls,
            selector=tuple(sorted((build.selector or resolved.selector).items())),
            versions=material.versions,
        )

    secrets = (*((name, "") for name in names), *_registry_secret(resolved))
    return _Step("build", MaterialQuestion(metadata.namespace, build.dockerfile_config_map.name, secrets), made)


def _signing(task: Task, observed: Observed, resolved: Resolved, sign: Sign) -> _Step:
    metadata = task.module.metadata
    built = resolved.build is not None
    unsigned = images.unsigned(resolved.container_image, metadata.namespace, metadata.name)
    source = unsigned if built else sign.unsigned_image
    mounted = (Mounted(sign.key_secret.name, signing.KEY), Mounted(sign.cert_secret.name, signing.CERT))

    def made(material: Material) -> Wanted:
        if material.problem:
            raise Impossible(material.problem)
        image, program = _signer(task, observed)
        _check_files(sign, source)
        return _wanted(
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
    return _Step("sign", MaterialQuestion(metadata.namespace, "", secrets), made)


def _registry_secret(resolved: Resolved) -> tuple[tuple[str, str], ...]:
    return ((resolved.image_repo_secret, ".dockerconfigjson"),) if resolved.image_repo_secret else ()


def _wanted(task: Task, resolved: Resolved, **rest: object) -> Wanted:
    return Wanted(
        validation=task.validation,
        validation_uid=task.uid,
        namespace=task.module.metadata.namespace,
        module=task.module.metadata.name,
        kernel=task.kernel,
        auth_secret=resolved.image_repo_secret,
        push_tls=resolved.registry_tls,
        **rest,  # type: ignore[arg-type]
    )


def _usable(material: Material, observed: Observed) -> str:
    """The Dockerfile; raises Impossible."""
    if material.problem:
        raise Impossible(material.problem)
    if len(material.dockerfile.encode()) > jobs.LARGEST_DOCKERFILE:
        raise Impossible(f"the Dockerfile has more than {jobs.LARGEST_DOCKERFILE // 1024} KiB")
    if observed.runner is Runner.JOBS and not observed.builder.image:
        raise Impossible("no image with buildah is known to the operator: set its flag --build-image")
    return material.dockerfile


def _arguments(task: Task, build: Build, dockerfile: str) -> tuple[BuildArg, ...]:
    """The Module's, then ours, which count (internal/buildsign/resource/common.go); raises Impossible."""
    metadata = task.module.metadata
    ours = {
        "KERNEL_VERSION": task.kernel,
        "KERNEL_FULL_VERSION": task.kernel,
        "MOD_NAME": metadata.name,
        "MOD_NAMESPACE": metadata.namespace,
    }
    if _TOOLKIT_VARIABLE in dockerfile:
        if not task.toolkit:
            raise Impossible(texts.no_toolkit(task.kernel))
        ours[_TOOLKIT_VARIABLE] = task.toolkit
    theirs = {each.name: each.value for each in build.build_args}
    return tuple(BuildArg(name=name, value=value) for name, value in {**theirs, **ours}.items())


def _signer(task: Task, observed: Observed) -> tuple[str, str]:
    """The image with `sign-file`, and where it is there: the operator's, else the kernel's own driver toolkit."""
    builder = observed.builder
    if observed.runner is Runner.JOBS and not builder.image:
        raise Impossible("no image with buildah is known to the operator: set its flag --build-image")
    if builder.sign_image:
        return builder.sign_image, builder.sign_file
    if task.toolkit:
        return task.toolkit, f"/usr/src/kernels/{task.kernel}/scripts/sign-file"
    raise Impossible("no image with sign-file is known to the operator: set its flag --sign-image")


def _check_files(sign: Sign, source: str) -> None:
    problem = signing.unusable(sign.files_to_sign)
    if problem:
        raise Impossible(problem)
    if source != "".join(source.split()):
        raise Impossible(f"{source!r} is no name of an image")
