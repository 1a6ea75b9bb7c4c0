"""Loads releases: the operator's own from its image, others by a `ReleaseLoader` before an update is accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import structlog

from kubekit.error_types import Terminal
from kubekit.kube.clock import Clock
from kubekit.oci.signatures import Verifier, verifier_from_config_map
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import Release
from runup.applying.decide.progress import Loading
from runup.process.leader_election import cancel
from runup.release.decide import payload as payloads
from runup.release.decide.capabilities import KNOWN, Capabilities
from runup.release.decide.inclusion import DEFAULT_PROFILE, Filters, feature_set_and_gates
from runup.release.decide.manifest import Manifest
from runup.release.decide.payload import Payload, included_in, verification_of, version_hash

Step = Literal["RetrievePayload", "LoadPayload"]


class NotLoaded(Exception):
    """Raised if a release cannot be fetched (`RetrievePayload`) or read (`LoadPayload`); `message` names the fix."""

    def __init__(self, message: str, *, reason: Step) -> None:
        super().__init__(message)
        self.message = message
        self.reason: Step = reason


class ReleaseLoader(Protocol):
    """Fetches releases. Several calls may run at once; a call that is no longer needed is cancelled."""

    async def load(self, release: Release) -> Payload:
        """Returns the payload of `release.image`, whose version may be unknown; raises NotLoaded."""
        ...


def read_folder(root: Path) -> dict[str, bytes]:
    """Returns the files of the payload's folders, path in the image to bytes; raises Terminal if they do not exist."""
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for folder in payloads.FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }
    if not files:
        text = f"no release payload in {root}; set PAYLOAD_OVERRIDE to a folder with release-manifests/"
        raise Terminal(text, reason="PayloadMissing")
    return files


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


log = structlog.get_logger("payload")
# Besides the operator's own: the release that is being applied, and one that is requested.
MAX_LOADED_RELEASES = 2


class ReleaseLoads:
    """The loads of releases; `states` is keyed by pull spec, and `wake` is called when a load has ended."""

    def __init__(
        self, payloads: ReleaseLoader, clock: Clock, wake: Callable[[], None], *, image: str, own_payload: Payload
    ) -> None:
        self.states: dict[str, Loading] = {image: Loading(payload=own_payload)}
        self._own = image
        self._payloads = payloads
        self._clock = clock
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def load(self, release: Release, *, applied: str = "") -> None:
        """Starts to load `release`, unless it is loaded or being loaded.

        `applied` is the pull spec of the release that is being applied, which is kept.
        """
        load_state = self.states.get(release.image)
        if load_state is not None and (load_state.running or load_state.payload is not None):
            return
        self._make_room(release.image, applied)
        # The last error stays visible until this attempt has ended.
        before = load_state or Loading()
        self.states[release.image] = Loading(running=True, reason=before.reason, error=before.error, at=before.at)
        self._tasks[release.image] = asyncio.create_task(self._load_release(release))

    def payload(self, image: str) -> Payload | None:
        """Returns the release of that pull spec, None if it is not loaded."""
        state = self.states.get(image)
        return state.payload if state is not None else None

    async def close(self) -> None:
        """Cancels all loads."""
        await cancel(list(self._tasks.values()))

    async def _load_release(self, release: Release) -> None:
        """Loads one release and records the result; a failure of any kind is recorded too."""
        image = release.image
        try:
            payload = await self._payloads.load(release)
        except NotLoaded as error:
            log.warning("a release could not be loaded", image=image, reason=error.reason, error=error.message)
            self._failed(image, error.reason, error.message)
        except Exception as error:
            # A bug must not leave the load `running` for ever, so it is reported like any other failure.
            log.exception("loading a release failed", image=image)
            self._failed(image, "LoadPayload", f"{type(error).__name__}: {error}")
        else:
            log.info("loaded", image=image, version=payload.version, manifests=len(payload.manifests))
            self.states[image] = Loading(payload=payload)
        finally:
            self._tasks.pop(image, None)
            self._wake()

    def _failed(self, image: str, reason: str, message: str) -> None:
        self.states[image] = Loading(reason=reason, error=message, at=self._clock.now())

    def _make_room(self, image: str, applied: str) -> None:
        """Drops the oldest releases but `applied`, so that there is room for `image`."""
        ended = [each for each, state in self.states.items() if each not in (self._own, image) and not state.running]
        removable_images = [each for each in ended if each != applied]
        for each in removable_images[: max(len(ended) - MAX_LOADED_RELEASES + 1, 0)]:
            del self.states[each]
