"""Decides which manifests of a release a cluster gets: filters in a fixed order, the first that objects decides.

Takes a manifest and `Filters` (None disables a filter); returns `Included`, or `Excluded` with the reason in the words
of the cluster-version operator. The same function decides over a release's checks. Rules and their order:
docs/reference/upstream.md 2; the messages are those of openshift/library-go's manifest package, which users search for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ComponentOverride
from runup.release.decide.capabilities import Capabilities
from runup.release.decide.manifest import Manifest

DEFAULT_PROFILE = "self-managed-high-availability"
FEATURE_SET = "release.openshift.io/feature-set"
FEATURE_GATE = "release.openshift.io/feature-gate"
MAJOR_VERSION = "release.openshift.io/major-version"
CAPABILITY = "capability.openshift.io/name"
INCLUDE_PREFIX = "include.release.openshift.io/"
EXCLUDE_PREFIX = "exclude.release.openshift.io/"

DEFAULT_FEATURE_SET = "Default"
"""The name in annotations of the feature set that is an empty string in the API."""

FEATURE_SETS = ("CustomNoUpgrade", DEFAULT_FEATURE_SET, "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade")

# The kinds for which openshift/library-go supports the annotation.
_WITH_MAJOR_VERSION = frozenset(
    {("config.openshift.io", "FeatureGate"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
)
# Go's unicode.IsSpace, which differs from str.strip: U+001C to U+001F are no white space there.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"  # noqa: E501
_DIGITS = re.compile(r"[0-9]+\Z")
_UINT64_MAX = 2**64 - 1


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """The known facts of the cluster; a filter that is None (or no overrides) does not filter.

    `feature_set` is the API's value, `""` for the default set. `unknown_capabilities_allowed` is for loading a release
    that may define capabilities which the running one does not know.
    """

    exclude_identifier: str | None = None
    feature_set: str | None = None
    gates: frozenset[str] | None = None
    major: int | None = None
    profile: str | None = None
    capabilities: Capabilities | None = None
    unknown_capabilities_allowed: bool = False
    overrides: tuple[ComponentOverride, ...] = ()


def feature_set_and_gates(gate: FeatureGate | None, version: str) -> tuple[str, frozenset[str]]:
    """Returns the feature set and the gates that are enabled for `version`; empty if the cluster does not say.

    A FeatureGate that is absent, cannot be read, or has no entry for the version filters like one that enables nothing
    (docs/reference/upstream.md 2.4: no feature sets are assumed until it was retrieved; docs/decisions/0028).
    """
    if gate is None:
        return "", frozenset()
    enabled = next((entry.enabled for entry in gate.status.feature_gates if entry.version == version), ())
    return gate.spec.feature_set, frozenset(attribute.name for attribute in enabled)


class Included(msgspec.Struct, frozen=True):
    """The decision that the cluster gets the manifest."""


class Excluded(msgspec.Struct, frozen=True):
    """The decision that the cluster does not get the manifest."""

    reason: str


Decision = Included | Excluded
Annotations = dict[str, str]


def include(manifest: Manifest, filters: Filters) -> Decision:
    """Decides whether a cluster as `filters` describe it gets `manifest`."""
    annotations = manifest.annotations
    if annotations is None:
        return Excluded("no annotations")
    for objection in RULES.values():
        if reason := objection(manifest, annotations, filters):
            return Excluded(reason)
    return Included()


def capabilities_of(annotations: Annotations | None) -> tuple[str, ...]:
    """Returns the capabilities that a manifest belongs to; an empty annotation means none."""
    value = (annotations or {}).get(CAPABILITY, "")
    return tuple(value.split("+")) if value else ()


def gates_of(annotations: Annotations) -> frozenset[str]:
    """Returns the gates that a manifest names, required or excluded."""
    return frozenset(item.removeprefix("-") for item in _split_list(annotations.get(FEATURE_GATE, "")))


def _identifier(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    if filters.exclude_identifier is None:
        return ""
    key = EXCLUDE_PREFIX + filters.exclude_identifier
    return f"{key}=true" if annotations.get(key) == "true" else ""


def _annotation_conflict(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why a manifest with both annotations is not applied, or an empty string."""
    active = filters.feature_set is not None and filters.gates is not None
    if active and FEATURE_SET in annotations and FEATURE_GATE in annotations:
        return (
            "both feature set and feature gate annotations are present: "
            "manifests may specify either a feature set or a feature gate, but not both"
        )
    return ""


