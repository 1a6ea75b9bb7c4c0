"""Objects as the rows that `kubectl get` prints: the columns of Kubernetes' own printers, and those of a CRD."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.published.tables.cells import age_of, age_since
from kubesandbox.apiserver.published.tables.columns import columns_of
from kubesandbox.apiserver.published.tables.jsonpath import PathError, find_values
from kubesandbox.apiserver.served_kinds import Kind

JSON = dict[str, Any]
NAME = {"name": "Name", "type": "string", "format": "name", "description": "The object's name.", "priority": 0}
_BY_PATH = "Custom resource definition column (in JSONPath format)"


class Tables:
    """The columns and cells by kind."""

    def columns(self, kind: Kind) -> list[JSON]:
        """Returns the column definitions of a kind."""
        if kind.custom:
            declared = _declared_columns(kind)
            definitions = [
                {
                    "name": column["name"],
                    "type": column["type"],
                    "format": column.get("format", ""),
                    "description": column.get("description") or f"{_BY_PATH}: {column['jsonPath']}",
                    "priority": column.get("priority", 0),
                }
                for column in declared
            ]
            return [NAME, *definitions] if declared else [NAME, _column_definition("Age", "string")]
        return [column.definition() for column in columns_of(kind)]

    def cells(self, kind: Kind, obj: JSON, now: datetime) -> list[Any]:
        """Returns the cells of one object."""
        name = obj["metadata"].get("name", "")
        if kind.custom:
            declared = _declared_columns(kind)
            return (
                [name, *(_custom_cell(column, obj, now) for column in declared)]
                if declared
                else [name, age_of(obj, now)]
            )
        return [column.cell(obj, now) for column in columns_of(kind)]


def _column_definition(name: str, type_: str) -> JSON:
    return {"name": name, "type": type_, "format": "", "description": "", "priority": 0}


def _declared_columns(kind: Kind) -> list[JSON]:
    """Returns the additionalPrinterColumns of a custom kind's version."""
    versions = ((kind.crd or {}).get("spec") or {}).get("versions") or ()
    for version in versions:
        if version.get("name") == kind.version:
            columns: list[JSON] = version.get("additionalPrinterColumns") or []
            return columns
    return []


def _custom_cell(column: JSON, obj: JSON, now: datetime) -> Any:
    """Returns the cell of a declared column: an age for a date, None if the path matches nothing."""
    try:
        values = find_values(column["jsonPath"], obj)
    except PathError:
        return None
    if not values:
        return None
    # Columns of type date show ages, as kubectl get does.
    if column["type"] == "date":
        return age_since(values[0] if isinstance(values[0], str) else None, now)
    if column["type"] in {"integer", "number", "boolean"}:
        return values[0]
    value = values[0]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
