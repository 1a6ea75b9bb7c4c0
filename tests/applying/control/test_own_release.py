"""The operator's own release, as the cluster at hand gets it."""

from __future__ import annotations

import json

import pytest
from tests.factories import feature_gate
from tests.release.decide.test_payload_loading import fnv1

from kubekit.oci.registry_errors import Unverified
from kubekit.oci.signatures import generate_key
from runup.api.cluster_settings_v1 import FeatureGate
from runup.applying.control.loading import OwnRelease
from runup.release.decide.payload import load_payload

PROFILE = "include.release.openshift.io/self-managed-high-availability"
KEY = generate_key()


def manifest(name: str, kind: str = "Secret", data: dict[str, str] | None = None, **annotations: str) -> bytes:
    """A manifest of the profile."""
    named = {f"release.openshift.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "annotations": {PROFILE: "true", **named}}
    return json.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data or {}}).encode()


def keys(store: str, **annotations: str) -> bytes:
    """A verification ConfigMap."""
    data = {"verifier-public-key-a": KEY.public.decode(), "store-a": store}
    return manifest(f"keys-{store}", "ConfigMap", data, verification_config_map="", **annotations)


def own(*files: bytes, exclude: str | None = None, profile: str = "self-managed-high-availability") -> OwnRelease:
    """A release 5.0.0 of these manifests."""
    references = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.0.0"}}
    named = {f"release-manifests/{number}.yaml": data for number, data in enumerate(files)}
    named["release-manifests/release-metadata"] = b'{"kind": "cincinnati-metadata-v0", "version": "5.0.0"}'
    named["release-manifests/image-references"] = json.dumps(references).encode()
    return OwnRelease(load_payload(named, source="the test"), profile, exclude)


def names(release: OwnRelease, gate: FeatureGate | None) -> list[str]:
    """What the cluster gets."""
    return [found.identity.name for found in release.manifests(gate)]


ALL = own(
    manifest("plain"),
    manifest("preview", feature_set="TechPreviewNoUpgrade"),
    manifest("default", feature_set="Default"),
    manifest("gated", feature_gate="Some"),
    manifest("ungated", feature_gate="-Some"),
    manifest("unknown", feature_set="Other"),
)


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        pytest.param(None, ["plain", "default", "ungated"], id="no FeatureGate"),
        pytest.param(feature_gate(enabled=("Some",)), ["plain", "default", "gated"], id="a gate is open"),
        pytest.param(
            feature_gate(feature_set="TechPreviewNoUpgrade"), ["plain", "preview", "ungated"], id="a tech preview"
        ),
        pytest.param(
            feature_gate(version="4.22.0", enabled=("Some",)), ["plain", "default", "ungated"], id="another version's"
        ),
    ],
)
def test_which_manifests_the_cluster_gets(gate: FeatureGate | None, expected: list[str]) -> None:
    """Nothing is assumed."""
    assert names(ALL, gate) == expected


def test_the_hash_is_of_what_is_in() -> None:
    """It changes with the FeatureGate, and is that of a release that never had the rest."""
    import base64

    only = own(manifest("plain"), manifest("default", feature_set="Default"), manifest("ungated", feature_gate="-Some"))
    raw = b"".join(found.raw for found in only.payload.manifests)
    assert ALL.version_hash(None) == base64.urlsafe_b64encode(fnv1(raw).to_bytes(8, "big")).decode()
    assert ALL.version_hash(feature_gate(enabled=("Some",))) != ALL.version_hash(None)


def test_profile_and_identifier_count() -> None:
    """As the environment of a real operator says."""
    hosted = json.loads(manifest("hosted"))
    hosted["metadata"]["annotations"]["exclude.release.openshift.io/internal-openshift-hosted"] = "true"
    files = (manifest("plain"), json.dumps(hosted).encode())
    assert names(own(*files), None) == ["plain", "hosted"]
    assert names(own(*files, exclude="internal-openshift-hosted"), None) == ["plain"]
    assert names(own(*files, profile="single-node-developer"), None) == []


def test_keys_that_the_cluster_does_not_get_verify_nothing() -> None:
    """A key that belongs to a tech preview must not make other clusters trust what it signed."""
    release = own(keys("https://preview", feature_set="TechPreviewNoUpgrade"), keys("https://all"))
    everybody, preview = release.verifier(None), release.verifier(feature_gate(feature_set="TechPreviewNoUpgrade"))
    assert everybody is not None
    assert preview is not None
    assert (everybody.stores, preview.stores) == (("https://all",), ("https://preview",))
    assert own(keys("https://preview", feature_set="TechPreviewNoUpgrade")).verifier(None) is None
    with pytest.raises(Unverified, match="no verifier-public-key"):
        own(manifest("keys", "ConfigMap", {"store-a": "https://all"}, verification_config_map="")).verifier(None)
