"""The one risk that represents those which have no room, and where links of risks lead."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runup.advice.decide import preflight_reasons
from runup.advice.decide.candidates import ALWAYS
from runup.api.config_v1 import ConditionalUpdateRisk, Release
from runup.preflight.decide import published_risks
from runup.report import documentation


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_what_a_preflight_found_and_nobody_has_room_for(status: Any) -> None:
    """It comes from the preflight as the others do."""
    found = published_risks.omitted_risks("5.1.0", "3 more\n risks", status, from_preflight=True)
    assert (found.risk.name, found.risk.message) == (published_risks.OMITTED, "Preflight=5.1.0: 3 more risks")
    assert found.from_preflight
    assert found.applies.status == status
    assert found.applies.reason == (preflight_reasons.VALIDATION if status == "True" else preflight_reasons.PARTIAL)
    assert found.risk.url == documentation.page(published_risks.OMITTED)


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_what_others_found_and_nobody_has_room_for(status: Any) -> None:
    """It is no preflight's, and says so by its name."""
    found = published_risks.omitted_risks("5.1.0", "3 more risks", status, from_preflight=False)
    assert (found.risk.name, found.risk.message) == (published_risks.OTHERS_OMITTED, "3 more risks")
    assert not found.from_preflight
    assert (found.applies.status, found.risk.matching_rules) == (status, ALWAYS)
    assert found.risk.url == documentation.page(published_risks.OTHERS_OMITTED)
    assert not preflight_reasons.is_preflights(found.risk)
    assert published_risks.OMITTED != published_risks.OTHERS_OMITTED


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        (preflight_reasons.IN_PROGRESS, True),
        (preflight_reasons.INCOMPLETE, True),
        (preflight_reasons.NOT_OFFERED, True),
        (published_risks.OTHERS_OMITTED, False),
    ],
)
def test_whose_a_stored_risk_is(name: str, whose: bool) -> None:
    """By its name, where its verdict does not say."""
    risk = ConditionalUpdateRisk(name=name, message="m", url="u", matching_rules=ALWAYS)
    assert preflight_reasons.is_preflights(risk) is whose


@pytest.mark.parametrize(("holds_up", "version", "named"), [(True, "5.1.0", "5.1.0"), (False, "", "i@sha256:1")])
def test_a_hop_that_is_not_offered(holds_up: bool, version: str, named: str) -> None:
    """By its version, else by its image."""
    found = published_risks.path_not_offered(Release(version=version, image="i@sha256:1"), "5.0.0", holds_up=holds_up)
    text = f"The update service does not offer an update from 5.0.0 to {named}."
    assert found.applies.message == f"{text} Accepting it does not offer it."
    assert (found.applies.status, found.holds_up, found.from_preflight) == ("True", holds_up, True)
    assert not found.acceptable


def test_a_hop_of_which_the_service_has_not_told() -> None:
    """Not known is neither offered nor not offered."""
    found = published_risks.path_not_offered(Release(version="5.1.0", image="i@sha256:1"), "5.0.0", answered=False)
    assert (found.applies.status, found.acceptable) == ("Unknown", False)
    assert "is not known" in found.risk.message


BASE, HERE = "https://a.example/docs/", "https://b.example/docs/"


@pytest.mark.parametrize("to", ["", HERE])
def test_links_that_are_moved(to: str) -> None:
    """To where the pages are, if anybody knows; of a risk nothing else changes."""
    risk = published_risks.path_not_offered(Release(version="5.1.0"), "5.0.0")
    page = documentation.page(preflight_reasons.NOT_OFFERED, BASE)
    given = replace(risk, risk=replace(risk.risk, url=page))
    (found,) = published_risks.with_links([given], (BASE,), to)
    assert found.risk.url == (documentation.page(preflight_reasons.NOT_OFFERED, HERE) if to else page)
    assert replace(found, risk=given.risk) == given
