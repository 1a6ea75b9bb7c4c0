"""Each field of each kind that the server publishes, set to odd values: the server refuses or takes it, never 500."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubesandbox.apiserver import odd_objects
from tests.kubesandbox.apiserver.odd_objects import ODD, WAYS, Place

import runup
from kubesandbox.apiserver.served_kinds import BUILTIN
from kubesandbox.apiserver.server import ApiServer

CRDS = Path(runup.__file__).parent / "sandbox" / "crds"
# The fast tests try so many, drawn by a fixed seed.
SAMPLED = 1500


@pytest.fixture
async def places(server: ApiServer) -> list[Place]:
    """Every field of every kind, the definitions of the sandbox's releases among them; pod templates once."""
    found = [
        place
        for kind in BUILTIN
        for place in odd_objects.places_of(kind)
        if kind.kind in {"Pod", "Deployment"} or "template" not in place.path[:-2]
    ]
    for file in sorted(CRDS.glob("*.crd.yaml")):
        definition = yaml.safe_load(file.read_text())
        place = Place(next(kind for kind in BUILTIN if kind.kind == "CustomResourceDefinition"), ())
        # Several files define the kinds of one group: the first is served.
        if (await odd_objects.send(server, place, definition, "POST")).status != 201:
            continue
        names, spec = definition["spec"]["names"], definition["spec"]
        version = next(version for version in spec["versions"] if version["storage"])
        kind = server.kinds.find(spec["group"], version["name"], names["plural"])
        assert kind is not None
        found += odd_objects.places_of(kind, version["schema"]["openAPIV3Schema"])
    return found


async def faults(server: ApiServer, cases: Iterable[tuple[Place, Any, str]]) -> list[str]:
    """The answers that are neither of a success nor of a client's fault."""
    bases = odd_objects.base_objects()
    for kind in BUILTIN:
        # Updates of those that are accepted are compared with the stored object.
        place = Place(kind, ("metadata", "name"))
        await odd_objects.send(server, place, odd_objects.odd_object(place, bases.get(kind.kind, {}), "odd"), "POST")
    found = []
    for place, value, way in cases:
        fault = await odd_objects.fault_of(server, place, bases.get(place.kind.kind, {}), value, way)
        found += [fault] if fault else []
    return found


@pytest.mark.slow
async def test_no_sampled_value_is_an_internal_error(server: ApiServer, places: list[Place]) -> None:
    """2xx, or 4xx with the reason."""
    drawn = random.Random(51)
    cases = [(drawn.choice(places), drawn.choice(ODD), drawn.choice(WAYS)) for _ in range(SAMPLED)]
    assert await faults(server, cases) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("way", WAYS)
async def test_no_value_is_an_internal_error(server: ApiServer, places: list[Place], way: str, part: int) -> None:
    """All fields; in each way, every fourth value."""

    def cases() -> Iterator[tuple[Place, Any, str]]:
        for number, place in enumerate(places[part::8]):
            for value in ODD[(number + WAYS.index(way)) % 4 :: 4]:
                yield place, value, way

    assert await faults(server, cases()) == []
