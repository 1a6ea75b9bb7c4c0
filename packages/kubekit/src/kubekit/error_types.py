"""The base errors: the type of an error determines the reaction, and its `reason` is used in conditions.

Terminal: only an edit of the spec helps. Waiting: something else must come first. The errors of the
API server and the transport (Conflict, Transient) are in `kubekit.kube.api_errors`. An exception that nobody expects is
a bug.
"""

from __future__ import annotations


class RunupError(Exception):
    """Base of the errors that runup raises on purpose. `message` is for a person and says how to resolve it."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


class Terminal(RunupError):
    """The input is invalid and must be edited: a retry does not help."""


class InputError(RunupError):
    """A file, option or argument of the caller cannot be used; `message` names it and the way out."""

    def __init__(self, message: str, *, reason: str = "InvalidInput") -> None:
        super().__init__(message, reason=reason)


class Waiting(RunupError):
    """An object or event that is needed does not exist yet; to be retried after `retry_after_s` seconds."""

    def __init__(self, message: str, *, reason: str, retry_after_s: float) -> None:
        super().__init__(message, reason=reason)
        self.retry_after_s = retry_after_s
