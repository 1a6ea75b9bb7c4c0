"""The operator's image that belongs to this runup."""

from runup import build_info


def default_image() -> str | None:
    """Returns the pull spec of the image of the same release, None if none was set when this runup was built."""
    return build_info.IMAGE or None
