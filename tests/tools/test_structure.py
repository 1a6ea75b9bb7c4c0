"""Rules of structure that no linter has: wide structs are keyword-only, and no call has many positional arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"
MOST = 4
# Functions of other projects, and ours that take any number of parts.
VARIADIC = {
    "Overload",
    "_exact_rules",
    "_runup",
    "changed_paths",
    "datetime",
    "el",
    "join",
    "join_parts",
    "min",
    "not_negative",
    "print",
    "suppress",
}


# Both tests in one process: each module is parsed once. No tree is kept, which makes parsing three times as fast.
pytestmark = pytest.mark.xdist_group("structure")


@cache
def wide_code() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The wide structs and the wide calls of all packages, by the path of their module."""
    structs, calls = {}, {}
    for file in sorted(PACKAGES.glob("*/src/**/*.py")):
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
        structs[str(file.relative_to(PACKAGES))] = list(wide_structs(nodes))
        calls[str(file.relative_to(PACKAGES))] = list(wide_calls(nodes))
    return structs, calls


def wide_structs(nodes: list[ast.AST]) -> Iterator[str]:
    """Yields the structs and dataclasses with more than four fields of their own that can be made by position."""
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each)]
        made_of = [*map(ast.unparse, node.bases), *map(ast.unparse, node.decorator_list)]
        is_struct = any(word.endswith(("Struct", "Wire")) or "dataclass" in word for word in made_of)
        options = " ".join([*made_of, *(ast.unparse(each) for each in node.keywords if each.arg == "kw_only")])
        named = any(each.arg == "kw_only" for each in node.keywords) or "kw_only" in options
        if is_struct and len(fields) > MOST and not named:
            yield node.name


def wide_calls(nodes: list[ast.AST]) -> Iterator[str]:
    """Yields the calls with more than four positional arguments."""
    for node in nodes:
        if isinstance(node, ast.Call) and len(node.args) > MOST:
            name = ast.unparse(node.func).rpartition(".")[2]
            if name not in VARIADIC and not any(isinstance(each, ast.Starred) for each in node.args):
                yield f"{name} in line {node.lineno}"


def test_structs_of_more_than_four_fields_are_keyword_only() -> None:
    """A value that is made by position says nothing of what each part is."""
    assert {path: names for path, names in wide_code()[0].items() if names} == {
        # A table with a row of a few words for each of seventy kinds; further fields than four have names there.
        "kubesandbox/src/kubesandbox/apiserver/served_kinds.py": ["Subresource", "Kind"],
        # The public API of checks (docs/reference/python-api.md), which other people's code calls by position.
        "kubekit/src/kubekit/api/scheme.py": ["Resource"],
        "runup/src/runup/checks/decide/model.py": ["Finding", "Snapshot", "Context", "Check"],
    }


def test_no_call_has_more_than_four_positional_arguments() -> None:
    """Neither of a function nor of a struct."""
    assert {path: calls for path, calls in wide_code()[1].items() if calls} == {}
