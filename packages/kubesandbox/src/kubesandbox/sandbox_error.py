"""The errors of a sandbox, whose messages name the input and the remedy."""

from __future__ import annotations

from kubekit.error_types import Terminal


class SandboxError(Terminal):
    """An operation that the sandbox cannot do; `message` is for a person, `reason` a CamelCase word for scripts."""

    def __init__(self, message: str, *, reason: str = "SandboxError") -> None:
        super().__init__(message, reason=reason)
