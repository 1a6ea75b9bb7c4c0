"""Renders and filters the operator's own manifests with which the installation of a cluster starts.

Pure over bytes, for `cluster-version-operator render` (docs/reference/upstream.md 1.6). Unlike in loading a release, a
template that cannot be rendered is an error: no later pass would apply the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api import codec
from kubekit.error_types import Terminal
from kubekit.lang import yaml as kyaml
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ComponentOverride
from runup.release.decide import payload as payloads
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, Included, include
from runup.release.decide.manifest import parse_manifests
from runup.release.decide.release_metadata import MetadataError, parse_image_references, parse_release_metadata

BOOTSTRAP = "bootstrap"
FOLDERS = (payloads.MANIFESTS, payloads.RELEASE_MANIFESTS, BOOTSTRAP)
_SUFFIXES = (".yaml", ".yml", ".json")
# Manifests of kinds that a cluster has only once it runs.
_LATER = frozenset(
    f"0000_90_cluster-version-operator_0{name}.yaml"
    for name in ("0_prometheusrole", "1_prometheusrolebinding", "2_servicemonitor")
)
# The only kinds of release-manifests that are written (docs/reference/upstream.md 1.6).
_POLICY_KINDS = frozenset({("config.openshift.io", "ClusterImagePolicy"), ("config.openshift.io", "ImagePolicy")})


class RenderError(Terminal):
    """The release, or a file that describes the cluster, cannot be used; the message names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="RenderFailed")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The new cluster, as the installer describes it. Without a FeatureGate no gate is assumed.

    Source: docs/reference/upstream.md 2.4.
    """

    profile: str = DEFAULT_PROFILE
    feature_set: str = ""
    gates: frozenset[str] = frozenset()
    overrides: tuple[ComponentOverride, ...] = ()


def render_release(files: Mapping[str, bytes], image: str, cluster: Cluster) -> dict[str, bytes]:
    """Returns the rendered files by path below the output folder; raises RenderError with every problem."""
    missing = [path for path in (payloads.METADATA_FILE, payloads.IMAGE_REFERENCES_FILE) if path not in files]
    if missing:
        raise RenderError(f"cannot render {image}: {' and '.join(missing)} missing; PAYLOAD_OVERRIDE names the folder")
    try:
        major = parse_release_metadata(files[payloads.METADATA_FILE]).semver.major
        images = parse_image_references(files[payloads.IMAGE_REFERENCES_FILE]).images
    except MetadataError as error:
        raise RenderError(f"cannot render {image}: {error}") from error
    filters = Filters(
        feature_set=cluster.feature_set,
        gates=cluster.gates,
        major=major,
        profile=cluster.profile,
        overrides=cluster.overrides,
    )
    values = payloads.Values(image, cluster.profile, images)
    outputs: dict[str, bytes] = {}
    errors: list[str] = []
    for path in sorted(files):
        folder, _, name = path.partition("/")
        if folder not in FOLDERS or "/" in name or not name.endswith(_SUFFIXES) or name in _LATER:
            continue
        try:
            data = _file(path, files[path], values, filters)
        except (payloads.TemplateError, UnicodeDecodeError, RenderError) as error:
            text = str(error)
            errors.append(text if text.startswith(path) else f"{path}: {text}")
            continue
        if data is not None:
            outputs[f"{BOOTSTRAP if folder == BOOTSTRAP else payloads.MANIFESTS}/{name}"] = data
    if errors:
        raise RenderError(f"cannot render {image}: {'; '.join(errors)}")
    return outputs


def feature_gate(data: bytes, name: str) -> tuple[str, frozenset[str]]:
    """Returns feature set and gates of the FeatureGate in the file `name`; raises RenderError.

    Without a status no gate is assumed. More than one version is an error, because it does not say which to use.
    """
    gate = codec.convert(FeatureGate, _object(data, name, "FeatureGate"))
    entries = gate.status.feature_gates
    if len(entries) > 1:
        raise RenderError(f"{name}: status.featureGates has {len(entries)} entries, expected one")
    enabled = entries[0].enabled if entries else ()
    return gate.spec.feature_set, frozenset(attribute.name for attribute in enabled)


def overrides(data: bytes, name: str) -> tuple[ComponentOverride, ...]:
    """Returns the overrides of the ClusterVersion in the file `name`; raises RenderError."""
    spec = _object(data, name, "ClusterVersion").get("spec")
    entries = spec.get("overrides") if isinstance(spec, dict) else None
    try:
        return tuple(codec.convert(ComponentOverride, entry) for entry in entries or ())
    except (codec.DecodeError, TypeError) as error:
        raise RenderError(f"{name}: spec.overrides: {error}") from error


def _file(path: str, data: bytes, values: payloads.Values, filters: Filters) -> bytes | None:
    """Returns the file as it is written, None if no manifest of it is included; raises TemplateError, RenderError."""
    is_release_manifest = path.startswith(f"{payloads.RELEASE_MANIFESTS}/")
    text = data if is_release_manifest else payloads.render(data.decode("utf-8"), values).encode("utf-8")
    manifests, problems = parse_manifests(path, text)
    if problems:
        # Every manifest in the file must be valid, even those that are not included.
        raise RenderError("; ".join(map(str, problems)))
    included_manifests = [
        m
        for m in manifests
        if isinstance(include(m, filters), Included)
        and (not is_release_manifest or (m.identity.group, m.identity.kind) in _POLICY_KINDS)
    ]
    if not included_manifests:
        return None
    return (
        text
        if len(included_manifests) == len(manifests)
        else b"\n---\n".join(manifest.raw for manifest in included_manifests) + b"\n"
    )


def _object(data: bytes, name: str, kind: str) -> dict[str, Any]:
    """Returns the one object of `kind` in a file. Raises RenderError if it has something else."""
    try:
        documents = [document for document in kyaml.load_all(data, name=name) if document is not None]
    except kyaml.YamlError as error:
        raise RenderError(str(error)) from error
    if len(documents) != 1:
        raise RenderError(f"{name}: has {len(documents)} documents, expected one {kind}")
    (document,) = documents
    gvk = (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else ("", "")
    if gvk != ("config.openshift.io/v1", kind):
        raise RenderError(f"{name}: is {gvk[1]} of {gvk[0]}, expected a {kind} of config.openshift.io/v1")
    assert isinstance(document, dict)
    return document
