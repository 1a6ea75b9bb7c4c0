"""Pull specs as people and programs write them, `registry/repository:tag@digest`, compared as text."""

from __future__ import annotations


def is_same_image(pullspec: str, other: str) -> bool:
    """Returns whether two pull specs are known to name one image: by digest, wherever it is kept, else literally.

    An empty one names none. What a tag and a digest name may differ, so they are not known to be the same.
    """
    digest = pullspec.partition("@")[2]
    return bool(pullspec) and (pullspec == other or (bool(digest) and digest == other.partition("@")[2]))
