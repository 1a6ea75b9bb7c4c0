"""Reads objects from YAML and JSON files, and creates them on a server.

`read` and `definitions` take a file or folder and return `Document`s. `load` creates their objects on a server and
returns them as the server has them: CustomResourceDefinitions first, then, once their kinds are served, Namespaces and
all others. All three raise SandboxError, which names the file, or the object if it was not read from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang import files, yaml
from kubesandbox.sandbox_error import SandboxError

JSON = dict[str, Any]
DEFINITION = "CustomResourceDefinition"
DEFINITIONS = Resource(
    group="apiextensions.k8s.io", version="v1", kind=DEFINITION, plural="customresourcedefinitions", namespaced=False
)
MANAGER = "kubesandbox"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
# Kinds that other objects need come first; sorting is stable, so the rest keeps its order.
_ORDER = {DEFINITION: 0, "Namespace": 1}
# Seconds within which a server must serve the kind of a new definition, and between two looks at that.
_SERVED_TIMEOUT_S = 15.0
_POLL_INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True)
class Document:
    """An object, and the file that it was read from ("" if it was given as an object)."""

    object: JSON
    file: str = ""

    def __str__(self) -> str:
        metadata = self.object.get("metadata") or {}
        object_text = f"{self.object.get('kind')} {metadata.get('name') or metadata.get('generateName')}"
        return f"{self.file}: {object_text}" if self.file else object_text


def read(path: Path) -> list[Document]:
    """Returns every object of a file, or of the files below a folder ordered by name. Raises SandboxError."""
    documents = list(_documents_below(path))
    for document in documents:
        if not isinstance(document.object.get("kind"), str) or not isinstance(document.object.get("apiVersion"), str):
            raise SandboxError(f"{document.file}: a document has no apiVersion or no kind", reason="NotAnObject")
    return documents


def definitions(path: Path) -> list[Document]:
    """Returns the CustomResourceDefinitions of a file, or of the files below a folder; other documents are ignored.

    A folder of an operator often also holds its kustomization. Raises SandboxError if it does not exist.
    """
    documents = [document for document in _documents_below(path) if document.object.get("kind") == DEFINITION]
    if not documents:
        raise SandboxError(
            f"{path}: there is no CustomResourceDefinition in it; name the folder that holds them",
            reason="NoDefinition",
        )
    return documents


def load(client: SyncClient, documents: Iterable[Document], *, namespace: str = "default") -> list[JSON]:
    """Creates the objects and returns them as the server has them, definitions first. Raises SandboxError.

    An existing object is replaced, as `kubectl replace` does. `namespace` is for objects that need one and name none.
    """
    clock = SystemClock()
    ordered = sorted(documents, key=lambda document: _ORDER.get(document.object.get("kind", ""), 2))
    first = [document for document in ordered if document.object.get("kind") == DEFINITION]
    created = [_create_or_replace(client, document, "") for document in first]
    for document, definition in zip(first, created, strict=True):
        # It takes a server a moment until every version can be listed.
        deadline = clock.monotonic() + _SERVED_TIMEOUT_S
        while not _is_served(client, definition["spec"]):
            status = client.send(calls.get_raw(DEFINITIONS, definition["metadata"]["name"])).get("status", {})
            problem = f"was not served within {_SERVED_TIMEOUT_S:g} s" if clock.monotonic() > deadline else ""
            for condition in status.get("conditions") or ():
                if condition["type"] == "NamesAccepted" and condition["status"] == "False":
                    problem = str(condition.get("message")) or problem
            if problem:
                raise SandboxError(f"{document}: {problem}", reason="NotServed")
            clock.pause(_POLL_INTERVAL_S)
    return [*created, *(_create_or_replace(client, document, namespace) for document in ordered[len(first) :])]


def _documents_below(path: Path) -> Iterator[Document]:
    """Yields every document of a file, or of the files below a folder, by name. Raises SandboxError."""
    if not path.exists():
        raise SandboxError(f"{path}: there is no such file or folder", reason="NotFound")
    if path.is_file():
        yield from _objects_of(path)
        return
    for file in sorted(path.rglob("*")):
        if file.suffix in _SUFFIXES and file.is_file():
            yield from _objects_of(file)


def _objects_of(file: Path) -> Iterator[Document]:
    """Yields the objects of one file. Raises SandboxError if it cannot be read."""
    try:
        documents = yaml.load_all(files.read_limited(file), name=str(file))
    except yaml.YamlError as error:
        raise SandboxError(f"{error}; it must be YAML or JSON", reason="NotYaml") from error
    except OSError as error:
        raise SandboxError(f"{file}: cannot be read ({error.strerror})", reason="NotReadable") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise SandboxError(
                f"{file}: a document is not an object but {type(document).__name__}", reason="NotAnObject"
            )
        items = document.get("items") if document.get("kind") == "List" else None
        objects = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else [document]
        yield from (Document(obj, str(file)) for obj in objects)


def _create_or_replace(client: SyncClient, document: Document, namespace: str) -> JSON:
    """Creates an object, or replaces one of its name; returns it as the server has it. Raises SandboxError."""
    try:
        obj, served = document.object, tuple[Resource, ...]()
        api_version, kind = str(obj.get("apiVersion")), obj.get("kind")
        with suppress(NotFound):
            served = client.send(calls.list_kinds(api_version))
        resource = next((resource for resource in served if resource.kind == kind), None)
        if resource is None:
            raise SandboxError(f"{document}: the server has no kind {kind} of {api_version}", reason="UnknownKind")
        metadata = dict(obj.get("metadata") or {})
        if resource.namespaced:
            metadata.setdefault("namespace", namespace)
        try:
            return client.send(calls.create(resource, {**obj, "metadata": metadata}, field_manager=MANAGER))
        except AlreadyExists:
            before = client.send(calls.get_raw(resource, metadata["name"], metadata.get("namespace", "")))
            # Custom resources need the revision in a PUT; with it, a concurrent change is a conflict.
            metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
            return client.send(calls.replace(resource, {**obj, "metadata": metadata}, field_manager=MANAGER))
    except KubeError as error:
        raise SandboxError(f"{document}: {error.message}", reason=error.reason) from error


def _is_served(client: SyncClient, spec: JSON) -> bool:
    names = spec["names"]
    try:
        for version in spec["versions"]:
            if version["served"]:
                resource = Resource(
                    group=spec["group"],
                    version=version["name"],
                    kind=names["kind"],
                    plural=names["plural"],
                    namespaced=spec["scope"] == "Namespaced",
                )
                # A list proves that the kind is served; Established alone does not yet.
                client.send(calls.list_raw(resource, limit=1))
    except NotFound:
        return False
    return True
