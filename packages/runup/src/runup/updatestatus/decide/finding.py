"""The result of a health rule before it becomes an insight: its names, its uid, and the limits of the API."""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

import msgspec

from kubekit.lang.text import count, shorten
from runup.api.update_v1alpha1 import ResourceRef

MAX_BYTES = 256 * 1024
LEAST_BYTES = 64 * 1024
"""The size that our status may always have, whatever others wrote. The API server and etcd refuse others' entries long
before both together are too large."""
MAX_POOLS = 32
# Insights an informer may have in a layer, by the API.
MAX_CONTROL_PLANE = 128
MAX_POOL = 1024
MIN_NODES = 10
"""The number of rows of a pool that the command prints by default."""

# Few steps, so that the object does not change whenever a message grows by a word.
NODE_STEPS = (1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, MIN_NODES)


class Limits(msgspec.Struct, frozen=True):
    """The limits of a status: nodes a pool, health insights a layer, characters of a text, and pools."""

    nodes: int
    health: int
    text: int
    pools: int = MAX_POOLS


UNBOUNDED = Limits(nodes=1 << 31, health=1 << 31, text=1 << 31, pools=1 << 31)
LARGEST = Limits(nodes=NODE_STEPS[0], health=40, text=32768)
FEWER_NODES = Limits(nodes=NODE_STEPS[0], health=40, text=2048)
"""The first limits at which nodes are left out."""
SMALLEST = (
    Limits(nodes=MIN_NODES, health=20, text=512),
    Limits(nodes=MIN_NODES, health=8, text=256),
    Limits(nodes=MIN_NODES, health=3, text=256),
    Limits(nodes=6, health=3, text=256),
    Limits(nodes=3, health=2, text=256),
    Limits(nodes=0, health=1, text=128),
)
"""Limits that are tried in turn if ten nodes a pool are too many."""

# A node's insight never has fewer bytes, so no more insights are built than could fit.
LEAST_NODE_BYTES = 400


def node_step(pool_sizes: Sequence[int], room: int, node_bytes: float) -> int:
    """Returns the largest step of nodes a pool for which all pools' nodes fit `room` bytes at `node_bytes` each."""
    fitting = (step for step in NODE_STEPS if sum(min(size, step) for size in pool_sizes) * node_bytes <= room)
    return next(fitting, MIN_NODES)


UNKNOWN, INFO, WARNING, ERROR, CRITICAL = "Unknown", "Info", "Warning", "Error", "Critical"
LEVELS = (UNKNOWN, INFO, WARNING, ERROR, CRITICAL)
"""From low to high. Unknown means that something could not be determined; it is never left out."""


def level_rank(level: str) -> int:
    """Returns the rank of a level, the worst highest; a level of another release ranks above all others."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


NO_IMPACT = "None"
UNKNOWN_IMPACT = "Unknown"
API_AVAILABILITY = "API Availability"
UPDATE_SPEED = "Update Speed"
UPDATE_STALLED = "Update Stalled"

SCOPE_CONTROL_PLANE, SCOPE_WORKER_POOL, SCOPE_CLUSTER = "ControlPlane", "WorkerPool", "Cluster"
CONTROL_PLANE = ""
"""The name of the control plane's layer; worker pools' layers have the pools' names."""

NODE_UNAVAILABLE, NODE_DEGRADED, POOL_PAUSED = "NodeUnavailable", "NodeDegraded", "MachineConfigPoolPaused"
ALERT_FIRING = "AlertFiring"
UNREADABLE, INCOMPLETE = "InputUnreadable", "InputIncomplete"
NO_RUNBOOK = "<alert does not have a runbook_url annotation>"

DOCS = "https://docs.runup.example/update-status#"
KUBERNETES_DOCS = "https://docs.runup.example/update-status-kubernetes#"
CONFIG_GROUP = "config.openshift.io"
MACHINE_CONFIG_GROUP = "machineconfiguration.openshift.io"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that needs attention.

    `check` names the rule; `check`, `resources` and `identity` (for findings about the same objects) identify the
    finding in the next pass, however its text changes. `pool` is the worker pool that it is reported under, or empty
    for the control plane. `since` is None if it is not known.
    """

    check: str
    level: str
    impact: str
    summary: str
    description: str = ""
    reference: str = ""
    since: datetime | None = None
    scope: str = SCOPE_CONTROL_PLANE
    resources: tuple[ResourceRef, ...] = ()
    identity: str = ""
    pool: str = ""


def node_ref(name: str) -> ResourceRef:
    """Returns a reference to a Node."""
    return ResourceRef(resource="nodes", name=name)


def pool_ref(name: str) -> ResourceRef:
    """Returns a reference to a MachineConfigPool."""
    return ResourceRef(group=MACHINE_CONFIG_GROUP, resource="machineconfigpools", name=name)


def operator_ref(name: str) -> ResourceRef:
    """Returns a reference to a ClusterOperator."""
    return ResourceRef(group=CONFIG_GROUP, resource="clusteroperators", name=name)


def cluster_version_ref(name: str) -> ResourceRef:
    """Returns a reference to the ClusterVersion."""
    return ResourceRef(group=CONFIG_GROUP, resource="clusterversions", name=name)


HOSTED_SIDE = "HostedSideReachable"
UPDATING, HEALTHY, AVAILABLE, DEGRADED = "Updating", "Healthy", "Available", "Degraded"
INSTALLATION, PARTIAL, ARCHITECTURE, MULTI = "Installation", "Partial", "Architecture", "Multi"
UNKNOWN_VERSION = "unknown"

INFORMER = "update-status-controller"
"""The informer name of this controller in the report."""

VERSION_LIMIT = 64
REASON_LIMIT = 1024
"""In characters, by the API."""


def cut(text: str, limit: int) -> str:
    """Returns `text`, cut at `limit` characters with a note of how long it was."""
    return shorten(text, limit, mark=f"... ({len(text)} characters in all)")


def limit_or_unbounded(limit: int, text: int) -> int:
    """Returns the API's `limit` of a field, or `text` if the status is not limited at all."""
    return text if text >= UNBOUNDED.text else limit


def qualified(namespace: str, name: str) -> str:
    """Returns the name of a namespaced object as users of kubectl write it."""
    return f"{namespace}/{name}"


def name_or_number(noun: str, names: Sequence[str]) -> str:
    """Returns the noun with the only name, or the number of names."""
    return f"{noun} {names[0]}" if len(names) == 1 else count(len(names), noun)


_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MAX_LENGTH = 63


@lru_cache(maxsize=1 << 14)
def uid_of_object(kind: str, name: str) -> str:
    """Returns a uid such as `co-etcd`; a long name, or one with dots, is replaced by 26 characters of its digest."""
    uid = f"{kind}-{name}"
    return uid if len(uid) <= _MAX_LENGTH and _LABEL.fullmatch(uid) else f"{kind}-{_short_digest([name])}"


def uid_of_finding(finding: Finding) -> str:
    """Returns a uid from the rule and the finding's identity, or its objects if it has none; never from its text."""
    about = (
        [finding.identity]
        if finding.identity
        else [part for ref in finding.resources for part in (ref.group, ref.resource, ref.namespace, ref.name)]
    )
    return f"health-{_short_digest([finding.check, *about])}"


def _short_digest(parts: Iterable[str]) -> str:
    """Returns 26 characters that are the same only for the same parts: half of a SHA-256 in base32, in lower case."""
    # The lengths distinguish ("ab", "c") from ("a", "bc").
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return b32encode(sha256(text.encode()).digest()[:16]).decode().lower().rstrip("=")
