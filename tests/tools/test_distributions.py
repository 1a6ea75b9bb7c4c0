"""Each distribution declares what its package imports, so that it works where nothing else is installed."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
# Packages whose name on the index is another one.
DISTRIBUTIONS = {
    "cel_expr_python": "cel-expr-python",
    "dask": "distributed",  # which requires its own version of it
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "runup": "kube-runup",
    "yaml": "PyYAML",
}
# Parts of aiohttp's own interface; pytest loads the plugin.
OF_OTHERS = {"multidict", "pytest", "yarl"}
# To parse all modules would take seconds.
IMPORT = re.compile(r"^[ \t]*(?:from (\w+)[\w.]* import |import (\w+)[\w.]*(?: as \w+)?(?: *#.*)?$)", re.MULTILINE)


def _imported(package: Path) -> Iterator[str]:
    """Yields the top-level packages that the modules of `package` import, those of type checkers alone included."""
    for path in package.rglob("*.py"):
        yield from (found[1] or found[2] for found in IMPORT.finditer(path.read_text(encoding="utf-8")))


def _declared(requirements: list[str]) -> set[str]:
    return {Requirement(text).name for text in requirements}


@pytest.mark.parametrize("name", ["kubekit", "kubesandbox", "runup"])
def test_declares_what_it_imports(name: str) -> None:
    """No more and no less, extras included; zoneinfo reads tzdata, the sandbox has uvloop."""
    project = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    imported = set(_imported(ROOT / "packages" / name / "src" / name)) - {name} - sys.stdlib_module_names - OF_OTHERS
    extras = [text for texts in project.get("optional-dependencies", {}).values() for text in texts]
    declared = _declared([*project["dependencies"], *extras]) - {project["name"], "s3fs", "tzdata"}
    assert {DISTRIBUTIONS.get(each, each) for each in imported} == declared


@pytest.mark.parametrize("name", ["kubekit", "kubesandbox", "runup"])
def test_has_a_page_and_a_licence(name: str) -> None:
    """The licence is the repository's; the README has the name on the index, and leads to the page."""
    package = ROOT / "packages" / name
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (package / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# {project['name']}\n")
    (page,) = re.findall(r"`(docs/[a-z/-]+\.md)`", readme)
    assert f"{project['name']}" in (ROOT / page).read_text(encoding="utf-8")
