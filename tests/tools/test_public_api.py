"""The page about versions lists the public API of each package; what it lists exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (
    (ROOT / "docs" / "reference" / "versions.md")
    .read_text()
    .partition("## What counts as API")[2]
    .partition("\n## ")[0]
)
MODULES = sorted(set(re.findall(r"`((?:runup|kubesandbox|kubekit)(?:\.[a-z_]+)+)`", TABLE)))


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_can_be_imported(name: str) -> None:
    """And every name that it exports exists."""
    module = import_module(name)
    assert [each for each in getattr(module, "__all__", ()) if not hasattr(module, each)] == []


@pytest.mark.parametrize("package", ["runup", "kubesandbox", "kubekit"])
def test_each_package_has_its_row_and_its_types(package: str) -> None:
    """A package without a row would have no stable API."""
    assert any(name.startswith(f"{package}.") for name in MODULES)
    assert (ROOT / "packages" / package / "src" / package / "py.typed").is_file()


@pytest.mark.parametrize("fixture", re.findall(r"fixtures `(\w+)`, `(\w+)`", TABLE)[0])
def test_a_public_fixture_exists(fixture: str) -> None:
    """By the name that tests use."""
    assert hasattr(import_module("kubesandbox.pytest_plugin"), fixture)
