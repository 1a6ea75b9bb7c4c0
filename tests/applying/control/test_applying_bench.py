"""The payload of the bench `applying` is what it says it is: a real release's numbers, kinds and sizes."""

from __future__ import annotations

from collections import Counter

import pytest
from bench import release_payload
from bench.release_payload import FIRST, SECOND

from runup.release.decide.payload import load_payload

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("applying-bench")]

Identity = tuple[str, str, str, str]


def _manifests(files: dict[str, bytes]) -> dict[Identity, tuple[str, bytes]]:
    loaded = load_payload(files, source="bench", release_image="registry.example/release@sha256:0", keep_going=False)
    return {
        (m.identity.group, m.identity.kind, m.identity.namespace, m.identity.name): (m.file, m.raw)
        for m in loaded.manifests
    }


@pytest.fixture(scope="module")
def first() -> dict[str, bytes]:
    return release_payload.payload(FIRST)


def test_numbers_and_sizes_are_a_real_releases(first: dict[str, bytes]) -> None:
    """900 manifests in 8 MB, as the figures that they are compared with were made."""
    kinds = Counter(kind for _, kind, _, _ in _manifests(first))
    assert kinds.total() == release_payload.MANIFESTS
    expected = {"CustomResourceDefinition": 140, "Deployment": 45, "ClusterOperator": 30}
    assert {kind: kinds[kind] for kind in expected} == expected
    assert sum(map(len, first.values())) == pytest.approx(8_000_000, rel=0.01)
    largest = max(len(data) for name, data in first.items() if name.endswith(".crd.yaml"))
    assert largest == pytest.approx(release_payload.LARGEST, rel=0.03)


def test_two_writings_are_the_same_bytes(first: dict[str, bytes]) -> None:
    """A measurement can be repeated."""
    assert release_payload.payload(FIRST) == first


def test_the_second_release_changes_140_manifests(first: dict[str, bytes]) -> None:
    """No more and no fewer, and it is the same objects."""
    before, after = _manifests(first), _manifests(release_payload.payload(SECOND))
    assert set(before) == set(after)
    changed = {key for key in before if before[key] != after[key]}
    # Both are rendered with one image here; the operator's own Deployment differs by its image alone.
    own = {key for key in before if key[1] == "Deployment" and key[3] == "cluster-version-operator"}
    assert len(changed | own) == release_payload.CHANGED


def test_a_smaller_release_has_its_share_of_each_kind() -> None:
    """Of manifests, bytes, definitions and components alike, so that what costs grow with is one size."""
    files = release_payload.payload(FIRST, share=0.5)
    kinds = Counter(kind for _, kind, _, _ in _manifests(files))
    assert kinds.total() == release_payload.MANIFESTS / 2
    assert sum(map(len, files.values())) == pytest.approx(4_000_000, rel=0.01)
    # What every release has is in each of them.
    assert kinds["CustomResourceDefinition"] == pytest.approx(70, abs=10)
    assert kinds["Deployment"] == pytest.approx(23, abs=1)


def test_a_release_without_room_for_its_own_manifests() -> None:
    """A share that is too small is refused."""
    with pytest.raises(ValueError, match="the share is too small"):
        release_payload.payload(FIRST, share=0.1)
