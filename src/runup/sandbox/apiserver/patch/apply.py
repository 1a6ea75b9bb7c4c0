"""Server-side apply (being written)."""

from __future__ import annotations

from typing import Any

from runup.sandbox.apiserver.patch.merge import merge


def apply_patch(tree: Any, kind: Any, live: Any, config: Any, **_: Any) -> Any:
    """Merge for now."""
    return merge(live or {}, config)
