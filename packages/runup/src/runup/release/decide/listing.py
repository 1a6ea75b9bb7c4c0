"""Lists the manifests and checks of a release that a described cluster would get, and problems of the description.

No cluster is read: feature set, gates, profile, capabilities, major version and overrides are given. What is skipped or
cannot be read is listed beside the rest, and hides none of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kubekit.api import codec
from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml
from runup.api.config_v1 import ComponentOverride
from runup.release.decide.capabilities import KNOWN, Capabilities
from runup.release.decide.inclusion import (
    DEFAULT_FEATURE_SET,
    DEFAULT_PROFILE,
    FEATURE_SETS,
    INCLUDE_PREFIX,
    Excluded,
    Filters,
    gates_of,
    include,
)
from runup.release.decide.payload import Payload

BAD_CLUSTER = "BadCluster"


@dataclass(frozen=True, slots=True)
class Row:
    """A manifest or check, in the order of application; `reason` says why it is excluded.

    `state` is `in` or `out`, or for a file without an object `skipped` or `refused`.
    """

    object: str
    file: str
    included: bool
    reason: str = ""
    state: str = ""


def rows(payload: Payload, filters: Filters) -> tuple[Row, ...]:
    """Returns a row for each manifest and check of `payload`, included or not, and for each skipped file."""
    all_rows = []
    for manifest in (*payload.manifests, *payload.checks):
        decision = include(manifest, filters)
        reason = decision.reason if isinstance(decision, Excluded) else ""
        state = "out" if isinstance(decision, Excluded) else "in"
        all_rows.append(Row(str(manifest.identity), manifest.file, state == "in", reason, state))
    for skipped in payload.skipped:
        state = "refused" if skipped.broken else "skipped"
        # The file has a column of its own.
        reason = skipped.reason.removeprefix(skipped.file).lstrip(":, ")
        all_rows.append(Row("", skipped.file, included=False, reason=reason, state=state))
    return tuple(all_rows)


def notes(payload: Payload, filters: Filters) -> tuple[str, ...]:
    """Returns a note for each word of the description that nothing in the release uses: a typing mistake or another
    release.
    """
    annotations = [manifest.annotations or {} for manifest in (*payload.manifests, *payload.checks)]
    profiles = {
        key.removeprefix(INCLUDE_PREFIX)
        for annotations_of_one in annotations
        for key in annotations_of_one
        if _is_profile(key)
    }
    gates = {name for annotations_of_one in annotations for name in gates_of(annotations_of_one)}
    messages = []
    if profiles and filters.profile is not None and filters.profile not in profiles:
        messages.append(f"no manifest is for profile {filters.profile}; there are {', '.join(sorted(profiles))}")
    for gate in sorted((filters.gates or frozenset()) - gates):
        gates_text = f"there are {', '.join(sorted(gates))}" if gates else "none is named"
        messages.append(f"no manifest names gate {gate}; {gates_text}")
    major_version = payload.metadata.semver.major
    if filters.major is not None and filters.major != major_version:
        messages.append(f"the release is {payload.version}; manifests are filtered as of major version {filters.major}")
    return tuple(messages)


def filters_data(filters: Filters) -> dict[str, Any]:
    """Returns the description as data; capabilities are null if they do not filter."""
    capabilities = filters.capabilities
    return {
        "featureSet": filters.feature_set or DEFAULT_FEATURE_SET,
        "gates": sorted(filters.gates or ()),
        "profile": filters.profile,
        "major": filters.major,
        "capabilities": None if capabilities is None else sorted(capabilities.enabled),
        "overrides": [codec.to_dict(override) for override in filters.overrides],
    }


def overrides_in(data: bytes, name: str) -> tuple[ComponentOverride, ...]:
    """Returns the overrides in a file: a ClusterVersion, an object with `overrides`, or a list.

    Raises Terminal naming the file.
    """
    try:
        document = kyaml.load(data, name=name)
    except kyaml.YamlError as error:
        raise Terminal(str(error), reason=BAD_CLUSTER) from error
    if isinstance(document, dict):
        is_cluster_version = document.get("kind") == "ClusterVersion"
        spec = document.get("spec") if is_cluster_version else document
        document = spec.get("overrides") if isinstance(spec, dict) else None
        document = [] if is_cluster_version and document is None else document
    if not isinstance(document, list):
        expected = "expected a ClusterVersion, or a list of overrides as spec.overrides has it"
        raise Terminal(f"{name}: {expected}", reason=BAD_CLUSTER)
    return tuple(_override(entry, f"{name}: override {number}") for number, entry in enumerate(document, start=1))


def _override(entry: Any, file_name: str) -> ComponentOverride:
    """Returns an entry of spec.overrides from a flag's file. Raises Terminal, which names `file_name`."""
    try:
        override = codec.convert(ComponentOverride, entry)
    except codec.DecodeError as error:
        raise Terminal(f"{file_name}: {error}", reason=BAD_CLUSTER) from error
    if unknown_fields := set(entry) - {"kind", "group", "namespace", "name", "unmanaged"}:
        raise Terminal(f"{file_name}: has an unknown field {min(unknown_fields)!r}", reason=BAD_CLUSTER)
    if not override.kind or not override.name:
        raise Terminal(f"{file_name}: has no {'name' if override.kind else 'kind'}", reason=BAD_CLUSTER)
    return override


def _is_profile(key: str) -> bool:
    return key.startswith(INCLUDE_PREFIX)


def filters_of(
    *,
    major: int,
    feature_set: str = "",
    gates: Collection[str] = (),
    profile: str = DEFAULT_PROFILE,
    capabilities: Collection[str] | None = None,
    overrides: tuple[ComponentOverride, ...] = (),
) -> Filters:
    """Returns the filters of the described cluster; raises Terminal naming an unknown word, and the known ones.

    An empty feature set is the default one; without `capabilities` they do not filter.
    """
    feature_set_name = feature_set or DEFAULT_FEATURE_SET
    if feature_set_name not in FEATURE_SETS:
        raise _unknown_error("feature set", [feature_set], FEATURE_SETS)
    if capabilities is not None and (unknown_names := sorted(set(capabilities) - set(KNOWN))):
        raise _unknown_error("capabilities", unknown_names, KNOWN)
    if not profile:
        raise Terminal(f"the profile is empty; the usual one is {DEFAULT_PROFILE}", reason=BAD_CLUSTER)
    if major < 0:
        raise Terminal(f"major version {major} is below 0", reason=BAD_CLUSTER)
    return Filters(
        feature_set="" if feature_set_name == DEFAULT_FEATURE_SET else feature_set_name,
        gates=frozenset(gates),
        major=major,
        profile=profile,
        capabilities=None if capabilities is None else Capabilities(frozenset(KNOWN), frozenset(capabilities)),
        overrides=overrides,
    )


def _unknown_error(subject: str, odd: Collection[str], known_names: Collection[str]) -> Terminal:
    return Terminal(f"unknown {subject} {', '.join(odd)}; known are {', '.join(known_names)}", reason=BAD_CLUSTER)
