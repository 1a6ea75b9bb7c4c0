"""Computes the uid of an insight: it stays the same while the content changes, and fits the API's limits."""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from runup.api.update_v1alpha1 import ResourceRef
from runup.updatestatus.decide.finding import Finding

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MAX_LENGTH = 63


@lru_cache(maxsize=1 << 14)
def uid_of_object(kind: str, name: str) -> str:
    """Returns a uid such as `co-etcd`; a long name, or one with dots, is replaced by 26 characters of its digest."""
    uid = f"{kind}-{name}"
    return uid if len(uid) <= _MAX_LENGTH and _LABEL.fullmatch(uid) else f"{kind}-{_short_digest([name])}"


def uid_of_finding(finding: Finding) -> str:
    """Returns a uid from the rule and the finding's identity, or its objects if it has none; never from its text."""
    about = (
        [finding.identity]
        if finding.identity
        else [part for ref in finding.resources for part in _identifying_parts(ref)]
    )
    return f"health-{_short_digest([finding.check, *about])}"


def _identifying_parts(ref: ResourceRef) -> tuple[str, ...]:
    return ref.group, ref.resource, ref.namespace, ref.name


def _short_digest(parts: Iterable[str]) -> str:
    """Returns 26 characters that are the same only for the same parts: half of a SHA-256 in base32, in lower case."""
    # The lengths distinguish ("ab", "c") from ("a", "bc").
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return b32encode(sha256(text.encode()).digest()[:16]).decode().lower().rstrip("=")
