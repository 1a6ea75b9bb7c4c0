"""Keeps equal texts once: objects by the thousand have the same labels, and conditions with the same words.

In: texts and conditions as they are decoded, each with texts of its own. Out: equal ones, whose texts are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern

from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition


def shared_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the same names and values, each interned: 5,000 nodes have a few dozen label keys between them."""
    return {intern(key): intern(value) for key, value in texts.items()}


def with_shared_texts(condition: Condition) -> Condition:
    """Returns the condition with its type, reason and message interned."""
    return replace(
        condition,
        type=intern(condition.type),
        reason=intern(condition.reason),
        message=intern(condition.message),
    )
