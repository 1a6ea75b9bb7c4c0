"""A pod's spec, parsed once: containers, mounts, probes, limits, grace period. Values in, values out.

The rules are the kubelet's. `podenv` computes the containers' environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from kubekit.api.whole_v1 import WholePod
from kubekit.lang.quantity import QuantityError, whole_units

JSON = dict[str, Any]
DEFAULT_GRACE_S = 30
SERVICE_ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PullPolicy = Literal["Always", "IfNotPresent", "Never"]


class BadPod(Exception):
    """A pod that cannot be run as it is written; `reason` is the kubelet's reason for the waiting container."""

    def __init__(self, message: str, *, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mount of a volume; `sub_path` is a path inside the volume, with `$(NAME)` references if `expands`."""

    volume: str
    path: str
    read_only: bool = False
    sub_path: str = ""
    expands: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """A container's spec; `memory` is its limit as written, "" for none; `is_init` marks an init container."""

    name: str
    image: str
    pull_policy: PullPolicy = "IfNotPresent"
    is_init: bool = False
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[JSON, ...] = ()
    env_from: tuple[JSON, ...] = ()
    mounts: tuple[Mount, ...] = ()
    ports: tuple[JSON, ...] = ()
    memory: str = ""
    read_only_root: bool = False
    readiness: JSON | None = None
    liveness: JSON | None = None
    message_policy: str = "File"
    message_path: str = "/dev/termination-log"

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes, 0 for none. Raises BadPod."""
        return bytes_of(self.memory) if self.memory else 0


def bytes_of(quantity: str) -> int:
    """Returns a quantity such as `128Mi` in bytes. Raises BadPod."""
    try:
        return whole_units(quantity)
    except QuantityError as error:
        raise BadPod(f"{quantity!r}: {error}") from error


def container_spec(container: JSON, *, is_init: bool = False) -> ContainerSpec:
    """Parses one entry of `spec.containers` or `spec.initContainers`."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return ContainerSpec(
        name=container["name"],
        image=container.get("image", ""),
        pull_policy=container.get("imagePullPolicy") or "IfNotPresent",
        is_init=is_init,
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        working_dir=container.get("workingDir") or "",
        env=tuple(container.get("env") or ()),
        env_from=tuple(container.get("envFrom") or ()),
        mounts=tuple(
            Mount(
                volume=mount["name"],
                # Without the slash at the end, so that paths compare equal.
                path=mount["mountPath"].rstrip("/") or "/",
                read_only=bool(mount.get("readOnly")),
                sub_path=mount.get("subPathExpr") or mount.get("subPath") or "",
                expands=bool(mount.get("subPathExpr")),
            )
            for mount in container.get("volumeMounts") or ()
        ),
        ports=tuple(container.get("ports") or ()),
        memory=str(limits.get("memory") or ""),
        read_only_root=bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        readiness=container.get("readinessProbe"),
        liveness=container.get("livenessProbe"),
        message_policy=container.get("terminationMessagePolicy") or "File",
        message_path=container.get("terminationMessagePath") or "/dev/termination-log",
    )


def containers(pod: WholePod) -> tuple[ContainerSpec, ...]:
    """Returns the pod's containers."""
    return tuple(container_spec(container) for container in pod.spec.get("containers") or ())


def init_containers(pod: WholePod) -> tuple[ContainerSpec, ...]:
    """Returns the pod's init containers, which run one after the other before the rest."""
    return tuple(container_spec(container, is_init=True) for container in pod.spec.get("initContainers") or ())


def service_account(pod: WholePod) -> str:
    """Returns the name of the ServiceAccount that the pod runs as."""
    return pod.spec.get("serviceAccountName") or "default"


def grace_s(pod: WholePod, *, now: datetime) -> float:
    """Returns the seconds between SIGTERM and SIGKILL: until the deletion timestamp, else the pod's grace period."""
    if pod.metadata.deletion_timestamp is not None:
        return max(0.0, (pod.metadata.deletion_timestamp - now).total_seconds())
    grace_period = pod.spec.get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if grace_period is None else int(grace_period)
