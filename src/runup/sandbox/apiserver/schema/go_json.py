"""Values as Go prints them in errors, where the order of a struct's members is to be seen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

JSON = dict[str, Any]


def struct_text(value: JSON, members: Iterable[str]) -> str:
    """JSON of a struct whose empty members are left out: `members` in their order, those that are not null."""
    return text({name: value[name] for name in members if value.get(name) is not None})


def text(value: Any) -> str:
    """JSON without blanks, in the order given."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def go_text(value: Any) -> str:
    """A value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
