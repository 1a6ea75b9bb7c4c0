"""Somebody else's command in the middle of this one's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubekit.kube.client_sync import SyncClient


class Between(SyncClient):
    """Somebody else's command comes just before the first of this one's requests of some kind."""

    def __init__(self, other: Callable[[], object], before: tuple[str, str], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.other: list[Callable[[], object]] = [other]
        self.before = before

    def send(self, call: Any) -> Any:
        """As ever, except for what comes between."""
        method, kind = self.before
        if call.request.method == method and kind in call.request.path and self.other:
            self.other.pop()()
        return super().send(call)
