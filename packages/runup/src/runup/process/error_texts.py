"""Turns errors of the kube layer into the texts that kubectl and `oc` print for them."""

from __future__ import annotations

import sys

from kubekit.error_types import RunupError
from kubekit.lang.gotext import quote_go


def with_prefix(message: str) -> str:
    """Returns the message with `error: ` once, and one newline at the end (kubectl's CheckErr)."""
    text = message if message.startswith("error: ") else f"error: {message}"
    return text if text.endswith("\n") else text + "\n"


def kube_text(error: Exception) -> str | None:
    """Returns what the user reads of an error of the kube layer, None if `error` is another error."""
    # These errors can only be raised once the kube layer is imported, so it need not be imported to recognise them.
    codec = sys.modules.get("kubekit.api.codec")
    if codec is not None and isinstance(error, codec.DecodeError):
        return with_prefix(f"the server's answer could not be read: {error}")
    kube = sys.modules.get("kubekit.kube.api_errors")
    if kube is None or not isinstance(error, kube.KubeError):
        return None
    if isinstance(error, kube.Unreachable):
        if error.refused:
            return (
                f"The connection to the server {error.address} was refused - did you specify the right host or port?\n"
            )
        return f"Unable to connect to the server: {error.detail}\n"
    if isinstance(error, kube.Unauthorized):
        return with_prefix(f"You must be logged in to the server ({error.message})")
    if isinstance(error, kube.Invalid):
        from kubekit.kube.api_errors import Invalid

        assert isinstance(error, Invalid)
        details = error.status.details
        causes = (
            [] if details is None else [f"{c.field}: {c.message}" if c.field else c.message for c in details.causes]
        )
        # kubectl prints each cause once (k8s.io/kubectl pkg/cmd/util, statusCausesToAggrError).
        causes = list(dict.fromkeys(causes))
        if details is None or not (details.kind or details.name):
            head = "The request is invalid"
            if not causes:
                return f"{head}: {error.message}\n"
        else:
            head = f"The {details.kind} {quote_go(details.name)} is invalid"
        if not causes:
            return f"{head}\n"
        if len(causes) == 1:
            return f"{head}: {causes[0]}\n"
        return "".join([f"{head}: \n", *(f"* {cause}\n" for cause in causes)])
    if isinstance(error, kube.ApiError):
        return f"Error from server ({error.reason}): {error.message}\n"
    return with_prefix(error.message)


def file_text(error: Exception) -> str | None:
    """Returns the text about a named file or folder that cannot be used, or about a full disk; else None."""
    if isinstance(error, OSError) and error.strerror:
        return with_prefix(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return None


def failure_text(error: Exception) -> str | None:
    """Returns what a command about one cluster would say about an error; None for a bug of ours."""
    from kubekit.oci.registry_errors import OciError

    if isinstance(error, RunupError | OciError):
        return str(error)
    text = kube_text(error) or file_text(error)
    return text.strip().removeprefix("error: ") if text else None
