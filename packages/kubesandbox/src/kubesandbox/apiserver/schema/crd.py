"""Validation of CustomResourceDefinitions, and the compiled schema of each version.

In: a CRD (apiextensions.k8s.io/v1) as a dict. Out: FieldErrors as apiextensions-apiserver words them, and one compiled
Schema a version. This prevents a CRD from being accepted whose objects then cannot be validated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.schema.crd_versions import version_faults
from kubesandbox.apiserver.schema.field_errors import FieldError, forbidden, invalid, not_supported, one_of, required
from kubesandbox.apiserver.schema.name_rules import dns1035_label_faults, dns1123_subdomain_faults
from kubesandbox.apiserver.schema.object_schema import Schema, compile_schema

JSON = dict[str, Any]
Errors = Iterator[FieldError]

_PRESERVE_ALL: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def compile_crd(crd: JSON) -> tuple[list[FieldError], dict[str, Schema]]:
    """Returns the faults of `crd`, and the Schema of each version by its name; no schemas if there are faults."""
    errors = validate_crd(crd)
    return errors, ({} if errors else schemas_by_version(crd))


def schemas_by_version(crd: JSON) -> dict[str, Schema]:
    """Returns the Schema of each version by its name. A version without a schema preserves all fields."""
    return {version["name"]: compile_schema(version_schema(version)) for version in crd["spec"]["versions"]}


def version_schema(version: JSON) -> JSON:
    """Returns the OpenAPI v3 schema of one entry of `spec.versions`."""
    schema: JSON = (version.get("schema") or {}).get("openAPIV3Schema") or _PRESERVE_ALL
    return schema


def validate_crd(crd: JSON) -> list[FieldError]:
    """Returns the faults of a new CustomResourceDefinition."""
    spec = crd.get("spec") or {}
    return [*_name_faults(crd, spec), *_remaining_faults(crd, None)]


def validate_crd_update(crd: JSON, old: JSON) -> list[FieldError]:
    """Returns the faults of updating `old` to `crd`. Scope, group, plural and kind are immutable."""
    errors = _remaining_faults(crd, old)
    spec, former = crd.get("spec") or {}, old.get("spec") or {}
    names, old_names = spec.get("names") or {}, former.get("names") or {}
    for path, new_value, old_value in (
        ("spec.scope", spec.get("scope"), former.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.group", spec.get("group"), former.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if new_value != old_value:
            errors.append(invalid(path, new_value, "field is immutable"))
    return errors


def _remaining_faults(crd: JSON, old: JSON | None) -> list[FieldError]:
    spec = crd.get("spec") or {}
    return [*_spec_faults(spec), *version_faults(spec), *_stored_version_faults(crd), *_approval_faults(crd, old)]


def _name_faults(crd: JSON, spec: JSON) -> Errors:
    name = (crd.get("metadata") or {}).get("name", "")
    expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name != expected:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _approval_faults(crd: JSON, old: JSON | None) -> Errors:
    """Yields a fault if a CRD in one of Kubernetes' own groups lacks the annotation of its API review."""
    group = (crd.get("spec") or {}).get("group", "")
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    approval = _approval_annotation(crd)
    why = f'protected groups must have approval annotation "{_APPROVAL}"'
    annotation_path = f"metadata.annotations[{_APPROVAL}]"
    # An unchanged annotation passes, so that old definitions can still be updated.
    if old is not None and _approval_annotation(old) == approval:
        return
    if not approval:
        yield required(annotation_path, f"{why}, see {_APPROVAL_RULES}")
    elif not approval.startswith(("unapproved", "http://", "https://")):
        detail = f'{why} with either a URL or a reason starting with "unapproved", see {_APPROVAL_RULES}'
        yield invalid(annotation_path, approval, detail)


def _approval_annotation(crd: JSON) -> str:
    return str(((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL, ""))


_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULES = "https://github.com/kubernetes/enhancements/pull/1111"


def _spec_faults(spec: JSON) -> Errors:
    """Yields the faults of a definition's group, scope, names and conversion."""
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield required("spec.group")
    elif faults := dns1123_subdomain_faults(group):
        yield invalid("spec.group", group, faults)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    yield from _names_faults(spec.get("names") or {})
    yield from _conversion_faults(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        yield invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def _names_faults(names: JSON) -> Errors:
    """Yields the faults of a definition's names, by the rules for DNS labels."""
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or (_default_name(names, key) if key in ("singular", "listKind") else "")
        if not value:
            yield required(f"spec.names.{key}")
        elif faults := dns1035_label_faults(value.lower() if key in ("kind", "listKind") else value):
            mixed = "may have mixed case, but should otherwise match: " if key in ("kind", "listKind") else ""
            yield invalid(f"spec.names.{key}", value, mixed + faults)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if faults := dns1035_label_faults(value):
                yield invalid(f"spec.names.{key}[{index}]", value, faults)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _default_name(names: JSON, key: str) -> str:
    """Returns the value that the server fills in by default."""
    kind = str(names.get("kind") or "")
    return kind.lower() if key == "singular" else (f"{kind}List" if kind else "")


def _conversion_faults(conversion: JSON) -> Errors:
    """Yields the faults of a conversion: strategy, webhook and review versions."""
    strategy, webhook = conversion.get("strategy") or "None", conversion.get("webhook") or {}
    reviews, client = webhook.get("conversionReviewVersions"), webhook.get("clientConfig")
    yield from one_of("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        config_path = "spec.conversion.webhookClientConfig"
        if client is None:
            yield required(config_path, "required when strategy is set to Webhook")
        # Both or neither.
        elif (client.get("url") is None) == (client.get("service") is None):
            yield required(config_path, "exactly one of url or service is required")
        if not reviews:
            yield required("spec.conversion.conversionReviewVersions")
        elif not {"v1", "v1beta1"} & {*reviews}:
            detail = "must include at least one of v1, v1beta1"
            yield invalid("spec.conversion.conversionReviewVersions", reviews, detail)
        return
    for value, name in ((client, "webhookClientConfig"), (reviews, "conversionReviewVersions")):
        if value:
            yield forbidden(f"spec.conversion.{name}", "should not be set when strategy is not set to Webhook")


def _stored_version_faults(crd: JSON) -> Errors:
    """Yields a fault for each stored version that the spec no longer has, and if the storage version is not listed."""
    # A new definition may come without status; the server sets storedVersions.
    if "status" not in crd:
        return
    path, versions = "status.storedVersions", (crd.get("spec") or {}).get("versions") or ()
    stored = (crd.get("status") or {}).get("storedVersions") or []
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version['name']}")
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            yield invalid(f"{path}[{index}]", name, _STILL_STORED.format(name))


_STILL_STORED = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)
