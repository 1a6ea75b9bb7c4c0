"""Values as Go prints them in error messages, with a struct's members in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

JSON = dict[str, Any]


def struct_text(value: JSON, members: Iterable[str]) -> str:
    """Returns the JSON of a struct, its members in the order of `members` and without those that are null."""
    return text({name: value[name] for name in members if value.get(name) is not None})


def text(value: Any) -> str:
    """Returns JSON without blanks, with members in the given order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
