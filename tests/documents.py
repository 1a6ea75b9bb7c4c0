"""Files of objects that many tests send to a server: each is parsed once a process, by libyaml."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml


def document(path: Path) -> dict[str, Any]:
    """The only object of the file, the caller's own."""
    (found,) = documents(path)
    return found


def documents(path: Path) -> list[dict[str, Any]]:
    """Every object of the file, the caller's own."""
    return copy.deepcopy(_parsed(path))


@cache
def _parsed(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
