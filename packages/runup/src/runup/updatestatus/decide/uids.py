"""Computes the uid of an insight: it stays the same while the content changes, and fits the API's limits."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kubekit.lang.digest import sha256
from runup.api.update_v1alpha1 import ResourceRef
from runup.updatestatus.decide.finding import Finding

_OF_NAMES = "abcdefghijklmnopqrstuvwxyz0123456789-"
_MAX_LENGTH = 63
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


@lru_cache(maxsize=1 << 14)
def uid_of_object(kind: str, name: str) -> str:
    """Returns a uid such as `co-etcd`; a long name, or one with dots, is replaced by 26 characters of its digest."""
    uid = f"{kind}-{name}"
    return uid if len(uid) <= _MAX_LENGTH and _is_label(uid) else f"{kind}-{_short_digest([name])}"


def _is_label(text: str) -> bool:
    """Reports whether `text`, which is not empty, is a DNS label of any length; a pattern would be compiled for it."""
    return not text.strip(_OF_NAMES) and text[0] != "-" != text[-1]


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
    # 128 bits and two more that are zero. `base64` imports three modules, a part of a hundred of a whole command.
    bits = int.from_bytes(sha256(text.encode())[:16], "big") << 2
    return "".join([_BASE32[bits >> shift & 31] for shift in range(125, -1, -5)])
