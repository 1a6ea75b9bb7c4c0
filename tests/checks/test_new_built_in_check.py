"""The files that `runup checks new --builtin` writes into a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubekit.error_types import InputError
from runup.checks.control.skeleton import built_in_files
from runup.checks.decide.check_page import example, problems
from runup.checks.decide.engine import run_check
from runup.checks.writing import CatalogueCheck

ROOT = Path(__file__).parents[2]


def test_writes_a_check_that_applies_to_its_example_and_its_rows() -> None:
    """The new check needs no further registration."""
    files = built_in_files(ROOT, "OldNodes", "nodes", "machine-config")
    module, *rows = files
    assert module.name == "old_nodes.py"
    assert [path.name for path in rows] == ["README.md", "test_examples.py"]
    assert all("OldNodes" in text for text in files.values())
    scope: dict[str, object] = {"__name__": "old_nodes"}
    exec(compile(files[module], str(module), "exec"), scope)
    check = scope["CHECK"]
    assert isinstance(check, CatalogueCheck)
    assert list(problems(check)) == []
    assert [finding.name for finding in run_check(check, *example(check)).findings] == ["OldNodes"]


def test_refuses_an_area_that_is_not_there() -> None:
    """Outside of a checkout there is nothing to add a check to."""
    with pytest.raises(InputError, match="there is no such area"):
        built_in_files(ROOT, "OldNodes", "nowhere", "machine-config")
