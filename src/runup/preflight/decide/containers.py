"""The Pods of container checks as they should be: a component's image, run once, under an account that only reads.

The target says in its report which checks want one (`ReportedContainer`); the managing operator makes the Pods, because
who may make a Pod in its namespace may take its account. An image is named by its tag in the image-references of the
release that was verified, so nothing else can be run. A Pod belongs to the preflight's Deployment: whatever ends the
preflight ends them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import report, workloads
from runup.preflight.decide.attempt import Attempt, digest_of
from runup.preflight.decide.report import MAX_CONTAINERS, ReportedContainer
from runup.preflight.decide.workloads import ID_ANNOTATION, Workplace
from runup.process.plan import Action, Apply, Delete

NAME = f"{workloads.NAME}-check"
ACCOUNT = NAME
CONTAINER = "check"
SELECTOR = f"{workloads.APP_LABEL}={NAME}"
RUN_ANNOTATION = "preflight.runup.dev/run"
POD = resource_of(Pod)
# Nobody in the image has to be: nothing is written but /tmp.
_NOBODY = 65534
# The log and /tmp together; a report has a megabyte at most.
_STORAGE = "64Mi"

JSON = dict[str, Any]


def pod_name(number: int) -> str:
    """The name of the Pod of the container check with that number, counted from 0."""
    return f"{NAME}-{number}"


def pod_names() -> tuple[str, ...]:
    """Every name that such a Pod may have."""
    return tuple(pod_name(number) for number in range(MAX_CONTAINERS))


def run_of(preflight_id: str, wanted: ReportedContainer) -> str:
    """What tells one run of a check's container from every other."""
    return f"{preflight_id}/{wanted.check}/{wanted.image}/{wanted.run}"


def usable(image: str) -> bool:
    """Whether a pull spec out of image-references names one image for good."""
    return bool(digest_of(image))


def actions(
    attempt: Attempt,
    place: Workplace,
    owner: Deployment,
    wanted: Iterable[ReportedContainer],
    found: Iterable[Pod],
    images: Mapping[str, str] | None,
) -> Iterator[Action]:
    """What makes the Pods as they should be; without `images` (tag -> pull spec) none is made."""
    due = {pod_name(number): each for number, each in enumerate(wanted)}
    there = {pod.metadata.name: pod for pod in found}
    for name, pod in sorted(there.items()):
        each = due.get(name)
        current = each is not None and _is_run(pod, run_of(attempt.id, each), owner)
        if not current and pod.metadata.deletion_timestamp is None:
            yield Delete(POD, NamespacedName(pod.metadata.namespace, name), uid=pod.metadata.uid)
    for name, each in due.items():
        image = (images or {}).get(each.image, "")
        if name not in there and usable(image):
            # A quota or a policy that refuses it costs this check its answer, and the rest of the pass nothing.
            yield Apply(POD, _pod(name, attempt, place, owner, each, image), optional=True)


def _is_run(pod: Pod, run: str, owner: Deployment) -> bool:
    owners = [reference.uid for reference in pod.metadata.owner_references]
    return pod.metadata.annotations.get(RUN_ANNOTATION) == run and owner.metadata.uid in owners


def _pod(
    name: str, attempt: Attempt, place: Workplace, owner: Deployment, wanted: ReportedContainer, image: str
) -> JSON:
    annotations = {
        ID_ANNOTATION: attempt.id,
        RUN_ANNOTATION: run_of(attempt.id, wanted),
        "openshift.io/required-scc": "nonroot-v2",
    }
    owned = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workloads.NAME, "uid": owner.metadata.uid}
    spec: JSON = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": wanted.timeout_seconds,
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "tolerations": list(place.tolerations),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(attempt, place, image)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": _STORAGE}}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": place.namespace,
            "labels": {workloads.APP_LABEL: NAME},
            "annotations": annotations,
            "ownerReferences": [owned],
        },
        "spec": spec | ({"priorityClassName": place.priority_class} if place.priority_class else {}),
    }


def _container(attempt: Attempt, place: Workplace, image: str) -> JSON:
    quantities = place.quantities
    env = {
        "PREFLIGHT_ID": attempt.id,
        "PREFLIGHT_SOURCE_VERSION": attempt.source_version,
        "PREFLIGHT_TARGET_VERSION": attempt.target_version,
        "PREFLIGHT_TARGET_IMAGE": attempt.target_image,
    }
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [workloads.COMMAND, f"--format={report.FORMAT}"],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": {
            "requests": {"cpu": quantities.cpu_request, "memory": quantities.memory_request},
            "limits": {
                "cpu": quantities.cpu_limit,
                "memory": quantities.memory_limit,
                "ephemeral-storage": _STORAGE,
            },
        },
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- the pod's own
    }
