"""Warnings about writes that are not refused: the `WarningsOnCreate` and `WarningsOnUpdate` of registries.

In: a kind, the object and the one before it. Out: texts for `Warning` headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.metadata import meta
from kubesandbox.apiserver.schema.crd_versions import unrecognized_formats
from kubesandbox.apiserver.schema.object_meta import STANDARD_FINALIZERS, qualified_name
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.validation import pod_warnings

JSON = dict[str, Any]


def of(kind: Kind, obj: JSON, old: JSON | None) -> list[str]:
    """Returns the warnings of a write, without those that already applied to the old object."""
    if kind.custom:
        new = {*(meta(obj).get("finalizers") or ())} - {*(meta(old or {}).get("finalizers") or ())}
        return [text for finalizer in sorted(new) for text in _finalizer(finalizer)]
    if (template := _TEMPLATES.get(kind.resource)) is not None:
        return _template(kind, template, obj, old)
    if kind.kind == "CustomResourceDefinition":
        known = unrecognized_formats(old) if old else []
        return [f'unrecognized format "{name}"' for name in unrecognized_formats(obj) if name not in known]
    return []


# The path of the pod spec, by resource.
_TEMPLATES = {
    "pods": "spec",
    "jobs.batch": "spec.template.spec",
    "cronjobs.batch": "spec.jobTemplate.spec.template.spec",
    **{f"{name}.apps": "spec.template.spec" for name in ("deployments", "replicasets", "statefulsets", "daemonsets")},
}


def _template(kind: Kind, path: str, obj: JSON, old: JSON | None) -> list[str]:
    """Returns the warnings about a pod spec: of a pod when it is new, of a template when the generation changed."""
    if old is not None and (kind.kind == "Pod" or meta(obj).get("generation") == meta(old).get("generation")):
        return []
    spec: Any = obj
    for part in path.split("."):
        spec = (spec or {}).get(part)
    return pod_warnings.pod_spec(spec or {}, path)


def _finalizer(name: str) -> Iterator[str]:
    path = f'metadata.finalizers: "{name}"'
    for why in qualified_name(name):
        yield f"{path}: {why}"
    if "/" not in name and name not in STANDARD_FINALIZERS:
        how = " including a path (/)" if "." in name else ""
        why = (
            f"prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
        )
        yield f"{path}: {why}"
