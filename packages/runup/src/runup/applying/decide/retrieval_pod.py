"""The `version-*` Pod that copies a release's files to the operator's node, and how its status is read.

The Pod copies the target image's manifests into a temporary folder and renames that last, so that an incomplete copy is
never taken for a release. Names, labels, containers and limits: docs/reference/upstream.md 1.4; what differs, and why:
docs/decisions/0048-where-releases-come-from.md.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PAYLOADS = "/etc/cvo/updatepayloads"
LABEL = "k8s-app"
APP = "retrieve-openshift-release"
SELECTOR = f"{LABEL}={APP}"
PREFIX = "version-"
SERVICE_ACCOUNT = "update-payload"
PRIORITY_CLASS = "openshift-user-critical"
ACTIVE_DEADLINE_S = 120

JSON = dict[str, Any]
_MOUNT = {"name": "payloads", "mountPath": PAYLOADS}
# How the node says that the registry does not have the image: CRI-O in the registry's words, containerd by gRPC's code.
_MISSING = ("manifest unknown", "code = NotFound")
# Another maker's image may lack one of them; the registry is asked for files alone.
_NEEDS = (
    "the image of a release has /manifests and /release-manifests, and for this pod sh, rm, mkdir, cp and mv; "
    "--release-source=registry reads its files without running it"
)
_NO_LABEL = re.compile(r"[^a-z0-9.-]")
# A Pod's name has at most 253 characters, and the length of a version is not limited.
_MAX_VERSION = 200


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a Pod; `error` is empty if it succeeded."""

    error: str = ""


def folder_name(image: str) -> str:
    """Returns the name of a release's folder below `PAYLOADS`: the image's MD5 in base64url without padding."""
    # The Go operator's name for the folder, so that each finds what the other has fetched. It protects nothing.
    digest = hashlib.md5(image.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def pod(image: str, version: str, *, namespace: str, node: str, suffix: str) -> JSON:
    """Returns the Pod that copies the release in `image`; `suffix` is five random characters that make it unique."""
    target = f"{PAYLOADS}/{folder_name(image)}"
    temporary = f"{target}-{suffix}"
    steps: tuple[tuple[str, list[str], JSON], ...] = (
        ("cleanup", ["sh", "-c", "rm -fR ./*"], {"workingDir": PAYLOADS}),
        ("make-temporary-directory", ["mkdir", temporary], {}),
        ("copy-operator-manifests-to-temporary-directory", ["cp", "-r", "/manifests", f"{temporary}/manifests"], {}),
        (
            "copy-release-manifests-to-temporary-directory",
            ["cp", "-r", "/release-manifests", f"{temporary}/release-manifests"],
            {},
        ),
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{PREFIX}{_NO_LABEL.sub('-', version.lower())[:_MAX_VERSION]}-{suffix}",
            "namespace": namespace,
            "labels": {LABEL: APP},
            "annotations": {"openshift.io/required-scc": "privileged"},
        },
        "spec": {
            "serviceAccountName": SERVICE_ACCOUNT,
            "automountServiceAccountToken": False,
            "activeDeadlineSeconds": ACTIVE_DEADLINE_S,
            "restartPolicy": "OnFailure",
            # The folder is on this node alone, so the scheduler is bypassed and every taint tolerated.
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": PRIORITY_CLASS,
            "initContainers": [_container(image, name, command, more) for name, command, more in steps],
            "containers": [_container(image, "rename-to-final-location", ["mv", temporary, target], {})],
            "volumes": [{"name": "payloads", "hostPath": {"path": PAYLOADS, "type": "DirectoryOrCreate"}}],
        },
    }


def pod_end(pod_object: JSON) -> Ended | None:
    """Returns how the Pod `pod_object` ended, None while it may still succeed.

    A Pod counts as failed at once if its image's signature was rejected by the node, or if the registry does not have
    its image, because such a Pod never starts. Where one of its programs failed, the error says what they need.
    """
    status = pod_object.get("status") or {}
    name = (pod_object.get("metadata") or {}).get("name", "")
    phase = status.get("phase")
    if phase == "Succeeded":
        return Ended()
    if phase == "Failed":
        cause = _cause(status)
        needs = f"; {_NEEDS}" if any(_failure(each) for _, each in _containers(status)) else ""
        return Ended(f"pod {name} failed with {cause} and status {_container_states_text(status)}{needs}")
    if phase == "Pending" and any(_cannot_start(each.get("state") or {}) for _, each in _containers(status)):
        return Ended(f"pod {name} will not start: {_container_states_text(status)}")
    return None


def waiting_text(pod_object: JSON) -> str:
    """Returns a text about what a running Pod is waiting for."""
    status = pod_object.get("status") or {}
    conditions = [c for c in status.get("conditions") or () if c.get("status") == "False" and c.get("message")]
    reasons = _container_states_text(status) or "; ".join(f"{c.get('reason', '')}: {c['message']}" for c in conditions)
    return reasons or f"phase {status.get('phase') or 'unknown'}"


def _container(image: str, name: str, command: list[str], more: JSON) -> JSON:
    """Returns a privileged container that mounts the folder of payloads."""
    return {
        "name": name,
        "image": image,
        "command": command,
        "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi", "ephemeral-storage": "2Mi"}},
        # The Pod's status then quotes the end of a failed container's log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_MOUNT],
        **more,
    }


def _containers(status: JSON) -> Iterator[tuple[str, JSON]]:
    """Yields the status of each container, with the prefix that says which sort it is."""
    for kind, key in (("init", "initContainerStatuses"), ("", "containerStatuses")):
        for container_status in status.get(key) or ():
            yield kind, container_status


def _failure(container_status: JSON) -> JSON:
    """Returns how the container's program ended when it ended last, {} if it succeeded or has not ended."""
    states = (container_status.get(key) or {} for key in ("state", "lastState"))
    ended: JSON = next((state["terminated"] for state in states if state.get("terminated")), {})
    return {} if ended.get("reason") == "Completed" else ended


def _cannot_start(state: JSON) -> bool:
    waiting_state = state.get("waiting") or {}
    message = waiting_state.get("message", "")
    missing = waiting_state.get("reason") == "ErrImagePull" and any(words in message for words in _MISSING)
    return waiting_state.get("reason") == "SignatureValidationFailed" or missing


def _container_states_text(status: JSON) -> str:
    """Returns the state of each container that waits or has failed, in the words of the Go operator.

    A container that waits to be started again says only so; how it failed before follows.
    """
    lines = []
    for kind, container_status in _containers(status):
        name, state = container_status.get("name", ""), container_status.get("state") or {}
        for state_name in ("waiting", "terminated"):
            details = state.get(state_name)
            if details and details.get("reason") not in ("Completed", "PodInitializing"):
                line = f"{kind}container {name} is {state_name} with {_cause(details)}"
                failed = _failure(container_status) if state_name == "waiting" else {}
                lines.append(f"{line}, after it ended with {_cause(failed)}" if failed else line)
    return ", ".join(lines)


def _cause(details: JSON) -> str:
    return f'reason "{details.get("reason", "")}" and message "{details.get("message", "")}"'
