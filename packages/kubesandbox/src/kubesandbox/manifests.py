"""Reads objects from YAML and JSON files, and creates them on a server.

`read` and `definitions` take a file or folder and return `Document`s. `load` creates their objects on a server and
returns them as the server has them: CustomResourceDefinitions first, then, once their kinds are served, Namespaces and
all others. All three raise SandboxError, which names the file, or the object if it was not read from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock, SystemClock
from kubekit.lang import files, yaml
from kubesandbox.sandbox_error import SandboxError

JSON = dict[str, Any]
DEFINITION = "CustomResourceDefinition"
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", DEFINITION, "customresourcedefinitions", namespaced=False)
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
            raise _sandbox_error(f"{document.file}: a document has no apiVersion or no kind", "NotAnObject")
    return documents


def definitions(path: Path) -> list[Document]:
    """Returns the CustomResourceDefinitions of a file, or of the files below a folder; other documents are ignored.

    A folder of an operator often holds its kustomization beside them. Raises SandboxError if there is none.
    """
    documents = [document for document in _documents_below(path) if document.object.get("kind") == DEFINITION]
    if not documents:
        raise _sandbox_error(
            f"{path}: there is no CustomResourceDefinition in it; name the folder that holds them", "NoDefinition"
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
        _await_served(client, document, definition, clock)
    return [*created, *(_create_or_replace(client, document, namespace) for document in ordered[len(first) :])]


def _documents_below(path: Path) -> Iterator[Document]:
    """Yields every document of a file, or of the files below a folder, by name. Raises SandboxError."""
    if not path.exists():
        raise _sandbox_error(f"{path}: there is no such file or folder", "NotFound")
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
        raise _sandbox_error(f"{error}; it must be YAML or JSON", "NotYaml") from error
    except OSError as error:
        raise _sandbox_error(f"{file}: cannot be read ({error.strerror})", "NotReadable") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise _sandbox_error(f"{file}: a document is not an object but {type(document).__name__}", "NotAnObject")
        for obj in _expand_list(document):
            yield Document(obj, str(file))


def _expand_list(document: JSON) -> list[JSON]:
    """Returns the objects of a `kind: List`, or the object itself."""
    items = document.get("items")
    if document.get("kind") == "List" and isinstance(items, list):
        return [item for item in items if isinstance(item, dict)]
    return [document]


def _create_or_replace(client: SyncClient, document: Document, namespace: str) -> JSON:
    """Creates an object, or replaces one of its name; returns it as the server has it. Raises SandboxError."""
    try:
        resource = _resource_of(client, document)
        obj = document.object
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
        raise _sandbox_error(f"{document}: {error.message}", error.reason) from error


def _resource_of(client: SyncClient, document: Document) -> Resource:
    """Returns the resource of a document's kind. Raises SandboxError if it is not served."""
    api_version, kind = str(document.object.get("apiVersion")), document.object.get("kind")
    try:
        served = client.send(calls.list_kinds(api_version))
    except NotFound:
        served = ()
    match = next((resource for resource in served if resource.kind == kind), None)
    if match is None:
        raise _sandbox_error(f"{document}: the server has no kind {kind} of {api_version}", "UnknownKind")
    return match


def _await_served(client: SyncClient, document: Document, definition: JSON, clock: Clock) -> None:
    """Waits until every version of a definition's kind can be listed, which takes a server a moment.

    Raises SandboxError if the server rejects the definition's names or takes too long.
    """
    deadline = clock.monotonic() + _SERVED_TIMEOUT_S
    while not _is_served(client, definition["spec"]):
        problem = _name_problem(client, definition["metadata"]["name"])
        if problem or clock.monotonic() > deadline:
            raise _sandbox_error(
                f"{document}: {problem or f'was not served within {_SERVED_TIMEOUT_S:g} s'}", "NotServed"
            )
        clock.pause(_POLL_INTERVAL_S)


def _is_served(client: SyncClient, spec: JSON) -> bool:
    """Returns whether every served version of a definition can be listed."""
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    try:
        for version in spec["versions"]:
            if version["served"]:
                resource = Resource(spec["group"], version["name"], names["kind"], names["plural"], namespaced)
                # A list proves that the kind is served; Established alone does not yet.
                client.send(calls.list_raw(resource, limit=1))
    except NotFound:
        return False
    return True


def _name_problem(client: SyncClient, name: str) -> str:
    """Returns why the server does not accept the names of a definition, or ""."""
    conditions = client.send(calls.get_raw(DEFINITIONS, name)).get("status", {}).get("conditions") or ()
    refused = (
        condition for condition in conditions if condition["type"] == "NamesAccepted" and condition["status"] == "False"
    )
    return next((str(condition.get("message")) for condition in refused), "")


def _sandbox_error(message: str, reason: str) -> SandboxError:
    return SandboxError(message, reason=reason)
