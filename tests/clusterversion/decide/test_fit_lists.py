"""Update lists that are too long for an object: who goes first, and who stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.factories import condition

from runup.advice.decide.candidates import ALWAYS, Candidate, EvaluatedRisk
from runup.api.config_v1 import ConditionalUpdateRisk, Release
from runup.clusterversion.decide import size_limits
from runup.report.report import MAX_NAME

APPLIES = condition("Applies", "True", "Always", "")


def evaluated_risk(name: str, *, from_preflight: bool = False) -> EvaluatedRisk:
    """A risk of that name."""
    risk = ConditionalUpdateRisk(name=name, message="m", url="https://example.com/x", matching_rules=ALWAYS)
    return EvaluatedRisk(risk=risk, applies=APPLIES, from_preflight=from_preflight)


def update(number: int, *risks: EvaluatedRisk) -> Candidate:
    """A release; the greater the number, the older."""
    return Candidate(Release(version=f"5.0.{number:03}", image=f"i@sha256:{number:064}"), risks)


def updates(number: int, *, from_preflight: bool = False) -> list[Candidate]:
    """So many conditional updates, newest first, each with a separate risk, all as long."""
    return [update(index, evaluated_risk(f"Risk{index:03}", from_preflight=from_preflight)) for index in range(number)]


def fit_together(found: Sequence[Candidate]) -> bool:
    """Whether nothing would be left out of them."""
    return size_limits.candidates(found) == tuple(found)


def most(*, from_preflight: bool = False) -> list[Candidate]:
    """As many updates as fit, and one more would not."""
    found = updates(100, from_preflight=from_preflight)
    while fit_together(found):
        found = updates(len(found) + 1, from_preflight=from_preflight)
    return found[:-1]


def test_what_fits_in_bytes_fits_in_number() -> None:
    """The definition's limits are never reached, with the least of updates and of risks."""
    one, two = (size_limits.candidate_bytes(update(1, *map(evaluated_risk, names))) for names in ("A", "AB"))
    assert size_limits.MAX_LISTS // one < size_limits.MAX_UPDATES
    assert size_limits.MAX_LISTS // (two - one) < size_limits.MAX_RISKS


def test_of_more_the_oldest_go() -> None:
    """A tenth at a time, until the rest fits."""
    number = len(most())
    one_more = number + 1
    assert size_limits.candidates(updates(one_more)) == tuple(updates(one_more - one_more // 10))
    twice = [2 * number]
    while twice[-1] > number:
        twice.append(twice[-1] - twice[-1] // 10)
    assert size_limits.candidates(updates(2 * number)) == tuple(updates(twice[-1]))


def test_what_a_preflight_has_checked_stays() -> None:
    """However old it is, a tenth of the others goes."""
    number = len(most())
    checked = update(number, evaluated_risk("Checked", from_preflight=True))
    assert size_limits.candidates([*updates(number), checked]) == (*updates(number - number // 10), checked)


def test_where_all_were_checked_the_oldest_goes_one_by_one() -> None:
    """There is nothing else that could go."""
    fitting = most(from_preflight=True)
    assert size_limits.candidates(updates(len(fitting) + 3, from_preflight=True)) == tuple(fitting)


def test_of_few_that_do_not_fit_one_goes() -> None:
    """A tenth of nine is one."""
    checked = [
        update(index, evaluated_risk(f"Risk{index:03}", from_preflight=True))
        for index in range(100, 100 + len(most()) - 4)
    ]
    assert size_limits.candidates([*updates(9), *checked]) == (*updates(4), *checked)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("N" * MAX_NAME, "N" * MAX_NAME, id="as long as it may be"),
        pytest.param("a\nb", "a\\nb", id="two lines"),
        pytest.param("", "UnnamedRisk", id="none"),
    ],
)
def test_names(name: str, shown: str) -> None:
    """As they are accepted."""
    (found,) = size_limits.candidates([update(1, evaluated_risk(name))])
    assert [risk.name for risk in found.risks] == [shown]


def test_long_names_that_begin_alike_stay_apart() -> None:
    """Each keeps its beginning and says that there was more."""
    names = ["N" * 300 + end for end in "ab"]
    (found,) = size_limits.candidates([update(1, *map(evaluated_risk, names))])
    shown = {risk.name for risk in found.risks}
    assert len(shown) == 2
    assert all(name.startswith("N" * 200 + "...") and len(name) <= MAX_NAME for name in shown)


@pytest.mark.parametrize(
    ("release", "listed"),
    [
        pytest.param(Release(version="5.0.1", image="i@sha256:1"), True, id="a pull spec"),
        pytest.param(Release(version="5.0.1", image="i" * 1024), True, id="a long one"),
        pytest.param(Release(version="5.0.1", image="i" * 1025), False, id="one that is too long"),
        pytest.param(Release(version="5.0.1", image="i i"), False, id="two words"),
        pytest.param(Release(version="5.0.1"), False, id="no image"),
        pytest.param(Release(image="i"), False, id="no version"),
        pytest.param(Release(version="5" * MAX_NAME, image="i"), True, id="a long version"),
        pytest.param(Release(version="5" * (MAX_NAME + 1), image="i"), False, id="a version that is too long"),
    ],
)
def test_what_nobody_could_update_to_is_left_out(release: Release, listed: bool) -> None:
    """It would be a row that nobody can use."""
    assert bool(size_limits.candidates([Candidate(release)])) is listed
