"""Reads one file of a dump into its objects, with a message for each item that is not one.

A bad item does not affect the others. Items of a list may omit the kind that the list states; an Insights archive omits
it everywhere, so there the path determines the kind (docs of the Insights operator, "gathered data").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubekit.lang import yaml as kyaml
from kubekit.lang.files import read_limited
from runup.api.clusterversion_json import mapping, mappings
from runup.dump import dump_files as bundles
from runup.dump import large_lists
from runup.dump.documents import JSON, identity
from runup.dump.dump_limits import MAX_FILE_BYTES, TooMuchToDecode, read_dump_file, text_of

# Bytes above which the spec of a MachineConfig is not parsed.
_LARGE = 64 * 1024
_LISTS = frozenset({"", "List"})
_CONFIG = "config.openshift.io/v1"
# Folder or file below `config/` of an Insights archive -> the kind of its objects.
INSIGHTS = {
    "version": (_CONFIG, "ClusterVersion"),
    "clusterversion": (_CONFIG, "ClusterVersion"),
    "clusteroperator": (_CONFIG, "ClusterOperator"),
    "featuregate": (_CONFIG, "FeatureGate"),
    "infrastructure": (_CONFIG, "Infrastructure"),
    "network": (_CONFIG, "Network"),
    "proxy": (_CONFIG, "Proxy"),
    "node": ("v1", "Node"),
    "pod": ("v1", "Pod"),
    "pdbs": ("policy/v1", "PodDisruptionBudget"),
    "machineconfigpools": ("machineconfiguration.openshift.io/v1", "MachineConfigPool"),
    "machineconfigs": ("machineconfiguration.openshift.io/v1", "MachineConfig"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "certificatesigningrequests": ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    "crd": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "machines": ("machine.openshift.io/v1beta1", "Machine"),
    "mutatingwebhookconfigurations": ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    "validatingwebhookconfigurations": ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
}
EMPTY = "it is empty, as a collection that failed leaves it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list in a file: its apiVersion and kind as far as they are given, and what it holds.

    `held` has the namespaces of its items by (group, kind). `is_answer`: the API server or kubectl wrote it, and it was
    not cut off. An empty list needs no metadata for that: a person selects something. `is_cut`: a request for
    more of it was to follow. `counts` are of its items.
    """

    api_version: str
    kind: str
    held: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    is_answer: bool = False
    is_cut: bool = False
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of its items."""
        return frozenset().union(*self.held.values()) - {""}


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file. `problems` name the file and the omitted objects."""

    objects: tuple[JSON, ...] = ()
    lists: tuple[Listed, ...] = ()
    problems: tuple[str, ...] = ()


def read(file: Path, style: str, root: Path | None = None, *, packs: bool = False) -> Contents:
    """Returns the contents of `file`, which belongs to a dump of this style; invalid content never raises.

    In a bundle, whose folder is `root`, an array is a list. With `packs` the items of large lists are packed.
    """
    if style == "insights" and (below := _below_config(file))[:1] == ("configmaps",) and len(below) == 4:
        try:
            return Contents(objects=tuple(_config_map(file, below)))
        except OSError as error:
            return Contents(problems=(f"{file}: cannot be read: {error}",))
    try:
        if head := _configuration(file):
            documents = [head]
        else:
            data = read_dump_file(file)
            try:
                documents = list(kyaml.load_all(text_of(data)))
            except TooMuchToDecode:
                # Of a large list, the objects that fit into memory.
                if (large_list := large_lists.read(data, packs=packs)) is None:
                    raise
                documents = [large_list]
    except (OSError, UnicodeDecodeError) as error:
        return Contents(problems=(f"{file}: cannot be read: {error}",))
    except ValueError as error:
        return Contents(problems=(f"{file}: {error}",))
    if not any(document is not None for document in documents):
        return Contents(problems=(f"{file}: {EMPTY}",))
    if style == "bundle" and root is not None:
        # An array is the list that the API server answered.
        kind = bundles.kind_of(file, root)
        head = {"apiVersion": kind[0], "kind": f"{kind[1]}List"} if kind else {"apiVersion": "v1", "kind": "List"}
        documents = [{**head, "items": each} if isinstance(each, list) else each for each in documents]
    insights_type = insights_kind(file) if style == "insights" else None
    objects: list[JSON] = []
    lists: list[Listed] = []
    problems: list[str] = []
    for document in documents:
        if isinstance(document, dict) and insights_type is not None:
            if "metadata" not in document and isinstance(document.get("ObjectMeta"), dict):
                # Certificate requests are gathered with the field names of Go.
                conditions = mappings(mapping(document, "Status"), "Conditions")
                rows = [{key[:1].lower() + key[1:]: value for key, value in row.items()} for row in conditions]
                document = {"metadata": document["ObjectMeta"], "status": {"conditions": rows}}
            document = {"apiVersion": insights_type[0], "kind": insights_type[1], **document}
        elif isinstance(document, dict) and style == "insights" and "name" in document and "metadata" not in document:
            document = {**document, "metadata": {"name": document["name"]}}  # an operator's, of which it keeps the spec
        elif isinstance(document, dict) and style == "insights" and not document.get("kind"):
            continue  # a summary by the gatherer, not an object
        if _is_list(document):
            lists.append(_read_list(document))
        for number, item in enumerate(_items_of(document), 1):
            why = why_no_object(item)
            if not why:
                objects.append(item)
            elif item is not None:
                problems.append(f"{file}: {f'item {number} left out: ' if _is_list(document) else ''}{why}")
    return Contents(tuple(objects), tuple(lists), tuple(problems))


