"""Determines whether the files of a dump come from one cluster: objects of two clusters may have the same names.

A cluster is identified by the id in its ClusterVersion, or by the uid of its namespace kube-system if it lacks one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kubekit.lang import yaml as kyaml
from kubekit.lang.files import MIB, read_limited
from kubekit.lang.version import leading_numbers
from runup.api.clusterversion_json import mapping
from runup.dump.documents import JSON, identity
from runup.dump.dump_files import COLLECTED, Layout

MAX_NAMED = 10


class Sighting(NamedTuple):
    """A ClusterVersion or the namespace kube-system, and the folder (or file) of the dump that has it."""

    place: str
    obj: JSON


def why_several(name: str, sightings: Iterable[Sighting]) -> str:
    """Returns an error that names the clusters of the dump `name`, or an empty string if it has one at most."""
    sightings = tuple(sightings)
    for kind in ("ClusterVersion", "Namespace"):
        clusters: list[Sighting] = []
        for sighting in sightings:
            is_of_kind = sighting.obj.get("kind", "ClusterVersion") == kind
            if is_of_kind and not any(_is_same(sighting, other) for other in clusters):
                clusters.append(sighting)
        if len(clusters) < 2:
            continue
        rows = []
        for sighting in clusters[:MAX_NAMED]:
            cluster_id, uid, *_ = _identifying_marks(sighting.obj)
            version = str(mapping(mapping(sighting.obj, "status"), "desired").get("version") or "")
            text = f"cluster {cluster_id}" if cluster_id else f"uid {uid}" if uid else "a cluster without an id"
            rows.append(f"  {sighting.place}: {text}{f', at {version}' if version else ''}")
        more = [f"  and {len(clusters) - MAX_NAMED} more"] * (len(clusters) > MAX_NAMED)
        hint = "give each of them by itself, with its own folder"
        return "\n".join([f"{name} holds {len(clusters)} clusters; {hint}:", *rows, *more])
    return ""


def _is_same(first: Sighting, other: Sighting) -> bool:
    """Compares the first identifier that both have; without any, one place is one cluster."""
    for mark, yours in zip(_identifying_marks(first.obj), _identifying_marks(other.obj), strict=True):
        if mark and yours:
            return mark == yours
    return first.place == other.place


def _identifying_marks(obj: JSON) -> tuple[str, ...]:
    """Returns what stays the same for a cluster: its id, the object's uid and creation, when it was installed."""
    metadata, history = mapping(obj, "metadata"), mapping(obj, "status").get("history")
    first = history[-1] if isinstance(history, list) and history and isinstance(history[-1], dict) else {}
    return (
        str(mapping(obj, "spec").get("clusterID") or ""),
        str(metadata.get("uid") or ""),
        str(metadata.get("creationTimestamp") or ""),
        str(first.get("startedTime") or ""),
    )


# `kubectl version -o json` in a folder, sonobuoy's and troubleshoot's files, the record of `runup dump collect`.
_FILES = ("version.json", "version.yaml", "version.yml", "serverversion.json", COLLECTED)
_TROUBLESHOOT = "cluster-info/cluster_version.json"
_KEYS = ("gitVersion", "kubernetesVersion")
_ABOVE = ("serverVersion", "info")
_TAG = re.compile(r"/kube-apiserver(?:-[a-z0-9]+)?:v(\d+\.\d+\.\d+[^@]*)")
_OPENSHIFT_GROUPS = ("config.openshift.io", "machineconfiguration.openshift.io", "operator.openshift.io")
_OPENSHIFT_SYSTEM = "Red Hat Enterprise Linux CoreOS"


@dataclass(frozen=True, slots=True)
class KubernetesVersion:
    """The version of the API server, empty if it is not known. `notes` say where it is less than certain."""

    version: str = ""
    notes: tuple[str, ...] = ()


def version_in(layout: Layout, objects: Iterable[JSON]) -> KubernetesVersion:
    """Returns the version that the dump's cluster runs: as a server answered, else by its pods, else by its nodes."""
    objects = tuple(objects)
    answered = (_of_file(layout.root / name) for name in (*_FILES, _TROUBLESHOOT))
    if version := next(filter(None, answered), ""):
        return KubernetesVersion(version)

    def age_order(version: str) -> tuple[int, ...]:
        return leading_numbers(version) or ()

    # In the image tags of the API server's pods.
    running: list[str] = []
    for obj in objects:
        _group, kind, namespace, name = identity(obj)
        if kind == "Pod" and namespace == "kube-system" and name.startswith("kube-apiserver"):
            containers = mapping(obj, "spec").get("containers") or ()
            images = [str(each.get("image") or "") for each in containers if isinstance(each, dict)]
            running += [match[1] for match in map(_TAG.search, images) if match]
    if running:
        return KubernetesVersion(max(running, key=age_order))
    nodes = [obj for obj in objects if identity(obj)[:2] == ("", "Node")]
    kubelets = [str(_node_info(node).get("kubeletVersion") or "") for node in nodes]
    newest = max(filter(leading_numbers, kubelets), key=age_order, default="")
    if not newest:
        return KubernetesVersion()
    note = f"the API server's version is not in the dump; taken to be that of the newest kubelet, {newest}"
    return KubernetesVersion(newest, (f"{note} (another: --from VERSION)",))


def is_version_file(file: Path) -> bool:
    """Returns whether the file holds what a server answered to `/version`, and no object."""
    return file.name in _FILES and bool(_of_file(file))


def evidence_of_openshift(objects: Iterable[JSON]) -> str:
    """Returns a text with the evidence that the cluster runs OpenShift, or an empty string."""
    for obj in objects:
        group, kind, _namespace, name = identity(obj)
        if group in _OPENSHIFT_GROUPS:
            return f"{kind} {name}"
        if kind == "Node" and str(_node_info(obj).get("osImage") or "").startswith(_OPENSHIFT_SYSTEM):
            return f"the system of Node {name}"
    return ""


def _of_file(file: Path) -> str:
    """Returns the version of Kubernetes that a file of answers names, empty if it cannot be read or names none."""
    if not file.is_file():
        return ""
    try:
        data = read_limited(file, MIB)
        document: Any = json.loads(data) if file.suffix == ".json" else kyaml.load(data, name=file.name)
    except (OSError, ValueError, RecursionError):
        return ""
    return _version_in(document)


def _version_in(document: Any) -> str:
    """Returns the Kubernetes version that a document says, or an empty string."""
    if not isinstance(document, dict):
        return ""
    for above in _ABOVE:
        if isinstance(document.get(above), dict):
            return _version_in(document[above])
    version_text = next((str(document[key]) for key in _KEYS if document.get(key)), "")
    return version_text if leading_numbers(version_text) else ""


def _node_info(node: JSON) -> JSON:
    return mapping(mapping(node, "status"), "nodeInfo")
