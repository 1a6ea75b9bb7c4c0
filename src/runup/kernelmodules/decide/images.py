"""Names of images that builds write: the target, and the temporary one between build and signature. Pure.

A tag is what follows the last colon after the last slash: a registry's port is none.
"""

from __future__ import annotations

import hashlib

# Of a tag (OCI distribution specification).
LONGEST_TAG = 128


def tag_of(image: str) -> str:
    """The tag, empty where there is none."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[2]


def is_pinned(image: str) -> bool:
    """Whether the image is named by its digest, so that nothing can be pushed under this name."""
    return "@" in image


def unsigned(image: str, namespace: str, module: str) -> str:
    """Where an image that is still to be signed is kept: beside `image`, under a tag that no other Module has."""
    tag = tag_of(image)
    name = image.removesuffix(f":{tag}") if tag else image
    wanted = "_".join(part for part in (tag, namespace, module, "kmm_unsigned") if part)
    return f"{name}:{fitting(wanted)}"


def fitting(tag: str) -> str:
    """`tag` where a registry takes it, else its head and a part of its hash."""
    if len(tag) <= LONGEST_TAG:
        return tag
    digest = hashlib.sha256(tag.encode()).hexdigest()[:12]
    return f"{tag[: LONGEST_TAG - 13]}_{digest}"
