"""`python -m bench.hostile.reports COUNT SEED`: mutated reports through the operator's reader; for the bench.

What is accepted is judged a second time, by the published schema and by rules written here: a reader that takes too
much is as wrong as one that breaks. What is refused must be refused as such, with a reason and a short message.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from bench.fuzz.changes import JSON, ODD, encoded, swollen, with_odd_values, without_members
from bench.hostile.images import peak_kib
from bench.hostile.survey import Survey
from runup.report import report

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "spec" / "preflight-v1.schema.json"
OUTCOMES = ("refused as due", "accepted as due", "wrong", "crashed")
Read = Callable[[bytes], report.Report]
_MESSAGE = 2000


def whole() -> dict[str, JSON]:
    """A report that uses every field."""
    resource = {"group": "apps", "kind": "Deployment", "namespace": "n", "name": "d"}
    risks = [
        {"name": f"Risk-{n}", "message": "Words.", "url": "https://example.com/a%20b", "applies": "Unknown"}
        | {"reason": "Because", "severity": "critical", "resources": [resource] * 3, "remediation": "Do it."}
        for n in range(5)
    ]
    checks = [
        {"name": "C", "component": "c", "result": "Applies", "message": "m", "durationSeconds": 0.5} for _ in range(5)
    ]
    times = dict.fromkeys(("startedTime", "completionTime", "observedTime", "heartbeatTime"), "2026-01-14T10:00:00Z")
    about = {"preflightID": "p-1", "sourceVersion": "5.0.0", "targetVersion": "5.2.0", "targetImage": "r/a@sha256:1"}
    state = {"executionStatus": "completed", "engineVersion": "1.0", "message": "m", "risksOmitted": 1}
    return {"format": report.FORMAT, **about, **times, **state, "checks": checks, "risks": risks}


def mutations(count: int, seed: int) -> Iterator[tuple[str, bytes, bool | None]]:
    """Kind, bytes, and whether they must be accepted; None where either may be right, by the second judge."""
    drawn = random.Random(seed)
    yield from _known()
    kinds = tuple(_RANDOM.items())
    for number in range(count):
        name, mutate = kinds[number % len(kinds)]
        yield name, mutate(drawn), None


def _known() -> Iterator[tuple[str, bytes, bool]]:
    """What is right or wrong for certain, at the limits and just beyond."""
    good = whole()
    many = [{"name": f"R{n}", "message": "m"} for n in range(report.MAX_RISKS + 1)]
    checks = [{"name": "c", "result": "Clear"}] * (report.MAX_CHECKS + 1)
    size = report.MAX_BYTES - len(encoded(good))
    rows: tuple[tuple[JSON, bool], ...] = (
        (good, True),
        (good | {"later": {"x": [1]}}, True),
        (good | {"risks": many[:-1]}, True),
        (good | {"risks": many}, False),
        (good | {"checks": checks[:-1]}, True),
        (good | {"checks": checks}, False),
        (good | {"risks": [many[0]] * 2}, False),
        (good | {"format": "preflight-v2-json"}, False),
        (good | {"preflightID": "../x"}, False),
    )
    for document, accepted in rows:
        yield "known", encoded(document), accepted
    yield "known", encoded(good) + b" " * size, True
    yield "known", encoded(good) + b" " * (size + 1), False
    yield "known", b'{"x":' * 150_000, False
    yield "known", b"\xff" * 1000, False


def mutation(drawn: random.Random) -> bytes:
    """Returns one mutated report, of any kind."""
    return drawn.choice(tuple(_RANDOM.values()))(drawn)


def _flipped(drawn: random.Random) -> bytes:
    data = bytearray(encoded(whole()))
    for _ in range(drawn.randint(1, 8)):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    return bytes(data)


def _spliced(drawn: random.Random) -> bytes:
    data = encoded(whole())
    start, end = sorted((drawn.randrange(len(data)), drawn.randrange(len(data))))
    return data[:end] + data[start:] if drawn.random() < 0.5 else data[:start] + data[end:]


def _cut(drawn: random.Random) -> bytes:
    data = encoded(whole())
    return data[: drawn.randrange(len(data))]


def _odd_values(drawn: random.Random) -> bytes:
    return encoded(with_odd_values(drawn, whole()))


def _lost_members(drawn: random.Random) -> bytes:
    return encoded(without_members(drawn, whole()))


def _swollen(drawn: random.Random) -> bytes:
    return encoded(swollen(drawn, whole()))


def _twice(drawn: random.Random) -> bytes:
    """A member twice, the second time with another value."""
    document = whole()
    key = drawn.choice(tuple(document))
    again = json.dumps({key: drawn.choice(ODD)})[1:]
    return encoded(document)[:-1] + b", " + again.encode()


_RANDOM: dict[str, Callable[[random.Random], bytes]] = {
    "flipped bytes": _flipped,
    "spliced": _spliced,
    "cut short": _cut,
    "odd values": _odd_values,
    "lost members": _lost_members,
    "swollen": _swollen,
    "a member twice": _twice,
}


def judged(read: Read, data: bytes, due: bool | None, valid: Callable[[JSON], bool]) -> tuple[str, str]:
    """One of OUTCOMES, and in words what was wrong."""
    try:
        read(data)
    except report.BadReport as error:
        if due:
            return "wrong", f"refused, though good: {error}"
        odd = not error.reason or not str(error).isprintable() or len(str(error)) > _MESSAGE
        return ("wrong", f"refused in odd words: {str(error)[:200]!r}") if odd else ("refused as due", "")
    except Exception as error:  # noqa: BLE001 -- that is what is looked for
        return "crashed", f"{type(error).__name__}: {error}"[:200]
    why = "" if due else "accepted, though bad" if due is False else _unsound(data, valid)
    return ("wrong", why) if why else ("accepted as due", "")


def _unsound(data: bytes, valid: Callable[[JSON], bool]) -> str:
    """Why nobody should have accepted `data`; empty where it may be."""
    try:
        document = _without_nulls(json.loads(data))
        if not valid(document):
            return "accepted, though the schema refuses it"
    except (ValueError, RecursionError):
        return "accepted, though it is no JSON"
    names = [risk["name"] for risk in document.get("risks", ())]
    if len(set(names)) < len(names) or len(names) > 200 or len(data) > 1 << 20:
        return "accepted beyond the limits"
    if not all(re.fullmatch(r"[A-Z][A-Za-z0-9.-]{0,255}", name) for name in names):
        return "accepted with a name that no status takes"
    return ""


def _without_nulls(value: JSON) -> JSON:
    """As every wire type here is read: a member that is null is none."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def survey(count: int, seed: int, read: Read = report.read) -> dict[str, Any]:
    """Every mutation read in this process; counted by kind, with the slowest and what was wrong."""
    valid = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).is_valid
    seen = Survey()
    for kind, data, due in mutations(count, seed):
        started = time.perf_counter()
        outcome, why = judged(read, data, due, valid)
        took_s = time.perf_counter() - started
        seen.take(kind, outcome, took_s, what=kind, wrong=f"{kind}: {why}" if why else "")
    return seen.found(20)


def main() -> None:
    """Print what came of all of them, and the most memory that the process had."""
    found = survey(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(found | {"peak_mib": round(peak_kib() / 1024, 1)}))


if __name__ == "__main__":
    main()
