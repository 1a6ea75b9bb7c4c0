"""The Pods of container checks: each runs a component's image once, under an account that only reads.

The target's report says which checks need a container (`ReportedContainer`). The managing operator creates the Pods,
because an account that may create a Pod in its namespace may use its account. An image is named by its tag in the
image-references of the verified release, so nothing else can be run. The preflight's Deployment owns the Pods: deleting
it deletes them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.attempt import Attempt, digest_of
from runup.preflight.decide.preflight_deployment import ID_ANNOTATION, PodSettings
from runup.process.names import NOBODY
from runup.process.plan import Action, Apply, Delete
from runup.report import report
from runup.report.report import MAX_CONTAINERS, ReportedContainer

NAME = f"{preflight_deployment.NAME}-check"
ACCOUNT = NAME
CONTAINER = "check"
SELECTOR = f"{preflight_deployment.APP_LABEL}={NAME}"
RUN_ANNOTATION = "preflight.runup.dev/run"
POD = resource_of(Pod)
# For the log and /tmp together; a report has at most 1 MiB.
_STORAGE = "64Mi"

JSON = dict[str, Any]


def pod_name(number: int) -> str:
    """Returns the name of the Pod of the container check with that number, counted from 0."""
    return f"{NAME}-{number}"


def pod_names() -> tuple[str, ...]:
    """Returns every name that a container check's Pod may have."""
    return tuple(pod_name(number) for number in range(MAX_CONTAINERS))


def run_of(preflight_id: str, container: ReportedContainer) -> str:
    """Returns the identity of one run of a check's container, which differs from that of every other run."""
    return f"{preflight_id}/{container.check}/{container.image}/{container.run}"


def is_pinned(image: str) -> bool:
    """Returns whether a pull spec from image-references is pinned by digest."""
    return bool(digest_of(image))


def actions(
    attempt: Attempt,
    settings: PodSettings,
    owner: Deployment,
    wanted_containers: Iterable[ReportedContainer],
    pods_found: Iterable[Pod],
    images: Mapping[str, str] | None,
) -> Iterator[Action]:
    """Yields the creations and deletions that bring the Pods to the wanted state.

    Creates no Pod if `images` (tag -> pull spec) is missing.
    """
    wanted_by_name = {pod_name(number): container for number, container in enumerate(wanted_containers)}
    pods_by_name = {pod.metadata.name: pod for pod in pods_found}
    for name, pod in sorted(pods_by_name.items()):
        container = wanted_by_name.get(name)
        run = run_of(attempt.id, container) if container is not None else None
        # A Pod of an earlier Deployment has another owner, and is deleted with that.
        is_owned = owner.metadata.uid in [reference.uid for reference in pod.metadata.owner_references]
        current = run is not None and is_owned and pod.metadata.annotations.get(RUN_ANNOTATION) == run
        if not current and pod.metadata.deletion_timestamp is None:
            # With the uid as precondition, so that a newer Pod of the same name is not deleted.
            yield Delete(POD, NamespacedName(pod.metadata.namespace, name), uid=pod.metadata.uid)
    for name, container in wanted_by_name.items():
        image = (images or {}).get(container.image, "")
        if name not in pods_by_name and is_pinned(image):
            # Optional: a quota or policy that rejects the Pod makes this check Unknown and stops nothing else.
            yield Apply(
                resource=POD,
                object=_pod(name, attempt, settings=settings, owner=owner, container=container, image=image),
                optional=True,
            )


def _pod(
    name: str, attempt: Attempt, settings: PodSettings, owner: Deployment, container: ReportedContainer, image: str
) -> JSON:
    """Returns the Pod that runs a check's container once; it goes with the preflight's Deployment."""
    annotations = {
        ID_ANNOTATION: attempt.id,
        RUN_ANNOTATION: run_of(attempt.id, container),
        "openshift.io/required-scc": "nonroot-v2",
    }
    uid = owner.metadata.uid
    owned = {"apiVersion": "apps/v1", "kind": "Deployment", "name": preflight_deployment.NAME, "uid": uid}
    spec: JSON = {
        # One Pod is one run: a restart would repeat the check without the report's asking for it.
        "restartPolicy": "Never",
        # The kubelet ends the Pod after this time, even if the operator does not run.
        "activeDeadlineSeconds": container.timeout_seconds,
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "tolerations": list(settings.tolerations),
        "securityContext": {"runAsNonRoot": True, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(attempt, settings, image)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": _STORAGE}}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": settings.namespace,
            "labels": {preflight_deployment.APP_LABEL: NAME},
            "annotations": annotations,
            "ownerReferences": [owned],
        },
        "spec": spec | ({"priorityClassName": settings.priority_class} if settings.priority_class else {}),
    }


def _container(attempt: Attempt, settings: PodSettings, image: str) -> JSON:
    """Returns the container of a check, with what it needs to know about the update."""
    resources = preflight_deployment.resources_of(settings.quantities)
    resources["limits"]["ephemeral-storage"] = _STORAGE
    env = preflight_deployment.attempt_environment(attempt)
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [preflight_deployment.COMMAND, f"--format={report.FORMAT}"],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": resources,
        "securityContext": preflight_deployment.confined(),
        # If the container fails without a termination message, the kubelet copies the end of its log into its status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- the pod's own
    }
