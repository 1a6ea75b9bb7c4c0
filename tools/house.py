"""`python tools/house.py [SRC]`: how large the house is, as JSON: modules, lines, functions, rooms, single importers.

SRC is a folder of packages, by default this checkout's `src`; another checkout's gives the figures before a change. A
room is a folder with modules. Imports inside functions count as imports.
"""

from __future__ import annotations

import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from pathlib import Path

LARGEST = 10


def main(source: Path) -> int:
    """Print the figures of `source`; 2 where it has no module."""
    paths = {_dotted(path, source): path for path in sorted(source.rglob("*.py")) if _packaged(path)}
    if not paths:
        print(f"error: {source} holds no Python package; give the folder that holds the packages", file=sys.stderr)
        return 2
    trees = {name: ast.parse(path.read_bytes()) for name, path in paths.items()}
    lines = {name: len(path.read_text().splitlines()) for name, path in paths.items()}
    functions = [
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno
    ]
    rooms: Counter[str] = Counter()
    in_room: Counter[str] = Counter()
    for name, path in paths.items():
        room = str(path.parent.relative_to(source))
        rooms[room] += lines[name]
        in_room[room] += path.name != "__init__.py"
    importers = _importers(trees, paths)
    sizes = sorted(lines.values())
    names = Counter(path.name for path in paths.values() if path.name != "__init__.py")
    figures = {
        "modules": len(paths),
        "lines": sum(sizes),
        "linesOfAModule": {"median": statistics.median(sizes), "p90": _p90(sizes), "largest": sizes[-1]},
        "functions": len(functions),
        "linesOfAFunction": {
            "median": statistics.median(functions),
            "p90": _p90(sorted(functions)),
            "longest": max(functions),
        },
        "packages": sum(path.name == "__init__.py" for path in paths.values()),
        "rooms": sum(1 for count in in_room.values() if count),
        "largestRooms": [
            {"room": room, "lines": count, "modules": in_room[room]} for room, count in rooms.most_common(LARGEST)
        ],
        "modulesWithOneImporter": sum(
            len(importers[name]) == 1 for name, path in paths.items() if path.name != "__init__.py"
        ),
        "fileNamesThatOccurTwice": sum(count for count in names.values() if count > 1),
    }
    print(json.dumps(figures, indent=2))
    return 0


def _packaged(path: Path) -> bool:
    return (path.parent / "__init__.py").exists()


def _dotted(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _p90(ordered: list[int]) -> int:
    return ordered[int(len(ordered) * 0.9)]


def _importers(trees: dict[str, ast.Module], paths: dict[str, Path]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        package = name if paths[name].name == "__init__.py" else name.rpartition(".")[0]
        for imported in _imports(tree, package, trees.keys()):
            if imported != name:
                found[imported].add(name)
    return found


def _imports(tree: ast.Module, package: str, known: Container[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            inside = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*inside, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in known else base


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src"))
