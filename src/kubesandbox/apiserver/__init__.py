"""A Kubernetes API server on SQLite: the sandbox's, and good enough for real clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesandbox.apiserver.server import ApiServer

__all__ = ["ApiServer"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the schema engine is used without a server, too.
    if name == "ApiServer":
        from kubesandbox.apiserver.server import ApiServer

        return ApiServer
    raise AttributeError(name)
