"""How checks are found: by their files, in the order of their ranks, and not without a word where one is wrong."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runup.checks import catalogue
from runup.checks.catalogue import CHECKS, BadCatalogue, find_checks, network
from runup.checks.writing import LAST_RANK, CatalogueCheck

# The names of checks as they were when the catalogue began to find them by itself. A new check need not be in it.
ORDER = Path(__file__).with_name("order.txt")
DECLARED = """
'''Ingress is odd.'''
from runup.checks.writing import declared

EXAMPLE = "a: b"
CHECK = declared(lambda _snapshot, _context: (), name={name!r}, component="ingress", reads=(){rest})
"""

Add = Callable[[str, str], None]


def check(name: str, rest: str = "") -> str:
    """The text of a module that declares a check."""
    return DECLARED.format(name=name, rest=rest)


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Puts a file into the area `network` for the time of the test, and nothing else."""
    monkeypatch.setattr(network, "__path__", [*network.__path__, str(tmp_path)])
    before = set(sys.modules)
    attributes = set(vars(network))

    def write(file: str, text: str) -> None:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
    for name in set(vars(network)) - attributes:
        delattr(network, name)


def discovered_checks() -> tuple[CatalogueCheck, ...]:
    """The checks as an interpreter that starts now would find them."""
    return find_checks(catalogue.__name__, catalogue.__path__)


def test_a_new_file_is_a_new_check(add: Add) -> None:
    """Without an edit of any other file; the others stay where they are, and it comes last."""
    add("ingress_odd.py", check("IngressOdd"))
    assert [each.name for each in discovered_checks()] == [*(each.name for each in CHECKS), "IngressOdd"]


def test_a_rank_is_a_place(add: Add) -> None:
    """Between the two whose ranks are below and above it; equal ranks use name."""
    first, second = discovered_checks()[:2]
    add("ingress_odd.py", check("IngressOdd", f", rank={first.rank + 1}"))
    add("ingress_even.py", check("IngressEven", f", rank={first.rank + 1}"))
    assert [each.name for each in discovered_checks()][:4] == [first.name, "IngressEven", "IngressOdd", second.name]


def test_what_checks_share_declares_none(add: Add) -> None:
    """A folder `shared` is not looked into."""
    add("shared/helper.py", "raise AssertionError('imported')")
    assert discovered_checks() == CHECKS


BAD = (
    pytest.param(
        "ingress_odd.py",
        "CHECKS = ()",
        "network.ingress_odd declares no CHECK; if it is there to help others, move it to "
        "runup.checks.catalogue.network.shared",
        id="no check",
    ),
    pytest.param(
        "ingress_odd.py",
        "from runup.checks.decide.model import Check\n\nCHECK = Check('A', 'b', (), lambda _s, _c: ())",
        "network.ingress_odd: CHECK is a Check; make it with runup.checks.writing.declared",
        id="another form",
    ),
    pytest.param(
        "ingress_odd.py",
        check("NetworkTypeRemoved"),
        "both declare NetworkTypeRemoved",
        id="a name that is taken in the same area",
    ),
    pytest.param(
        "ingress_odd.py",
        check("NodePressure"),
        "both declare NodePressure",
        id="a name that is taken in another area",
    ),
    pytest.param(
        "ingress_odd.py",
        check("IngressOdd", ", unknown_risk='NodePressureUnknown'"),
        "both declare NodePressureUnknown",
        id="the name of what another check cannot tell",
    ),
    pytest.param(
        "ingress/__init__.py",
        "",
        "network.ingress: an area has no other folder than shared",
        id="a folder in an area",
    ),
)


@pytest.mark.parametrize(("file", "text", "words"), BAD)
def test_a_module_that_is_not_as_the_others(add: Add, file: str, text: str, words: str) -> None:
    """It is named, and what to do is said: a check that is silently left out would look like a pass."""
    add(file, text)
    with pytest.raises(BadCatalogue, match=words):
        discovered_checks()


def test_the_order_of_lists_and_reports_is_kept() -> None:
    """The list of checks keeps its order."""
    kept = ORDER.read_text().split()
    assert [each.name for each in CHECKS if each.name in kept] == kept


def test_no_two_ranks_are_one() -> None:
    """Else a check that gets another name would move in the lists."""
    ranks = [each.rank for each in discovered_checks() if each.rank != LAST_RANK]
    assert len(set(ranks)) == len(ranks)
