"""Kubernetes' rules for names, with apimachinery's messages: each function returns the faults joined, or ""."""

from __future__ import annotations

import re

_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _length_faults(value: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(value) > limit else []


def dns1035_label_faults(value: str) -> str:
    """Returns the faults of a name such as `clusterversions`: a letter first, at most 63 characters."""
    faults = _length_faults(value, 63)
    if not _LABEL_1035.fullmatch(value):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        )
    return ",".join(faults)


def dns1123_label_faults(value: str) -> str:
    """Returns the faults of a name such as a namespace's: at most 63 characters."""
    faults = _length_faults(value, 63)
    if not _LABEL_1123.fullmatch(value):
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        )
    return ",".join(faults)


def dns1123_subdomain_faults(value: str) -> str:
    """Returns the faults of a name such as most objects': labels joined by dots, at most 253 characters."""
    faults = _length_faults(value, 253)
    if not _SUBDOMAIN.fullmatch(value):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    return ",".join(faults)
