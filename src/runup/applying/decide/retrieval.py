"""The `version-*` Pod that brings a release's files to the operator's node, and what its status says.

It copies out of the target's image into a folder that only it can write, and renames it last, so that half a copy is
never taken for a release. Names, labels, containers and limits: cvo-behaviour 1.4; what differs, and why:
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
_NO_LABEL = re.compile(r"[^a-z0-9.-]")
# A Pod's name has 253 characters at most; versions are short, but nobody says so.
_MAX_VERSION = 200


@dataclass(frozen=True, slots=True)
class Ended:
    """How a Pod ended: well, or with `error`."""

    error: str = ""


def folder_name(image: str) -> str:
    """The folder of a release below PAYLOADS."""
    digest = hashlib.md5(image.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def pod(image: str, version: str, *, namespace: str, node: str, suffix: str) -> JSON:
    """The Pod that copies the release in `image`; `suffix` are five random characters that make its name its own."""
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
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": PRIORITY_CLASS,
            "initContainers": [_container(image, name, command, more) for name, command, more in steps],
            "containers": [_container(image, "rename-to-final-location", ["mv", temporary, target], {})],
            "volumes": [{"name": "payloads", "hostPath": {"path": PAYLOADS, "type": "DirectoryOrCreate"}}],
        },
    }


def ended(found: JSON) -> Ended | None:
    """How `found` (a Pod) ended, None while it may still succeed.

    An image whose signature a node refuses, or that a registry does not know, never comes: that is told at once.
    """
    status = found.get("status") or {}
    name = (found.get("metadata") or {}).get("name", "")
    phase = status.get("phase")
    if phase == "Succeeded":
        return Ended()
    if phase == "Failed":
        said = f'reason "{status.get("reason", "")}" and message "{status.get("message", "")}"'
        return Ended(f"pod {name} failed with {said} and status {_told(status)}")
    if phase == "Pending" and any(_hopeless(state) for _, _, state in _states(status)):
        return Ended(f"pod {name} will not start: {_told(status)}")
    return None


def waiting(found: JSON) -> str:
    """What a Pod that has not ended waits for."""
    status = found.get("status") or {}
    conditions = [c for c in status.get("conditions") or () if c.get("status") == "False" and c.get("message")]
    told = _told(status) or "; ".join(f"{c.get('reason', '')}: {c['message']}" for c in conditions)
    return told or f"phase {status.get('phase') or 'not told'}"


def _container(image: str, name: str, command: list[str], more: JSON) -> JSON:
    return {
        "name": name,
        "image": image,
        "command": command,
        "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi", "ephemeral-storage": "2Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_MOUNT],
        **more,
    }


def _states(status: JSON) -> Iterator[tuple[str, str, JSON]]:
    for kind, key in (("init", "initContainerStatuses"), ("", "containerStatuses")):
        for found in status.get(key) or ():
            yield kind, str(found.get("name", "")), found.get("state") or {}


def _hopeless(state: JSON) -> bool:
    found = state.get("waiting") or {}
    missing = found.get("reason") == "ErrImagePull" and "manifest unknown" in found.get("message", "")
    return found.get("reason") == "SignatureValidationFailed" or missing


def _told(status: JSON) -> str:
    """Each container that waits or has failed, as upstream writes it."""
    lines = []
    for kind, name, state in _states(status):
        for how in ("waiting", "terminated"):
            found = state.get(how)
            if found and found.get("reason") not in ("Completed", "PodInitializing"):
                said = f'reason "{found.get("reason", "")}" and message "{found.get("message", "")}"'
                lines.append(f"{kind}container {name} is {how} with {said}")
    return ", ".join(lines)
