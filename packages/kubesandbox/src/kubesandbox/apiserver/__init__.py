"""A Kubernetes API server on SQLite, for the sandbox and for tests with real clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesandbox.apiserver.server import ApiServer

__all__ = ["ApiServer"]


def __getattr__(name: str) -> Any:
    # Imported on first use, since the schema engine is also used without a server.
    if name == "ApiServer":
        from kubesandbox.apiserver.server import ApiServer

        return ApiServer
    raise AttributeError(name)
