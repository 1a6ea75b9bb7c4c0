"""Every kind and subresource of a real server is served, or is on the page of differences."""

from __future__ import annotations

import pytest
import yaml
from tests.contract import differences
from tests.contract.api import Api
from tests.contract.served import RECORDED, served


def _recorded() -> set[tuple[str, str]]:
    return _pairs(yaml.safe_load(RECORDED.read_text()))


def _pairs(table: dict[str, list[str]]) -> set[tuple[str, str]]:
    return {(version, name) for version, names in table.items() for name in names}


def _explained() -> set[tuple[str, str]]:
    return {(kinds.group, name) for kinds in differences.stored().kinds for name in kinds.names}


def test_served_as_recorded(api: Api) -> None:
    """A real server serves what was recorded; the sandbox the same without what the page says."""
    if api.name != "sandbox":
        # What other tests define is below .example, and a definition that was deleted is served for a moment more.
        theirs = {pair for pair in _pairs(served(api)) if not pair[0].partition("/")[0].endswith(".example")}
        assert theirs == _recorded()
        return
    assert _recorded() - _pairs(served(api)) == _explained()


def test_nothing_is_served_that_a_real_server_has_not(api: Api) -> None:
    """A client would take it for another cluster."""
    if api.name != "sandbox":
        pytest.skip("it is the measure")
    assert _pairs(served(api)) - _recorded() == set()
