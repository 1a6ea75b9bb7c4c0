"""The type of an error says what happens next; its `reason` is already the condition's.

Terminal: only an edit of the spec helps. Waiting: something else must come first. Anything else is a bug of ours.
The errors of the API server and the transport (Conflict, Transient) are `kubekit.kube.errors`.
"""

from __future__ import annotations


class RunupError(Exception):
    """Base of the errors that runup raises on purpose. `message` is for a person and names the way out."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


class Terminal(RunupError):
    """Trying again changes nothing: the input must be edited."""


class Waiting(RunupError):
    """Something else must come first; look again after `retry_after_s` seconds."""

    def __init__(self, message: str, *, reason: str, retry_after_s: float) -> None:
        super().__init__(message, reason=reason)
        self.retry_after_s = retry_after_s
