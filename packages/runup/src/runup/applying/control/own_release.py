"""The operator's own release as this cluster gets it: the included manifests, their hash, and its signature verifier.

The cluster's FeatureGate decides what is included, and may change while the operator runs. Without a FeatureGate no
feature set is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubekit.oci.signatures import Verifier, verifier_from_config_map
from runup.api.cluster_settings_v1 import FeatureGate
from runup.release.decide.capabilities import KNOWN, Capabilities
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates
from runup.release.decide.manifest import Manifest
from runup.release.decide.payload import Payload, included_in, verification_of, version_hash

Key = tuple[str, frozenset[str]]


@dataclass
class OwnRelease:
    """The operator's own `payload`, filtered for `profile` and by `exclude` (EXCLUDE_MANIFESTS)."""

    payload: Payload
    profile: str = DEFAULT_PROFILE
    exclude: str | None = None
    _hashes: dict[Key, str] = field(default_factory=dict)

    def manifests(self, gate: FeatureGate | None) -> tuple[Manifest, ...]:
        """Returns the manifests that the cluster gets."""
        return self._included_manifests(feature_set_and_gates(gate, self.payload.version))

    def version_hash(self, gate: FeatureGate | None) -> str:
        """Returns the value of `status.versionHash`, cached for the last FeatureGate because it takes a second."""
        key = feature_set_and_gates(gate, self.payload.version)
        if key not in self._hashes:
            self._hashes = {key: version_hash(self._included_manifests(key))}
        return self._hashes[key]

    def verifier(self, gate: FeatureGate | None) -> Verifier | None:
        """Returns the verifier of other releases, None if the release has no verification ConfigMap.

        Raises Unverified if the ConfigMap is broken.
        """
        config_map = verification_of(self.manifests(gate))
        return verifier_from_config_map(config_map.object) if config_map is not None else None

    def _included_manifests(self, key: Key) -> tuple[Manifest, ...]:
        """Returns the manifests of the operator's own release that a cluster with these feature gates gets."""
        feature_set, gates = key
        # Manifests with an unknown capability are left out. Which capabilities are enabled counts only when applying.
        known_capabilities = frozenset(KNOWN)
        filters = Filters(
            exclude_identifier=self.exclude,
            feature_set=feature_set,
            gates=gates,
            major=self.payload.metadata.semver.major,
            profile=self.profile,
            capabilities=Capabilities(known_capabilities, known_capabilities),
        )
        return included_in(self.payload.manifests, filters)
