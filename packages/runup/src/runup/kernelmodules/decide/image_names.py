"""Names of the images that builds push: the final image, and the temporary one between build and signature. Pure.

A tag follows the last colon after the last slash, so that a registry's port does not count as a tag.
"""

from __future__ import annotations

import hashlib
import re

# Host, port and path with tag or digest (grammar of the container distribution project). A name that begins with a dash
# would be a flag of the program that it is given to.
_IMAGE = re.compile(
    r"(?:(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[A-Za-z0-9=_-]+)?"
)
# The most characters that the whole name of an image may have.
_MAX_NAME_LENGTH = 1024
# The most characters of a tag (OCI distribution specification).
LONGEST_TAG = 128


def tag_of(image: str) -> str:
    """Returns the tag of `image`, "" if it has none."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[2]


def is_image(text: str) -> bool:
    """Returns whether `text` is the name of an image and nothing else: no flag, no second word, no variable."""
    return len(text) <= _MAX_NAME_LENGTH and _IMAGE.fullmatch(text) is not None


def is_pinned(image: str) -> bool:
    """Returns whether the image is named by its digest, so that nothing can be pushed under this name."""
    return "@" in image


def unsigned_name(image: str, namespace: str, module: str) -> str:
    """Returns the name of the unsigned image: in the repository of `image`, with a tag that no other Module has."""
    tag = tag_of(image)
    name = image.removesuffix(f":{tag}") if tag else image
    unsigned_tag = "_".join(part for part in (tag, namespace, module, "kmm_unsigned") if part)
    return f"{name}:{fit_tag(unsigned_tag)}"


def fit_tag(tag: str) -> str:
    """Returns `tag`; if it exceeds 128 characters, its head with a part of its hash."""
    if len(tag) <= LONGEST_TAG:
        return tag
    digest = hashlib.sha256(tag.encode()).hexdigest()[:12]
    return f"{tag[: LONGEST_TAG - 13]}_{digest}"
