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
