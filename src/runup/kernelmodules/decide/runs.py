"""A build or a signature on the cluster: what is wanted, what is there, and what became of it. Pure.

A run is a Job or, where the cluster has them, an OpenShift Build. Its name is made of all that it is made of, so two
passes cannot start it twice, and other inputs are another run. Labels are those of Kernel Module Management.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from kubekit.api.meta_v1 import NamespacedName
from kubekit.lang.cut import cut
from runup.api.kmm_v1beta1 import BuildArg, TLSOptions

MODULE_LABEL = "kmm.node.kubernetes.io/module.name"
TYPE_LABEL = "kmm.openshift.io/build.type"
KERNEL_LABEL = "kmm.node.kubernetes.io/target-kernel"
HASH_ANNOTATION = "kmm.node.kubernetes.io/last-hash"
VALIDATION_ANNOTATION = "kmm.node.kubernetes.io/preflight"
# Of a name that a label and a pod's host name can have.
LONGEST_NAME = 63
LONGEST_SNIPPET = 1024

Purpose = Literal["build", "sign"]


class Runner(StrEnum):
    """By what images are built: known only once the cluster has said whether it has Builds."""

    JOBS = "Jobs"
    BUILDS = "Builds"


class State(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A build or a signature as it should run. `target` is empty where nothing is pushed.

    `dockerfile` is whole; `secrets` are mounted under /run/secrets, each under its path, with the keys of it that are
    needed (all where none is named).
    """

    purpose: Purpose
    validation: str
    validation_uid: str
    namespace: str
    module: str
    kernel: str
    dockerfile: str
    arguments: tuple[BuildArg, ...] = ()
    secrets: tuple[Mounted, ...] = ()
    target: str = ""
    auth_secret: str = ""
    pull_tls: TLSOptions = field(default_factory=TLSOptions)
    push_tls: TLSOptions = field(default_factory=TLSOptions)
    selector: tuple[tuple[str, str], ...] = ()
    # Which versions the secrets had: a new key is another run.
    versions: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Of all that the run is made of."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def key(self) -> NamespacedName:
        """Where the run is."""
        ending = f"-{self.purpose}-{self.hash[:12]}"
        return NamespacedName(self.namespace, self.module[: LONGEST_NAME - len(ending)].rstrip("-.") + ending)


@dataclass(frozen=True, slots=True)
class Mounted:
    """A Secret of the Module's namespace, and where the builder finds it."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Run:
    """A Job or Build that is there. `detail` is why it failed, `ended_at` when."""

    key: NamespacedName
    uid: str
    runner: Runner
    module: str
    owner_uid: str
    state: State
    detail: str = ""
    ended_at: datetime | None = None
    deleting: bool = False


def snippet(text: str) -> str:
    """The end of a log, as one line."""
    return cut(" ".join(text.split()), LONGEST_SNIPPET)


def labels(wanted: Wanted) -> dict[str, str]:
    """What a run and its pods are found by."""
    return {
        MODULE_LABEL: label_value(wanted.module),
        TYPE_LABEL: wanted.purpose,
        KERNEL_LABEL: label_value(wanted.kernel),
        "app.kubernetes.io/name": "kmm",
        "app.kubernetes.io/component": wanted.purpose,
        "app.kubernetes.io/part-of": "kmm",
    }


def notes(wanted: Wanted) -> dict[str, str]:
    """What a run says of itself: the whole names that a label has no room for."""
    return {
        HASH_ANNOTATION: wanted.hash,
        VALIDATION_ANNOTATION: wanted.validation,
        MODULE_LABEL: wanted.module,
        KERNEL_LABEL: wanted.kernel,
    }


def label_value(text: str) -> str:
    """`text` as a label can hold it."""
    allowed = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in text)
    return allowed[:LONGEST_NAME].strip("-_.")


def owner(wanted: Wanted, api_version: str) -> dict[str, object]:
    """The validation: what it started goes with it."""
    return {
        "apiVersion": api_version,
        "kind": "PreflightValidation",
        "name": wanted.validation,
        "uid": wanted.validation_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
