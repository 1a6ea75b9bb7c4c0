"""Recognises the add-ons of a cluster: which known add-ons run, and in which version.

The images of pods count. Where no pod has an image of an add-on, such as one that was built or renamed in-house, the
labels `app.kubernetes.io/name` and `helm.sh/chart` of pods count.

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

KUBE_PROXY, ETCD = "/kube-proxy", "/etcd"
# How Rancher names the images that it mirrors or builds.
_MIRRORS = ("mirrored-", "hardened-")
# https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
_VERSION_LABEL = "app.kubernetes.io/version"
# https://helm.sh/docs/chart_best_practices/labels/
NAME_LABEL, CHART_LABEL = "app.kubernetes.io/name", "helm.sh/chart"
_CHART = re.compile(r"(.+?)-v?\d+\.\d.*")
# The images of the control plane whose versions count. Other cloud-controller-managers have versions of their own.
CONTROL_PLANE = ("/kube-apiserver", "/kube-controller-manager", "/kube-scheduler", "/hardened-kubernetes")
CLOUD_CONTROLLERS = (
    "/provider-aws/cloud-controller-manager",
    "/azure-cloud-controller-manager",
    "/openstack-cloud-controller-manager",
)
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
    """Returns whether a row of the table, or a component of Kubernetes, has the image."""
    table = document("addons")
    rows = [row for name in ("addons", "retired", "pauses") for row in table[name]]
    components = ({"image": name} for name in (KUBE_PROXY, ETCD, *CONTROL_PLANE, *CLOUD_CONTROLLERS))
    return any(_has_image(image, row) for row in (*rows, *components))


@lru_cache(4096)
def is_labelled(name: str, chart: str) -> bool:
    """Returns whether a row of the table has a pod with these values of `NAME_LABEL` and `CHART_LABEL`."""
    return any(_has_labels(row, name, chart) for row in document("addons")["addons"])


def _has_labels(row: Mapping[str, Any], name: str, chart: str) -> bool:
    match = _CHART.fullmatch(chart)
    return name in row.get("labelled", ()) or (match is not None and match[1] == row.get("chart"))


@lru_cache(4096)
def withdrawal(image: str) -> Mapping[str, str] | None:
    """Returns the row about an image that its registry no longer has, or None."""
    name = image.removeprefix("index.").removeprefix("docker.io/")
    return next((row for row in document("withdrawn-images")["images"] if re.fullmatch(row["image"], name)), None)


def _has_image(image: str, row: Mapping[str, Any]) -> bool:
    """Returns whether the image is the row's: in any registry and below any path, under one of its other names, or as
    distributions name their mirrors (`rancher/mirrored-calico-node` of `calico/node`)."""
    head, _, last = image.partition("@")[0].rpartition("/")
    last = last.partition(":")[0]
    path, own = f"/{head}/{last}", row["image"].strip("/")
    if last in row.get("notNamed", ()):
        return False
    flat = own.replace("/", "-")
    is_mirror = last.startswith(_MIRRORS) and last.endswith(f"-{flat}")
    return is_mirror or path.endswith((f"/{own}", f"/{flat}", *row.get("alsoNamed", ())))


def running_addons(
    pods: Iterable[PlacedPod], rows: Iterable[Mapping[str, Any]], *, but_from: tuple[str, ...] = ()
) -> list[Running]:
    """Returns the running add-ons of `rows`, a version each, with its pods; not images from `but_from` (registries).

    If the tag has no version, the pod's label `app.kubernetes.io/version` counts. A row without any image is looked for
    by labels.
    """
    having = [pod for pod in pods if pod.demands.addons]
    # Many pods have few images.
    images = {image for pod in having for image in pod.demands.addons if not image.startswith(but_from)}
    addons_found: list[Running] = []
    for row in rows:
        tags = {
            image: image.partition("@")[0].rpartition("/")[2].partition(":")[2]
            for image in images
            if _has_image(image, row)
        }
        by_tag: dict[str, list[PlacedPod]] = {}
        for pod in having if tags else ():
            for image in pod.demands.addons:
                if (tag := tags.get(image)) is not None:
                    if not version_number(tag):
                        tag = pod.metadata.labels.get(_VERSION_LABEL, tag)
                    by_tag.setdefault(tag, []).append(pod)
        if not tags:
            by_tag = _by_labels(having, row, but_from)
        addons_found += [Running(row, tag, version_number(tag), tuple(pods)) for tag, pods in sorted(by_tag.items())]
    return addons_found


def _by_labels(
    pods: Iterable[PlacedPod], row: Mapping[str, Any], but_from: tuple[str, ...]
) -> dict[str, list[PlacedPod]]:
    """Returns the pods whose labels say that they are of the row's add-on, by version.

    All pods of a chart have its label, so that the image's tag is the version only of a pod with the add-on's name.
    """
    by_tag: dict[str, list[PlacedPod]] = {}
    for pod in pods if "labelled" in row else ():
        labels = pod.metadata.labels
        name, image = labels.get(NAME_LABEL, ""), pod.demands.addons[0]
        if image.startswith(but_from) or not _has_labels(row, name, labels.get(CHART_LABEL, "")):
            continue
        tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2] if name in row["labelled"] else ""
        version = labels.get(_VERSION_LABEL) or tag
        if version or name in row["labelled"]:
            by_tag.setdefault(version, []).append(pod)
    return by_tag


@lru_cache(1024)
def version_number(tag: str) -> Number:
    """Returns the numbers of the version that a tag begins with, or none."""
    match = _VERSION.match(tag)
    return tuple(int(part) for part in match.groups() if part is not None) if match else ()
