"""One number of risks, whoever tells it: the operator's condition, the table, the verdict, history and compare."""

from __future__ import annotations

import re

import pytest
from tests.domain.clusterversion.world import World, risk

from runup.cli.findings import accepted_names, complete, counts, current
from runup.cli.render import history as rendered
from runup.cli.render.preflight import section, verdict
from runup.domain.preflight import history as histories

CASES = [
    ("the report's own and an update that nobody offers", (), "5.2.0", (2, 1, 0)),
    ("one is accepted", ("DualStackIncompatible",), "5.2.0", (1, 1, 1)),
    ("a risk of the update service counts as well", (), "5.1.0", (2, 1, 0)),
]


@pytest.mark.parametrize(("accepted", "target", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_counts_agree(accepted: tuple[str, ...], target: str, expected: tuple[int, int, int]) -> None:
    """Applying, unknown and accepted: the same everywhere, and compare names all of them."""
    world = World.new().ask_preflight(target).settle()
    world.report(risk(), risk("Dim", applies="Unknown")).settle()
    if accepted:
        world.accept(*accepted).settle()
    cluster, stored = world.version, histories.read(world.observed.history)
    found = current(cluster, stored)
    assert found is not None
    assert counts(found.risks) == expected
    told = ", ".join(
        [f"{expected[0]} {'risk applies' if expected[0] == 1 else 'risks apply'}", f"{expected[1]} could not be told"]
        + [f"{expected[2]} accepted"] * bool(expected[2])
    )
    assert f", {told} (as of " in world.message("PreflightCompleted")
    assert verdict(found).startswith(f"Verdict: {told}. ")
    table = "".join(text for _, text in section(found))
    names = sorted(entry.name for entry in found.risks)
    assert all(re.search(rf"^  \S+ +\S+ +{name} ", table, re.MULTILINE) for name in names)
    history = complete(cluster, stored)
    row = rendered.history(history, accepted_names(cluster)).splitlines()[1].split()
    assert tuple(map(int, row[3:6])) == expected
    compared = rendered.comparison(rendered.compare(history.reports[0], history.reports[0]))
    assert all(name in compared for name in names)
