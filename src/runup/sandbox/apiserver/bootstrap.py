"""What every cluster has before anybody does anything: the first namespaces."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def objects() -> list[JSON]:
    """The objects to create at start when they are missing."""
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
