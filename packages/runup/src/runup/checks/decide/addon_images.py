"""Recognises the add-ons of a cluster by the images of its pods: which known add-ons run, and in which version.

The version that runs counts, not the version that a chart or an add-on's own object asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kubekit.api.pod_parts import PlacedPod
from runup.checks.decide.removal_tables import document

KUBE_PROXY = "/kube-proxy"
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])")
Number = tuple[int, ...]


class Running(msgspec.Struct, frozen=True):
    """An add-on that runs: its row of the table, its version, and its pods.

    `number` is empty if the image's tag has no version, or there is only a digest.
    """

    row: Mapping[str, Any]
    tag: str
    number: Number
    pods: tuple[PlacedPod, ...]


@lru_cache(4096)
def is_addon(image: str) -> bool:
    """Returns whether a row of the table, or kube-proxy, has the image."""
    table = document("addons")
    endings = [row["image"] for name in ("addons", "retired", "pauses") for row in table[name]]
    return _repository_path(image).endswith((KUBE_PROXY, *endings))


def _repository_path(image: str) -> str:
    """Returns the image without tag and digest, with a slash before it: `calico/node` may be the whole name."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"/{head}{slash}{last.partition(':')[0]}"


def running_addons(
    pods: Iterable[PlacedPod], rows: Iterable[Mapping[str, Any]], *, but_from: tuple[str, ...] = ()
) -> list[Running]:
    """Returns the running add-ons of `rows`, a version each, with its pods; not images from `but_from` (registries)."""
    having = [pod for pod in pods if pod.demands.addons]
    addons_found: list[Running] = []
    for row in rows:
        by_tag: dict[str, list[PlacedPod]] = {}
        for pod in having:
            for image in pod.demands.addons:
                if _repository_path(image).endswith(row["image"]) and not image.startswith(but_from):
                    by_tag.setdefault(image.partition("@")[0].rpartition("/")[2].partition(":")[2], []).append(pod)
        addons_found += [Running(row, tag, version_number(tag), tuple(pods)) for tag, pods in sorted(by_tag.items())]
    return addons_found


@lru_cache(1024)
def version_number(tag: str) -> Number:
    """Returns the numbers of the version that a tag begins with, or none."""
    match = _VERSION.match(tag)
    return tuple(int(part) for part in match.groups() if part is not None) if match else ()