def _read_list(document: JSON) -> Listed:
    """Returns what a list holds: its kinds, their namespaces and numbers, and whether it was cut."""
    namespaces_by_kind: dict[tuple[str, str], frozenset[str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for item in _items_of(document):
        if not why_no_object(item):
            group, kind, namespace, _ = identity(item)
            namespaces_by_kind[group, kind] = namespaces_by_kind.get((group, kind), frozenset()) | {namespace}
            counts[group, kind] += 1
    metadata = document.get("metadata")
    # A list that was asked for in parts has a token for the next one (Kubernetes API concepts, "Retrieving large
    # results sets in chunks"); one that somebody put together has no metadata of a list.
    is_cut = isinstance(metadata, dict) and bool(metadata.get("continue") or metadata.get("remainingItemCount"))
    is_answer = not is_cut and (
        not namespaces_by_kind or (isinstance(metadata, dict) and "resourceVersion" in metadata)
    )
    api_version, kind = _text_at(document, "apiVersion"), _text_at(document, "kind")
    held = namespaces_by_kind
    return Listed(api_version=api_version, kind=kind, held=held, is_answer=is_answer, is_cut=is_cut, counts=counts)


def insights_kind(file: Path) -> tuple[str, str] | None:
    """Returns the apiVersion and kind of a file of an Insights archive, by its path below `config`, or None."""
    below = _below_config(file)
    if not below or len(below) > 3 or (below[0] == "clusteroperator" and len(below) > 2):
        return None
    return INSIGHTS.get(below[0].removesuffix(".json") if len(below) == 1 else below[0])


def _below_config(file: Path) -> tuple[str, ...]:
    parts = file.parts
    return parts[len(parts) - parts[::-1].index("config") :] if "config" in parts else ()


def _config_map(file: Path, below: Sequence[str]) -> Iterator[JSON]:
    """Yields the ConfigMap of a folder with a file for each of its keys, at the first of them."""
    files = sorted(each for each in file.parent.iterdir() if each.is_file())
    if file == files[0]:
        data = {each.name.removesuffix(".json"): read_limited(each).decode(errors="replace") for each in files}
        metadata = {"name": below[2], "namespace": below[1]}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def why_no_object(item: Any) -> str:
    """Returns why a document is not a Kubernetes object; empty if it is one."""
    if not isinstance(item, dict):
        return f"it is a {type(item).__name__}, not a Kubernetes object"
    if not _text_at(item, "kind") or not _text_at(item, "apiVersion"):
        return "it has no apiVersion and kind"
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return f"a {item['kind']} has no metadata.name"
    if not isinstance(metadata.get("namespace") or "", str):
        return f"the {item['kind']} {metadata['name']} has a namespace that is not text"
    return ""


_SPEC = re.compile(r"\nspec:[ ]*\n")


def _configuration(file: Path) -> JSON | None:
    """Returns the part of a large MachineConfig before its spec, or None for any other file.

    A rendered MachineConfig embeds whole files, and parsing them would take long.
    """
    if "machineconfigs" not in file.parts or file.stat().st_size <= _LARGE:
        return None
    text = read_limited(file, MAX_FILE_BYTES).decode(errors="replace")
    spec_start = _SPEC.search(text)
    head, after_spec = (text[: spec_start.start()], text[spec_start.end() :]) if spec_start else ("", "")
    if "\nmetadata:" not in f"\n{head}" or "\nmetadata:" in after_spec or "\nkind:" not in f"\n{head}":
        return None
    document = kyaml.load(head)
    return document if isinstance(document, dict) and document.get("kind") == "MachineConfig" else None


def _is_list(document: Any) -> bool:
    """Reports whether the document is a list of objects, such as a PodList."""
    if not isinstance(document, dict) or "items" not in document:
        return False
    kind, items = _text_at(document, "kind"), document["items"]
    # Go writes a list without items as null.
    return kind.endswith("List") if items is None else isinstance(items, list) and (kind or "List").endswith("List")


def _items_of(document: Any) -> Iterator[Any]:
    """Yields the objects in a document: itself, or the items of a list, to any depth."""
    if not _is_list(document):
        yield document
        return
    kind = _text_at(document, "kind")
    for item in document["items"] or ():
        if isinstance(item, dict) and kind not in _LISTS:
            item = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
        if _is_list(item):
            yield from _items_of(item)
        else:
            yield {} if item is None else item


def _text_at(document: Any, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""
