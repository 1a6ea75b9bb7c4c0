"""Lists the manifests and checks of a release that a described cluster would get, and likely mistakes in the release.

No cluster is read: feature set, gates, profile, capabilities, major version and overrides are given. Files that are
skipped or cannot be read are listed with the others. An operator updates only to a release that has all four parts
(docs/reference/upstream.md 1.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kubekit.api import codec
from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml
from runup.api.config_v1 import ComponentOverride
from runup.release.decide import difference, inclusion
from runup.release.decide import payload as payloads
from runup.release.decide.capabilities import KNOWN, Capabilities, available
from runup.release.decide.manifest import Manifest, file_name

BAD_CLUSTER = "BadCluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A manifest or check, in the order of application; `reason` says why it is excluded.

    `state` is `in` or `out`, or for a file without an object `skipped` or `refused`.
    """

    object: str
    file: str
    included: bool
    reason: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The content of `manifests`; `notes` has the parts of the description that the release does not know."""

    version: str
    digest: str
    filters: inclusion.Filters
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Returns the list as data."""
        return {
            "version": self.version,
            "digest": self.digest,
            "filters": filters_data(self.filters),
            "manifests": [asdict(row) for row in self.rows if row.object],
            "skipped": [
                {"file": row.file, "state": row.state, "reason": row.reason} for row in self.rows if not row.object
            ],
            "notes": list(self.notes),
        }


def list_manifests(payload: payloads.Payload, digest: str, filters: inclusion.Filters) -> Listed:
    """Returns all manifests of a release, included or not in a cluster as `filters` describe it."""
    return Listed(
        version=payload.version,
        digest=digest,
        filters=filters,
        rows=rows(payload, filters),
        notes=notes(payload, filters),
    )


def info_data(payload: payloads.Payload, digest: str) -> dict[str, Any]:
    """Returns the content of `runup release info` by the name of each line."""
    metadata = payload.metadata
    return {
        "name": metadata.version,
        "digest": digest,
        "url": metadata.url,
        "architecture": metadata.architecture,
        "channels": list(metadata.channels),
        "previous": list(metadata.previous),
        "next": list(metadata.next),
        "images": dict(payload.image_references.images),
        "manifests": len(payload.manifests),
        "checks": [str(check.identity) for check in payload.checks],
        "verifies": payload.verification is not None,
        "warnings": [*metadata.problems, *payload.warnings, *likely_mistakes(payload)],
    }


def rows(payload: payloads.Payload, filters: inclusion.Filters) -> tuple[Row, ...]:
    """Returns a row for each manifest and check of `payload`, included or not, and for each skipped file."""
    all_rows = []
    for manifest in (*payload.manifests, *payload.checks):
        decision = inclusion.include(manifest, filters)
        reason = decision.reason if isinstance(decision, inclusion.Excluded) else ""
        state = "out" if isinstance(decision, inclusion.Excluded) else "in"
        all_rows.append(
            Row(object=str(manifest.identity), file=manifest.file, included=state == "in", reason=reason, state=state)
        )
    for skipped in payload.skipped:
        state = "refused" if skipped.broken else "skipped"
        # The file has a separate column.
        reason = skipped.reason.removeprefix(skipped.file).lstrip(":, ")
        all_rows.append(Row(object="", file=skipped.file, included=False, reason=reason, state=state))
    return tuple(all_rows)


def notes(payload: payloads.Payload, filters: inclusion.Filters) -> tuple[str, ...]:
    """Returns a note for each word of the description that nothing in the release uses: a typing mistake or another
    release.
    """
    annotations = [manifest.annotations or {} for manifest in (*payload.manifests, *payload.checks)]
    profiles = {
        key.removeprefix(inclusion.INCLUDE_PREFIX)
        for annotations_of_one in annotations
        for key in annotations_of_one
        if key.startswith(inclusion.INCLUDE_PREFIX)
    }
    gates = {name for annotations_of_one in annotations for name in inclusion.gates_of(annotations_of_one)}
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


