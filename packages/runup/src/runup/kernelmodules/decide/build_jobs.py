"""Renders a run as a Job, and reads a Job's status: one `buildah` container builds, a second one pushes. Pure.

buildah is started without a shell, so that no shell parses text of a Module. The Dockerfile is an annotation of the pod
and becomes a file by the downward API: exactly the text that was hashed is built, and the operator needs no permission
to write ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import key_of
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholeJob, WholePod
from kubekit.rules.owners import controller_of
from runup.kernelmodules.decide import runs

JSON = dict[str, Any]
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs", namespaced=True)
DOCKERFILE_ANNOTATION = "kmm.node.kubernetes.io/dockerfile"
# In bytes: all annotations of an object together may have 256 KiB.
LARGEST_DOCKERFILE = 200 * 1024
LOCAL_IMAGE = "localhost/kernel-module:preflight"

_CONTEXT, _STORAGE, _AUTH = "/run/kmod/context", "/run/kmod/storage", "/run/kmod/auth"
_DOCKERFILE = "/run/kmod/dockerfile"
# Replaces the image's own storage paths, so that the second container can push what the first one built.
_STORED = (f"--root={_STORAGE}/images", f"--runroot={_STORAGE}/run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """The settings of Jobs: an image with `buildah`, one with `sign-file` and a shell. `deadline_s` ends a build."""

    image: str = ""
    sign_image: str = ""
    sign_file: str = "/usr/local/bin/sign-file"
    deadline_s: int = 3600
    # The BUILDAH_ISOLATION of the image: chroot needs nothing of the node but a privileged pod.
    isolation: str = "chroot"
    storage_driver: str = "vfs"
    resources: JSON = field(default_factory=dict)


def job(wanted_run: runs.WantedRun, builder: Builder, owner: JSON) -> JSON:
    """Returns the Job to apply for `wanted_run`."""
    marks = {"labels": runs.labels(wanted_run), "annotations": runs.notes(wanted_run)}
    arguments = [*_STORED, "build", f"--isolation={builder.isolation}", f"--file={_DOCKERFILE}/dockerfile"]
    arguments += _tls(wanted_run.pull_tls)
    arguments += [f"--build-arg={argument.name}={argument.value}" for argument in wanted_run.arguments]
    arguments += [f"--volume={secret.path}:{secret.path}:ro" for secret in wanted_run.secrets]
    steps = [
        _container("build", [*arguments, f"--tag={wanted_run.target or LOCAL_IMAGE}", _CONTEXT], wanted_run, builder)
    ]
    if wanted_run.target:
        steps.append(
            _container("push", [*_STORED, "push", *_tls(wanted_run.push_tls), wanted_run.target], wanted_run, builder)
        )
    file = {"path": "dockerfile", "fieldRef": {"fieldPath": f"metadata.annotations['{DOCKERFILE_ANNOTATION}']"}}
    volumes: list[JSON] = [
        {"name": "dockerfile", "downwardAPI": {"items": [file]}},
        {"name": "context", "emptyDir": {}},
        {"name": "storage", "emptyDir": {}},
    ]
    volumes += [
        {"name": f"secret-{at}", "secret": {"secretName": secret.name}} for at, secret in _numbered_secrets(wanted_run)
    ]
    if wanted_run.auth_secret:
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        volumes.append({"name": "auth", "secret": {"secretName": wanted_run.auth_secret, "items": items}})
    template = {
        "metadata": {
            "labels": marks["labels"],
            "annotations": {**marks["annotations"], DOCKERFILE_ANNOTATION: wanted_run.dockerfile},
        },
        "spec": {
            "restartPolicy": "Never",
            # A user's Dockerfile runs in a privileged pod, which therefore gets no credentials of the cluster.
            "automountServiceAccountToken": False,
            "nodeSelector": dict(wanted_run.selector),
            # Init containers end before the others start, so the push finds a complete build.
            **({"initContainers": steps[:-1]} if steps[:-1] else {}),
            "containers": steps[-1:],
            "volumes": volumes,
        },
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": wanted_run.key.name,
            "namespace": wanted_run.namespace,
            **marks,
            "ownerReferences": [owner],
        },
        # No retries by the Job (backoffLimit 0), because the validation itself starts a failed run again.
        "spec": {"backoffLimit": 0, "activeDeadlineSeconds": builder.deadline_s, "template": template},
    }


def run_of(job: WholeJob, pods: Iterable[WholePod]) -> runs.Run | None:
    """Returns the run that a Job represents, None if the Job has no controlling owner. `pods` may be of any Job."""
    owner = controller_of(job.metadata.owner_references)
    if owner is None:
        return None
    complete, failed = (find(job.status.conditions, kind) for kind in ("Complete", "Failed"))
    state, detail, ended = runs.RunState.RUNNING, "", None
    if complete is not None and complete.status == "True":
        state, ended = runs.RunState.SUCCEEDED, job.status.completion_time or complete.last_transition_time
    elif failed is not None and failed.status == "True":
        state, ended = runs.RunState.FAILED, failed.last_transition_time
        # The kubelet keeps the end of the failed container's log in the status.
        ends = [(status.get("state") or {}).get("terminated") or {} for status in _container_statuses(job, pods)]
        ended_badly = next((end for end in ends if end.get("exitCode")), None)
        detail = f"{failed.reason}: {failed.message}"
        if ended_badly:
            code_text = f"{ended_badly.get('reason', 'Error')}, exit code {ended_badly['exitCode']}"
            detail = str(ended_badly.get("message") or code_text)
    else:
        # What a run that has not started waits for, such as a missing Secret or image.
        waits = [(status.get("state") or {}).get("waiting") or {} for status in _container_statuses(job, pods)]
        waiting = next((wait for wait in waits if wait.get("message")), None)
        detail = f"{waiting.get('reason', '')}: {waiting['message']}" if waiting else ""
    return runs.Run(
        key=key_of(job),
        uid=job.metadata.uid,
        runner=runs.Runner.JOBS,
        module=job.metadata.annotations.get(runs.MODULE_LABEL, job.metadata.labels.get(runs.MODULE_LABEL, "")),
        owner_uid=owner.uid,
        state=state,
        detail=runs.snippet(detail),
        ended_at=ended,
        deleting=job.metadata.deletion_timestamp is not None,
    )


def _container_statuses(job: WholeJob, pods: Iterable[WholePod]) -> Sequence[JSON]:
    """Returns the statuses of all containers in the pods of a Job, init containers included."""
    return [
        status
        for pod in pods
        if pod.metadata.namespace == job.metadata.namespace
        and any(owner.name == job.metadata.name for owner in pod.metadata.owner_references)
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in pod.status.get(kind) or ()
    ]


def _container(name: str, arguments: list[str], wanted_run: runs.WantedRun, builder: Builder) -> JSON:
    """Returns a container that runs buildah with `arguments`."""
    auth = [{"name": "REGISTRY_AUTH_FILE", "value": f"{_AUTH}/config.json"}] if wanted_run.auth_secret else []
    return {
        "name": name,
        "image": builder.image,
        "command": ["/usr/bin/buildah"],
        # The kubelet expands `$(NAME)`, and takes a doubled dollar for one.
        "args": [argument.replace("$", "$$") for argument in arguments],
        "env": [
            {"name": "BUILDAH_ISOLATION", "value": builder.isolation},
            {"name": "STORAGE_DRIVER", "value": builder.storage_driver},
            *auth,
        ],
        "workingDir": _CONTEXT,
        "resources": builder.resources,
        # The kubelet then keeps the end of the log in the pod's status, so nobody needs the right to read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        # buildah mounts: nothing less will do without user namespaces.
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [
            {"name": "dockerfile", "mountPath": _DOCKERFILE, "readOnly": True},
            {"name": "context", "mountPath": _CONTEXT},
            {"name": "storage", "mountPath": _STORAGE},
            *(
                {"name": f"secret-{at}", "mountPath": secret.path, "readOnly": True}
                for at, secret in _numbered_secrets(wanted_run)
            ),
            *([{"name": "auth", "mountPath": _AUTH, "readOnly": True}] if wanted_run.auth_secret else []),
        ],
    }


def _tls(options: Any) -> list[str]:
    return ["--tls-verify=false"] if options.insecure or options.insecure_skip_tls_verify else []


def _numbered_secrets(wanted_run: runs.WantedRun) -> list[tuple[int, runs.MountedSecret]]:
    return list(enumerate(wanted_run.secrets))
