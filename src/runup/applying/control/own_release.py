"""The operator's own release, as this cluster gets it: which manifests are in, their hash, and how it verifies others.

What the cluster's FeatureGate says decides, and changes while the operator runs; without one nothing is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubekit.oci.signatures import Verifier, verifier_from_config_map
from runup.api.config_v1 import FeatureGate
from runup.release.decide.capabilities import KNOWN, Capabilities
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates
from runup.release.decide.manifest import Manifest
from runup.release.decide.payload import Payload, included, verification_of, version_hash

Key = tuple[str, frozenset[str]]


@dataclass
class OwnRelease:
    """`payload` filtered for `profile`, without what `exclude` (EXCLUDE_MANIFESTS) leaves out."""

    payload: Payload
    profile: str = DEFAULT_PROFILE
    exclude: str | None = None
    _hashes: dict[Key, str] = field(default_factory=dict)

    def manifests(self, gate: FeatureGate | None) -> tuple[Manifest, ...]:
        """The manifests that the cluster gets."""
        return self._included(feature_set_and_gates(gate, self.payload.version))

    def version_hash(self, gate: FeatureGate | None) -> str:
        """`status.versionHash`; worked out once for each FeatureGate, since it takes a second."""
        key = feature_set_and_gates(gate, self.payload.version)
        if key not in self._hashes:
            self._hashes = {key: version_hash(self._included(key))}
        return self._hashes[key]

    def verifier(self, gate: FeatureGate | None) -> Verifier | None:
        """How other releases are verified, None where nothing says; raises Unverified where what says so is broken."""
        found = verification_of(self.manifests(gate))
        return verifier_from_config_map(found.object) if found is not None else None

    def _included(self, key: Key) -> tuple[Manifest, ...]:
        feature_set, gates = key
        # What names a capability that nobody knows is left out; which are enabled counts when it is applied.
        known = frozenset(KNOWN)
        filters = Filters(
            exclude_identifier=self.exclude,
            feature_set=feature_set,
            gates=gates,
            major=self.payload.metadata.semver.major,
            profile=self.profile,
            capabilities=Capabilities(known, known),
        )
        return included(self.payload.manifests, filters)
