"""Checks whether the files of an image are a complete release, and finds legal but likely mistakes in it.

An operator updates only to a release that has all four parts (docs/upstream-behaviour.md 1.1): one without its
manifests would leave a cluster without an operator. Likely mistakes are reported, and prevent nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runup.release.decide.difference import variant
from runup.release.decide.manifest import Manifest, file_name
from runup.release.decide.payload import (
    IMAGE_REFERENCES_FILE,
    MANIFESTS,
    METADATA_FILE,
    RELEASE_MANIFESTS,
    Payload,
    PayloadError,
)

_WHOSE = {MANIFESTS: "the operator's own manifests", RELEASE_MANIFESTS: "everybody else's manifests"}


def missing_parts(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the parts of a release that the files `paths` lack, in words that name them."""
    known_paths = set(paths)
    folders = {path.partition("/")[0] for path in known_paths if "/" in path}
    lacking = [
        f"{folder}/ is missing: {contents} are there" for folder, contents in _WHOSE.items() if folder not in folders
    ]
    return (
        *lacking,
        *(f"{path} is missing" for path in (METADATA_FILE, IMAGE_REFERENCES_FILE) if path not in known_paths),
    )


def check(paths: Iterable[str], source: str) -> None:
    """Raises PayloadError if `paths` are not a complete release; `source` is the image or folder."""
    if lacking := missing_parts(paths):
        raise PayloadError(f"{source} is not a release image: {'; '.join(lacking)}", lacking)


def likely_mistakes(payload: Payload) -> tuple[str, ...]:
    """Returns likely mistakes for the author, each naming the file, or the missing folder."""
    files = {METADATA_FILE, IMAGE_REFERENCES_FILE}
    files |= {manifest.file for manifest in payload.manifests} | {skipped.file for skipped in payload.skipped}
    return (*missing_parts(files), *_mistakes_in_manifests(payload.manifests))


def _mistakes_in_manifests(manifests: tuple[Manifest, ...]) -> Iterator[str]:
    """Yields what is unusual about manifests: file names without an order, no annotations, objects twice."""
    unparsable = sorted({m.file for m in manifests if file_name(m.file) is None})
    for file in unparsable:
        yield f"{file}: its name is not 0000_NN_COMPONENT_..., so it is applied with its neighbours, in no component"
    first_of_object: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        if manifest.annotations is None:
            yield f"{manifest.file}: {manifest.identity} has no annotations, so no cluster gets it"
            continue
        first = first_of_object.setdefault((str(manifest.identity), variant(manifest)), manifest)
        if first is not manifest:
            yield f"{manifest.file}: {manifest.identity} is in {first.file} for the same clusters; the later one wins"
