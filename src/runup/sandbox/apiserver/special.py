"""Subresources that are not the object itself."""

from __future__ import annotations

from pathlib import Path

from runup.kube.clock import Clock
from runup.sandbox.apiserver.rest import Rest
from runup.sandbox.apiserver.subresources import Handler
from runup.sandbox.apiserver.tokens import TokenSigner


def special_subresources(rest: Rest, signer: TokenSigner, clock: Clock, pods: Path) -> dict[tuple[str, str], Handler]:
    """Handlers by (resource, subresource)."""
    return {}
