"""Strategic merge patch (being written)."""

from __future__ import annotations

from typing import Any

from runup.sandbox.apiserver.patch.merge import merge


def strategic_merge(tree: Any, obj: Any, patch: Any) -> Any:
    """Merge for now."""
    return merge(obj, patch)
