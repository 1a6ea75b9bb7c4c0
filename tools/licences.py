"""Checks the licences of everything that `requirements.lock` installs, and prints them as a table.

    .venv/bin/python tools/licences.py

What a wheel has compiled in, such as Rust's crates, counts as far as its own bills of materials name it (PEP 770).

A licence is compatible if what we distribute may be combined with it under Apache-2.0: permissive ones, and weak
copyleft (MPL, LGPL), which covers changes to the library itself: https://www.apache.org/legal/resolved.html. Exits with
1 if a package's licence is another one or is not told.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing

ROOT = Path(__file__).parents[1]
COMPATIBLE = frozenset(
    {
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "ISC",
        "LGPL-2.0-or-later",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
        "Unicode-3.0",
        "Zlib",
    }
)
# What packages without an SPDX expression say, in the field `License` or as a classifier.
SPDX = {
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Modified BSD License": "BSD-3-Clause",
}


def names(lock: str) -> list[str]:
    """Returns the packages of a lock file's text."""
    return re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)


def licence(about: metadata.PackageMetadata) -> str:
    """Returns an SPDX expression, or what the package says instead; empty if it says nothing."""
    if expression := about.get("License-Expression"):
        return expression
    classifiers = (line.split(" :: ")[-1] for line in about.get_all("Classifier", ()) if line.startswith("License ::"))
    told = [about.get("License", "").strip().partition("\n")[0], *classifiers]
    return next((SPDX.get(text, text) for text in told if text and text != "UNKNOWN"), "")


def bundled(name: str) -> dict[str, str]:
    """Returns the licences of what a package's wheel has compiled in, by name and version; empty where none is told."""
    bills = [path for path in metadata.files(name) or () if path.parent.name == "sboms" and path.suffix == ".json"]
    parts = (part for path in bills for part in json.loads(path.read_text(encoding="utf-8")).get("components", ()))
    return {f"{part['name']} {part.get('version', '')}": _of_part(part) for part in parts if part.get("licenses")}


def _of_part(part: dict[str, Any]) -> str:
    told = (each.get("expression") or each["license"].get("id") or "" for each in part["licenses"])
    return " AND ".join(f"({expression})" for expression in told)


def is_compatible(expression: str) -> bool:
    """Returns whether an SPDX expression leaves a way to fulfil it with compatible licences alone."""
    try:
        parsed = get_spdx_licensing().parse(expression)
    except ExpressionError:
        return False
    return parsed is not None and _fits(parsed)


def _fits(node: Any) -> bool:
    match type(node).__name__:
        case "AND":
            return all(_fits(part) for part in node.args)
        case "OR":
            return any(_fits(part) for part in node.args)
        case _:
            return str(node) in COMPATIBLE


def main() -> int:
    """Prints the table; 1 if a licence does not fit."""
    installed = sorted(names((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    rows = [(name, licence(metadata.metadata(name))) for name in installed]
    for name, expression in rows:
        print(f"{name:28} {expression}")
    parts = {f"{part} in {name}": told for name in installed for part, told in bundled(name).items()}
    print(f"and {len(parts)} parts that their wheels have compiled in")
    unfit = [f"{name} ({told or 'unknown'})" for name, told in (*rows, *parts.items()) if not is_compatible(told)]
    if unfit:
        print(f"error: not known to be compatible with Apache-2.0: {', '.join(unfit)}", file=sys.stderr)
    return bool(unfit)


if __name__ == "__main__":
    sys.exit(main())
