"""Each field that a check reads, set to odd values: the check gives a result or Unknown, and does not raise.

`conftest.py` has checks raise what they would otherwise report as "the check failed".
"""

from __future__ import annotations

import copy
import json
import random
import traceback
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml
from msgspec.structs import replace as with_fields
from tests.checks.catalogue.examples import snapshot_for

from kubekit.api import codec
from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check
from runup.checks.decide.snapshots import type_of

JSON = dict[str, Any]
Path = tuple[str | int, ...]
ODD: tuple[Any, ...] = (
    *("", None, -1, 0, 1.5, True, [], {}, [None], {"": None}, [""], [{}]),
    *(2**31, -(2**63), 2**63, 10**40, "1e999998", "-1", " ", "x" * 300, "\N{PILE OF POO}", "a/b/c", "0", "8%", "-1%"),
    *(
        "9999-99-99T99:99:99Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "::",
        "{",
        "*",
        "v1.x",
        "[fe80::1",
        "%zz",
    ),
)
SAMPLED = 1500
# An example's own reader takes whether an object is the target's from there.
_OF_EXAMPLES = {("metadata",), ("metadata", "annotations")}


class Place(NamedTuple):
    """A field of one object of a check's example, by its path."""

    check: Check
    index: int
    path: Path


@cache
def objects_of(check: Check) -> tuple[JSON, ...]:
    """The documents of the check's own example, or a usual cluster."""
    if check.about:
        return tuple(obj for obj in yaml.safe_load_all(check.example) if obj)
    return tuple(
        codec.to_dict(obj) | {"apiVersion": f"{read.group}/{read.version}".strip("/"), "kind": read.kind}
        for read, objects in snapshot_for(check).objects.items()
        for obj in objects
    )


@cache
def places() -> tuple[Place, ...]:
    """The fields of all objects, and those that they lack but their types know."""
    found: dict[Place, None] = {}
    for check in CHECKS:
        kinds = {(read.group, read.kind): type_of(read) for read in check.reads}
        for index, obj in enumerate(objects_of(check)):
            kind = kinds.get((obj.get("apiVersion", "").rpartition("/")[0], obj.get("kind")))
            for path in (*_paths_in(obj, ()), *(_paths_of_type(kind, ()) if kind else ())):
                if path and path[0] not in {"apiVersion", "kind", "update"} and path not in _OF_EXAMPLES:
                    found[Place(check, index, path)] = None
    return tuple(found)


def _paths_in(value: Any, path: Path) -> Iterator[Path]:
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _paths_in(member, (*path, key))


def _paths_of_type(kind: Any, path: Path) -> Iterator[Path]:
    yield path
    if len(path) > 12:
        return
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield from _paths_of_type(field.type, (*path, field.encode_name))
    elif origin in {typing.Union, types.UnionType}:
        for argument in arguments:
            yield from (inner for inner in _paths_of_type(argument, path) if inner != path)
    elif origin in {tuple, list}:
        yield from _paths_of_type(arguments[0], (*path, 0))
    elif origin is dict:
        yield from _paths_of_type(arguments[1], (*path, "k"))


def with_value(obj: JSON, path: Path, value: Any) -> JSON:
    """A copy of `obj` with `value` at the path; objects and lists on the way are made where they do not exist."""
    obj = copy.deepcopy(obj)
    holder: Any = obj
    for part, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(part, int) and len(holder) <= part:
            holder.append(None)
        if following is None:
            holder[part] = value
            break
        inner = holder[part] if isinstance(part, int) else holder.get(part)
        wanted = list if isinstance(following, int) else dict
        if not isinstance(inner, wanted):
            inner = holder[part] = wanted()
        holder = inner
    return obj


def fault_of(place: Place, value: Any) -> str:
    """Returns the error in the check's outcome, or an empty string."""
    check, index, path = place
    documents = list(objects_of(check))
    name = documents[index].get("metadata", {}).get("name")
    documents[index] = with_value(documents[index], path, value)
    where = f"{check.name}: {documents[index].get('kind')} {'.'.join(map(str, path))} = {value!r:.40}"
    try:
        snapshot, context = check_page.example(
            with_fields(check, example="\n---\n".join(json.dumps(each, ensure_ascii=False) for each in documents))
        )
        outcome = run_check(check, snapshot, context)
    except Exception as error:  # noqa: BLE001 - all of them are listed
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{where}: {error!r:.200} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
    unreadable = [each.name for read in outcome.asked for each in snapshot.undecoded.get(read, ())]
    if name in unreadable and outcome.result == "Clear":
        return f"{where}: clear, although {name} cannot be read"
    return ""


@pytest.mark.slow
def test_no_sampled_value_makes_a_check_fail() -> None:
    """A result, or Unknown with the object's name."""
    drawn = random.Random(51)
    cases = [(drawn.choice(places()), drawn.choice(ODD)) for _ in range(SAMPLED)]
    assert [fault for place, value in cases if (fault := fault_of(place, value))] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_no_value_makes_a_check_fail(part: int) -> None:
    """All fields of all checks' examples, all values."""
    faults = [
        fault
        for number, place in enumerate(places())
        if number % 16 == part
        for value in ODD
        if (fault := fault_of(place, value))
    ]
    assert faults == []
