"""Objects as the rows that `kubectl get` prints."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runup.sandbox.apiserver.kinds import Kind

JSON = dict[str, Any]


class Tables:
    """Columns and cells by kind."""

    def columns(self, kind: Kind) -> list[JSON]:
        """The column definitions."""
        return [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]

    def cells(self, kind: Kind, obj: JSON, now: datetime) -> list[Any]:
        """The cells of one object."""
        return [obj["metadata"]["name"]]
