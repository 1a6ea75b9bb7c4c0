"""Every row of `rows/`, on each server: the answers are those that a real kube-apiserver gave."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract import differences, other_versions
from tests.contract.api import Api
from tests.contract.rows import Row, rows, run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.title)
def test_row(api: Api, widgets: str, namespace: str, row: Row) -> None:
    """A request, and the answer that must come back."""
    answer = run(api, row, namespace)
    if row.differs and api.name == "sandbox":
        assert answer != row.then, "the sandbox does as the real server: take `differs` out of the row"
        pytest.xfail(row.differs)
    assert answer == row.then


def test_the_page_of_differences_is_current() -> None:
    """`python -m tests.contract.differences` writes it."""
    page = differences.PAGE.read_text()
    assert page == differences.with_tables(page)


def test_each_difference_is_explained_and_shown() -> None:
    """A reason without a row or a test could be one of the past; a row without a reason is not on the page."""
    listed = differences.stored().rows
    assert {row.differs for row in rows() if row.differs} <= {each.what for each in listed}
    assert [each.what for each in listed if not differences.shown_by(each)] == []
    paths = [test.partition("::") for each in listed for test in each.tests]
    assert [name for path, _, name in paths if f"def {name}(" not in (ROOT / path).read_text()] == []


def test_differences_of_another_version_are_of_rows() -> None:
    """Each has an effect, which the page names, and each row in it is one."""
    assert [each.reason for each in other_versions.all_differences() if not each.effect] == []
    known = {f"{row.file}: {row.id}" for row in rows()}
    assert {row for each in other_versions.all_differences() for row in each.rows} <= known


def test_ids_are_unique() -> None:
    """A failure names one row."""
    ids = [(row.file, row.id) for row in rows()]
    assert len(ids) == len(set(ids))