def _feature_set(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why the feature set keeps the manifest out, empty if it does not."""
    value = annotations.get(FEATURE_SET)
    if filters.feature_set is None or value is None:
        return ""
    feature_sets = value.split(",")
    for item in feature_sets:
        if item not in FEATURE_SETS:
            known_sets = ",".join(FEATURE_SETS)
            return f"unrecognized value {_quote(item)} in {FEATURE_SET}={value}; known values are: {known_sets}"
    current = filters.feature_set or DEFAULT_FEATURE_SET
    if current in feature_sets:
        return ""
    return f"{_quote(current)} is required, and {FEATURE_SET}={','.join(sorted(set(feature_sets)))}"


def _gates(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why the feature gates keep the manifest out, empty if they do not."""
    if filters.gates is None:
        return ""
    for item in _split_list(annotations.get(FEATURE_GATE, "")):
        if item.startswith("-"):
            if item[1:] in filters.gates:
                return f"feature gate {item[1:]} is enabled but manifest requires it to be disabled"
        elif item not in filters.gates:
            return f"feature gate {item} is required but not enabled"
    return ""


def _major(manifest: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why the release's major version keeps the manifest out, empty if it does not."""
    value = annotations.get(MAJOR_VERSION)
    if filters.major is None or value is None:
        return ""
    if (manifest.identity.group, manifest.identity.kind) not in _WITH_MAJOR_VERSION:
        return "major version filtering is only supported for feature gates and custom resources"
    included: set[int] = set()
    excluded: set[int] = set()
    for item in _split_list(value):
        negative = item.startswith("-")
        digits = item[1:] if negative else item
        problem = ""
        # In the words of Go. The length is checked first, because Python's int() refuses thousands of digits.
        if _DIGITS.match(digits) is None:
            problem = f"strconv.ParseUint: parsing {_quote(digits)}: invalid syntax"
        elif len(digits.lstrip("0")) > len(str(_UINT64_MAX)) or int(digits.lstrip("0") or "0") > _UINT64_MAX:
            problem = f"strconv.ParseUint: parsing {_quote(digits)}: value out of range"
        if problem:
            kind = "excluded" if negative else "included"
            return f"invalid {kind} major version {_quote(digits)} in annotation: {problem}"
        (excluded if negative else included).add(int(digits))
    if overlap := sorted(included & excluded):
        return f"inclusion and exclusion requirements overlap: [{' '.join(str(number) for number in overlap)}]"
    if filters.major in included:
        return ""
    if filters.major in excluded:
        return f"major version {filters.major} matches excluded version {filters.major}"
    return f"major version {filters.major} does not match any required versions" if included else ""


def _profile_mismatch(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why the manifest is not for this cluster profile, or an empty string."""
    if filters.profile is None:
        return ""
    key = INCLUDE_PREFIX + filters.profile
    value = annotations.get(key)
    if value is None:
        return f"{key} unset"
    return "" if value == "true" else f"unrecognized value {key}={value}"


def _capabilities(_: Manifest, annotations: Annotations, filters: Filters) -> str:
    """Returns why the capabilities keep the manifest out, empty if they do not."""
    if filters.capabilities is None:
        return ""
    capability_names = capabilities_of(annotations)
    unknown = [name for name in capability_names if name not in filters.capabilities.known]
    if unknown and not filters.unknown_capabilities_allowed:
        return f"unrecognized capability names: {', '.join(unknown)}"
    disabled = [name for name in capability_names if name not in filters.capabilities.enabled]
    return f"disabled capabilities: {', '.join(disabled)}" if disabled else ""


def _override_of(manifest: Manifest, _: Annotations, filters: Filters) -> str:
    """Returns `overridden` if the administrator manages the object, or an empty string."""
    identity = manifest.identity
    for override in filters.overrides:
        # For a manifest without a namespace the override's namespace is ignored, whatever the scope of its kind.
        namespace = override.namespace if identity.namespace else ""
        if (override.group, override.kind, namespace, override.name) == (
            identity.group,
            identity.kind,
            identity.namespace,
            identity.name,
        ):
            return "overridden" if override.unmanaged else ""
    return ""


RULES: dict[str, Callable[[Manifest, Annotations, Filters], str]] = {
    "excluded identifier": _identifier,
    "set and gates together": _annotation_conflict,
    "feature set": _feature_set,
    "feature gates": _gates,
    "major version": _major,
    "profile": _profile_mismatch,
    "capabilities": _capabilities,
    "overrides": _override_of,
}
"""The rules by name, in the order of evaluation; each returns an objection in words, or an empty string."""


def _split_list(value: str) -> list[str]:
    return [item for item in (part.strip(_SPACE) for part in value.split(",")) if item]


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
