"""What can go wrong with a sandbox, as errors whose message names the input and the way out."""

from __future__ import annotations

from kubekit.errors import Terminal


class SandboxError(Terminal):
    """The sandbox cannot do what was asked; `message` is for a person, `reason` a CamelCase word for scripts."""

    def __init__(self, message: str, *, reason: str = "SandboxError") -> None:
        super().__init__(message, reason=reason)
