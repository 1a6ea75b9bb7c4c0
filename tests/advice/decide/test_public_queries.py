"""Every query of the public graph data, by Prometheus' own engine, over series that make it 0, 1 and absent."""

from __future__ import annotations

import itertools
import re
import re._parser as expressions  # type: ignore[import-not-found]  # noqa: PLC2701 -- Python has no public parser
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.prometheus import TOOL, tool_needed

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "graph-data" / "blocked-edges"
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
# A metric without braces: a name that no parenthesis follows, with an underscore, outside of quotes.
BARE = re.compile(r"(?<![\w\"{,.])([a-z]+_[a-z_]+)(?=\s*(?:\)|\[|>|$))")
# Days between two sets of series: none reaches the next, whatever range a query has.
STEP = 40
BIG = 500


def _queries() -> list[str]:
    found: dict[str, None] = {}
    for file in sorted(CORPUS.glob("*.yaml")):
        document = yaml.load(file.read_text(), yaml.CSafeLoader)
        for rule in document.get("matchingRules") or ():
            if rule["type"] == "PromQL":
                found.setdefault(rule["promql"]["promql"])
    return list(found)


def _example(expression: str) -> str:
    """A text that an expression of a matcher matches in full."""

    def of(parsed: Any) -> str:
        text = ""
        for operation, value in parsed:
            kind = str(operation)
            if kind == "LITERAL":
                text += chr(value)
            elif kind == "ANY":
                text += "x"
            elif kind == "IN":
                first, found = value[0]
                text += chr(found if str(first) == "LITERAL" else found[0])
            elif kind == "MAX_REPEAT":
                least, _, inner = value
                text += of(inner) * max(least, str(inner[0][0]) in ("ANY", "IN"))
            elif kind == "SUBPATTERN":
                text += of(value[3])
            else:
                text += of(value[1][0])
        return text

    found = of(expressions.parse(expression))
    assert re.fullmatch(expression, found)
    return found


def _series(query: str) -> list[str]:
    """What the query selects, each selector satisfied, and each of its metrics with no label at all."""
    found: dict[str, None] = {}
    for metric, body in SELECTOR.findall(query):
        labels = {}
        for label, operator, value in MATCHER.findall(body):
            if operator == "=":
                labels[label] = value
            elif operator == "=~":
                labels[label] = _example(value)
            else:
                labels.setdefault(label, "other")
        shown = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()) if value)
        found.setdefault(f"{metric}{{{shown}}}")
    for metric in [*(metric for metric, _ in SELECTOR.findall(query)), *BARE.findall(query)]:
        found.setdefault(f"{metric}{{}}")
    return list(found)


def _sets(size: int) -> Iterator[dict[int, int]]:
    """Which series there are, and their values: none, one, two, three of them, all."""
    yield {}
    for count in range(1, min(size, 3) + 1):
        values = (1, 0, BIG) if count == 1 else (1, 0) if count == 2 else (1,)
        for chosen in itertools.combinations(range(size), count):
            for shown in itertools.product(values, repeat=count):
                yield dict(zip(chosen, shown, strict=True))
            yield {**dict.fromkeys(chosen, 1), chosen[-1]: BIG}
    for value in (1, 0, BIG):
        yield dict.fromkeys(range(size), value)


def _test_of(number: int, query: str) -> dict[str, Any]:
    series, sets = _series(query), list(_sets(len(_series(query))))
    asked = [
        {
            "expr": f'label_replace({function}({query}\n), "case", "{number}.{place}.{function}", "", "")',
            "eval_time": f"{place * STEP}d",
            "exp_samples": [],
        }
        for place in range(len(sets))
        for function in ("sum", "count")
    ]
    values = [" ".join(str(one.get(index, "_")) for one in sets) for index in range(len(series))]
    inputs = [{"series": name, "values": shown} for name, shown in zip(series, values, strict=True)]
    return {"interval": f"{STEP}d", "input_series": inputs, "promql_expr_test": asked}


@tool_needed
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of graph data is not beside this checkout")
@pytest.mark.slow
def test_each_is_parsed_and_can_be_nought_one_and_absent(tmp_path: Path) -> None:
    """Nothing is expected of any set of series, so that the tool prints what each came to."""
    queries = _queries()
    assert len(queries) == 64
    tests = [_test_of(number, query) for number, query in enumerate(queries)]
    (tmp_path / "tests.yml").write_text(
        yaml.dump({"rule_files": [], "evaluation_interval": f"{STEP}d", "tests": tests}, Dumper=yaml.CSafeDumper)
    )
    command = [str(TOOL), "test", "rules", str(tmp_path / "tests.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "parse error" not in said
    values = re.findall(r'got: \{case="(\d+)\.(\d+)\.(sum|count)"\} ([-+.\dEe]+)', said)
    found: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    for number, place, function, value in values:
        found[int(number), int(place)][function] = float(value)
    came_to: dict[int, set[float | None]] = defaultdict(set)
    for number, test in enumerate(tests):
        for place in range(len(test["promql_expr_test"]) // 2):
            one = found.get((number, place), {})
            if one.get("count") in (None, 1.0):
                came_to[number].add(one.get("sum"))
    lacking = {queries[number]: {0.0, 1.0, None} - came for number, came in came_to.items()}
    assert {query: missing for query, missing in lacking.items() if missing} == {}
