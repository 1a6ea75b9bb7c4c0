"""Values as Go prints them in error messages, with a struct's members in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

JSON = dict[str, Any]
_ESCAPED = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def struct_text(value: JSON, members: Iterable[str]) -> str:
    """Returns the JSON of a struct, its members in the order of `members` and without those that are null."""
    return go_json({name: value[name] for name in members if value.get(name) is not None})


def go_json(value: Any) -> str:
    """Returns JSON without blanks, with members in the given order and what HTML has escaped, as Go's encoder does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED)
