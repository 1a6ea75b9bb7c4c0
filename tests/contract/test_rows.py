"""Every row of `rows/`, on each server: the answers are those that a real kube-apiserver gave."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract import other_versions
from tests.contract.api import Api
from tests.contract.rows import Row, rows, run

DIFFERENCES = Path(__file__).parents[2] / "docs" / "reference" / "sandbox-differences.md"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.title)
def test_row(api: Api, widgets: str, namespace: str, row: Row) -> None:
    """A request, and the answer that must come back."""
    answer = run(api, row, namespace)
    if row.differs and api.name == "sandbox":
        assert answer != row.then, "the sandbox does as the real server: take `differs` out of the row"
        pytest.xfail(row.differs)
    assert answer == row.then


def test_what_differs_is_written_down() -> None:
    """Whoever uses the sandbox reads it in the docs, not in a test."""
    page = " ".join(DIFFERENCES.read_text().split())
    assert [row.differs for row in rows() if row.differs and row.differs not in page] == []


def test_what_another_kubernetes_answers_otherwise_is_written_down() -> None:
    """Each reason is in the docs, each row in it is one."""
    page = " ".join(DIFFERENCES.read_text().split())
    assert [each.reason for each in other_versions.all_differences() if each.reason not in page] == []
    known = {f"{row.file}: {row.id}" for row in rows()}
    assert {row for each in other_versions.all_differences() for row in each.rows} <= known


def test_ids_are_unique() -> None:
    """A failure names one row."""
    ids = [(row.file, row.id) for row in rows()]
    assert len(ids) == len(set(ids))