def filters_data(filters: inclusion.Filters) -> dict[str, Any]:
    """Returns the description as data; capabilities are null if they do not filter."""
    capabilities = filters.capabilities
    return {
        "featureSet": filters.feature_set or inclusion.DEFAULT_FEATURE_SET,
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
    overrides = []
    for number, entry in enumerate(document, start=1):
        where = f"{name}: override {number}"
        try:
            override = codec.convert(ComponentOverride, entry)
        except codec.DecodeError as error:
            raise Terminal(f"{where}: {error}", reason=BAD_CLUSTER) from error
        if unknown_fields := set(entry) - {"kind", "group", "namespace", "name", "unmanaged"}:
            raise Terminal(f"{where}: has an unknown field {min(unknown_fields)!r}", reason=BAD_CLUSTER)
        if not override.kind or not override.name:
            raise Terminal(f"{where}: has no {'name' if override.kind else 'kind'}", reason=BAD_CLUSTER)
        overrides.append(override)
    return tuple(overrides)


def filters_of(
    *,
    major: int,
    feature_set: str = "",
    gates: Collection[str] = (),
    profile: str = inclusion.DEFAULT_PROFILE,
    capabilities: Collection[str] | None = None,
    overrides: tuple[ComponentOverride, ...] = (),
) -> inclusion.Filters:
    """Returns the filters of the described cluster; raises Terminal naming an unknown word, and the known ones.

    An empty feature set is the default one; without `capabilities` they do not filter.
    """
    feature_set_name = feature_set or inclusion.DEFAULT_FEATURE_SET
    if feature_set_name not in inclusion.FEATURE_SETS:
        raise _unknown_error("feature set", [feature_set], inclusion.FEATURE_SETS)
    if capabilities is not None and (unknown_names := sorted(set(capabilities) - set(KNOWN))):
        raise _unknown_error("capabilities", unknown_names, KNOWN)
    if not profile:
        raise Terminal(f"the profile is empty; the usual one is {inclusion.DEFAULT_PROFILE}", reason=BAD_CLUSTER)
    if major < 0:
        raise Terminal(f"major version {major} is below 0", reason=BAD_CLUSTER)
    return inclusion.Filters(
        feature_set="" if feature_set_name == inclusion.DEFAULT_FEATURE_SET else feature_set_name,
        gates=frozenset(gates),
        major=major,
        profile=profile,
        capabilities=None if capabilities is None else Capabilities(available(gates), frozenset(capabilities)),
        overrides=overrides,
    )


def _unknown_error(subject: str, odd: Collection[str], known_names: Collection[str]) -> Terminal:
    return Terminal(f"unknown {subject} {', '.join(odd)}; known are {', '.join(known_names)}", reason=BAD_CLUSTER)


_WHOSE = {payloads.MANIFESTS: "the operator's own manifests", payloads.RELEASE_MANIFESTS: "everybody else's manifests"}


def missing_parts(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the parts of a release that the files `paths` lack, in words that name them."""
    known_paths = set(paths)
    folders = {path.partition("/")[0] for path in known_paths if "/" in path}
    lacking = [
        f"{folder}/ is missing: {contents} are there" for folder, contents in _WHOSE.items() if folder not in folders
    ]
    return (
        *lacking,
        *(
            f"{path} is missing"
            for path in (payloads.METADATA_FILE, payloads.IMAGE_REFERENCES_FILE)
            if path not in known_paths
        ),
    )


def check(paths: Iterable[str], source: str) -> None:
    """Raises PayloadError if `paths` are not a complete release; `source` is the image or folder."""
    if lacking := missing_parts(paths):
        raise payloads.PayloadError(f"{source} is not a release image: {'; '.join(lacking)}", lacking)


def likely_mistakes(payload: payloads.Payload) -> tuple[str, ...]:
    """Returns likely mistakes for the author, each naming the file, or the missing folder."""
    files = {payloads.METADATA_FILE, payloads.IMAGE_REFERENCES_FILE}
    files |= {manifest.file for manifest in payload.manifests} | {skipped.file for skipped in payload.skipped}
    mistakes = [*missing_parts(files)]
    mistakes += [
        f"{file}: its name is not 0000_NN_COMPONENT_..., so it is applied with its neighbours, in no component"
        for file in sorted({manifest.file for manifest in payload.manifests if file_name(manifest.file) is None})
    ]
    first_of_object: dict[tuple[str, str], Manifest] = {}
    for manifest in payload.manifests:
        if manifest.annotations is None:
            mistakes.append(f"{manifest.file}: {manifest.identity} has no annotations, so no cluster gets it")
            continue
        first = first_of_object.setdefault((str(manifest.identity), difference.variant(manifest)), manifest)
        if first is not manifest:
            mistakes.append(
                f"{manifest.file}: {manifest.identity} is in {first.file} for the same clusters; the later one wins"
            )
    return tuple(mistakes)
