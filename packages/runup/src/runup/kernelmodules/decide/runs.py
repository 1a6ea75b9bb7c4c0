"""The run of a build or a signature on the cluster: the wanted run, the existing run and its result. Pure.

A run is a Job or, if the cluster serves them, an OpenShift Build. Its name contains a hash of all its inputs, so that
two passes cannot start it twice, and other inputs are another run. Labels are those of Kernel Module Management.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from kubekit.api.meta_v1 import NamespacedName
from kubekit.lang.text import cut
from runup.api.kmm_v1beta1 import BuildArg, TLSOptions

MODULE_LABEL = "kmm.node.kubernetes.io/module.name"
TYPE_LABEL = "kmm.openshift.io/build.type"
KERNEL_LABEL = "kmm.node.kubernetes.io/target-kernel"
HASH_ANNOTATION = "kmm.node.kubernetes.io/last-hash"
VALIDATION_ANNOTATION = "kmm.node.kubernetes.io/preflight"
# The most characters of a label's value and of a pod's host name.
LONGEST_NAME = 63
LONGEST_SNIPPET = 1024

Purpose = Literal["build", "sign"]


class Runner(StrEnum):
    """The kind of object that builds images; it is known once the cluster has said whether it serves Builds."""

    JOBS = "Jobs"
    BUILDS = "Builds"


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRun:
    """A build or a signature to run. `target` is the image to push, empty if nothing is pushed.

    `dockerfile` is the complete text; `secrets` are mounted under /run/secrets, each at its path.
    """

    purpose: Purpose
    validation: str
    validation_uid: str
    namespace: str
    module: str
    kernel: str
    dockerfile: str
    arguments: tuple[BuildArg, ...] = ()
    secrets: tuple[MountedSecret, ...] = ()
    target: str = ""
    auth_secret: str = ""
    pull_tls: TLSOptions = field(default_factory=TLSOptions)
    push_tls: TLSOptions = field(default_factory=TLSOptions)
    selector: tuple[tuple[str, str], ...] = ()
    # Hashes of the Secrets' contents, so that a new key makes another run.
    versions: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """The hash of all inputs of the run: 16 hexadecimal digits."""
        # The repr of a dataclass contains every field, so that no input can be forgotten.
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def key(self) -> NamespacedName:
        """The namespace and name of the Job or Build."""
        ending = f"-{self.purpose}-{self.hash[:12]}"
        return NamespacedName(self.namespace, self.module[: LONGEST_NAME - len(ending)].rstrip("-.") + ending)


@dataclass(frozen=True, slots=True)
class MountedSecret:
    """A Secret of the Module's namespace, and the path at which the builder mounts it."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An existing Job or Build. `detail` is why it failed or cannot start, `ended_at` when it ended."""

    key: NamespacedName
    uid: str
    runner: Runner
    module: str
    owner_uid: str
    state: RunState
    detail: str = ""
    ended_at: datetime | None = None
    deleting: bool = False


def snippet(text: str) -> str:
    """Returns `text` as one line of at most `LONGEST_SNIPPET` bytes."""
    return cut(" ".join(text.split()), LONGEST_SNIPPET)


def labels(wanted_run: WantedRun) -> dict[str, str]:
    """Returns the labels by which a run and its pods are found."""
    return {
        MODULE_LABEL: label_value(wanted_run.module),
        TYPE_LABEL: wanted_run.purpose,
        KERNEL_LABEL: label_value(wanted_run.kernel),
        "app.kubernetes.io/name": "kmm",
        "app.kubernetes.io/component": wanted_run.purpose,
        "app.kubernetes.io/part-of": "kmm",
    }


def notes(wanted_run: WantedRun) -> dict[str, str]:
    """Returns the annotations of a run, with the full names that a label has no room for."""
    return {
        HASH_ANNOTATION: wanted_run.hash,
        VALIDATION_ANNOTATION: wanted_run.validation,
        MODULE_LABEL: wanted_run.module,
        KERNEL_LABEL: wanted_run.kernel,
    }


def label_value(text: str) -> str:
    """Returns `text` as a valid label value."""
    allowed = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in text)
    return allowed[:LONGEST_NAME].strip("-_.")


def owner(wanted_run: WantedRun, api_version: str) -> dict[str, object]:
    """Returns the owner reference to the validation, by which its runs are deleted with it."""
    return {
        "apiVersion": api_version,
        "kind": "PreflightValidation",
        "name": wanted_run.validation,
        "uid": wanted_run.validation_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
