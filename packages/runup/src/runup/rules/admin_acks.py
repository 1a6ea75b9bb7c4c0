"""The gates that an administrator must acknowledge before the cluster leaves its minor version.

The gates are in one ConfigMap, the acknowledgements in another. A gate belongs to the minor version in its key
(openshift/cluster-version-operator, pkg/risk/adminack).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

GATES, GATES_NAMESPACE = "admin-gates", "openshift-config-managed"
ACKS, ACKS_NAMESPACE = "admin-acks", "openshift-config"
# Messages quote the pattern as the Go operator does, so it is written in the same way.
PATTERN = "^ack-([4-5][.][0-9]{1,})-[^-]"
_KEY = re.compile(PATTERN)


@dataclass(frozen=True, slots=True)
class OpenGate:
    """A gate that keeps the cluster at its minor version. `error` is the fault of an invalid gate.

    The acknowledgement of a gate with an error has no effect.
    """

    key: str
    text: str
    error: str = ""


def open_gates(
    gates: Mapping[str, str], acks: Mapping[str, str], *, since: tuple[int, int], before: tuple[int, int]
) -> Iterator[OpenGate]:
    """Yields the open gates of the minor versions from `since` to those before `before`, sorted by key."""
    for key, text in sorted(gates.items()):
        match = _KEY.match(key)
        if match is None:
            invalid = f'{GATES} configmap gate name {key} has invalid format; must comply with "{PATTERN}"'
            yield OpenGate(key, text, f'{GATES} configmap gate "{key}" is invalid: {invalid}')
            continue
        major, minor = match[1].split(".")
        if not since <= (int(major), int(minor)) < before:
            continue
        if not text:
            yield OpenGate(key, text, f"{GATES} configmap gate {key} must contain a non-empty value.")
        elif acks.get(key) != "true":
            yield OpenGate(key, text)
