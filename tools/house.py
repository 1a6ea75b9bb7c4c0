"""`python tools/house.py [SRC ...]`: the size and grain of the code, as JSON.

SRC are folders of packages, by default those of this checkout; those of another checkout give the figures before a
change. A feature is a folder of `runup` with a `decide` room. Imports inside functions count as imports.
"""

from __future__ import annotations

import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = 60
"""A module with fewer lines than this and one importer needs a reason."""


class Module:
    """One module of the packages: its lines, its functions and its imports."""

    def __init__(self, name: str, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.name = name
        self.path = path
        self.tree = ast.parse(text)
        self.lines = len(text.splitlines())
        self.code = sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))
        self.code -= sum(_docstring_lines(node) for node in ast.walk(self.tree))
        nodes = list(ast.walk(self.tree))
        self.functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        statements = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.import_lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in statements)

    def private_used_once(self) -> Iterator[str]:
        """Yields the private functions of the module, methods left out, that occur once apart from their definition."""
        uses = Counter(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        uses += Counter(node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute))
        methods = {id(node) for each in ast.walk(self.tree) if isinstance(each, ast.ClassDef) for node in each.body}
        names = [node.name for node in self.functions if id(node) not in methods and node.name.startswith("_")]
        yield from (name for name in names if uses[name] == 1)

    def imports(self, known: dict[str, Module]) -> set[str]:
        """Returns the names of the modules in `known` that this module imports."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (full & known.keys()) or {node.module}
        return (found & known.keys()) - {self.name}


def main(sources: list[Path]) -> int:
    """Print the figures of `sources`; 2 where they hold no module."""
    paths = {
        _dotted(path, source): path for source in sources for path in sorted(source.rglob("*.py")) if _packaged(path)
    }
    modules = {name: Module(name, path) for name, path in paths.items()}
    if not modules:
        print(f"error: {', '.join(map(str, sources))}: no Python package; give folders of packages", file=sys.stderr)
        return 2
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for name in module.imports(modules):
            importers[name].add(module.name)
    lines = sum(module.lines for module in modules.values())
    functions = [node for module in modules.values() for node in module.functions]
    lengths = sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)
    private_once = sum(len(list(module.private_used_once())) for module in modules.values())
    single = [m for m in modules.values() if len(importers[m.name]) == 1 and m.path.name != "__init__.py"]
    figures = {
        "modules": len(modules),
        "lines": lines,
        "linesByPackage": dict(_by_package(modules)),
        "linesOfCode": sum(module.code for module in modules.values()),
        "medianLinesOfAModule": statistics.median(module.lines for module in modules.values()),
        "functions": len(functions),
        "medianLinesOfAFunction": statistics.median(lengths),
        "longestFunction": lengths[-1],
        "privateFunctionsUsedOnce": private_once,
        "privateFunctionsUsedOncePercent": round(100 * private_once / len(functions), 1),
        "importLines": sum(module.import_lines for module in modules.values()),
        "importLinesPercent": round(100 * sum(module.import_lines for module in modules.values()) / lines, 1),
        "modulesWithOneImporter": len(single),
        "smallModulesWithOneImporter": sorted(module.name for module in single if module.lines < SMALL),
        "featuresThatImportEachOther": sorted(_mutual(modules)),
    }
    print(json.dumps(figures, indent=2))
    return 0


def _by_package(modules: dict[str, Module]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for module in modules.values():
        counted[module.name.partition(".")[0]] += module.lines
    return counted


def _mutual(modules: dict[str, Module]) -> Iterator[str]:
    """Yields the pairs of features that import each other, with the number of imports in each direction."""
    features = {name.split(".")[1] for name in modules if name.startswith("runup.") and ".decide" in name}
    arrows = Counter(
        (module.name.split(".")[1], name.split(".")[1])
        for module in modules.values()
        if module.name.startswith("runup.") and module.name.split(".")[1] in features
        for name in module.imports(modules)
        if name.startswith("runup.") and name.split(".")[1] in features
    )
    for one, other in combinations(sorted(features), 2):
        if arrows[one, other] and arrows[other, one]:
            yield f"{one} -> {other}: {arrows[one, other]}, {other} -> {one}: {arrows[other, one]}"


def _docstring_lines(node: ast.AST) -> int:
    documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body
    first = node.body[0] if documented else None  # type: ignore[attr-defined]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def _packaged(path: Path) -> bool:
    return (path.parent / "__init__.py").exists()


def _dotted(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    sys.exit(main([Path(given) for given in sys.argv[1:]] or sorted(ROOT.glob("packages/*/src"))))
