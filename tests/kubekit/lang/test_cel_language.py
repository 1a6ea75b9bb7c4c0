"""CEL as Kubernetes has it: values, extension functions, and which error means what."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.few_or_many import first_and_rest

from kubekit.lang.cel import Budget, CelBudgetError, CelError, CelEvaluationError, CelSyntaxError, compile_cel

# Answers of Kubernetes' own CEL environment: `go run -C tests/kubekit/lang/celtable . ../cel_table.json`.
TABLE = json.loads((Path(__file__).parent / "cel_table.json").read_text())
# Where one evaluation costs more here: the result of replace() is counted, and what map() and filter() collect.
DEARER = {("size(s.replace('a', s + s))", 3000), ("['a', 'b', 'c'].map(x, s + x).filter(x, x != s).size()", 1_000_000)}


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        pytest.param("isURL(self)", "https://example.com:80/a", True, id="an absolute URL is one"),
        pytest.param("isURL(self)", "example", False, id="a bare word is not a URL"),
        pytest.param("url(self).getHostname()", "https://[::1]:80/a", "::1", id="a hostname has no brackets"),
        pytest.param("quantity(self) == quantity('1024Mi')", "1Gi", True, id="equal quantities are equal"),
        pytest.param("quantity(self).isLessThan(quantity('1G'))", "1Gi", False, id="1Gi is more than 1G"),
        pytest.param("isQuantity(self)", "1Gb", False, id="Gb is no suffix"),
        pytest.param("semver(self).isLessThan(semver('5.10.0'))", "5.2.0", True, id="versions compare by number"),
        pytest.param("isSemver(self)", "v5.2.0", False, id="a leading v is no version"),
        pytest.param("semver(self, true) == semver('1.2.0-rc.1')", "v01.2-rc.1", True, id="unless it is tolerated"),
        pytest.param("quantity(self).isInteger()", "2500m", False, id="a quantity with a fraction"),
        pytest.param("cidr(self).containsIP('10.128.3.4')", "10.128.0.0/14", True, id="an address in a range"),
        pytest.param("cidr(self).ip().family()", "fd01::/48", 6, id="the family of a range"),
        pytest.param("self.find('[0-9]+')", "abc 123", "123", id="find gives the first match"),
        pytest.param("self.findAll('[0-9]', 2)", "1 2 3", ["1", "2"], id="findAll stops at the limit"),
        pytest.param("self.isSorted() && self.sum() == 6", [1, 2, 3], True, id="lists are sorted and summed"),
        pytest.param("self.indexOf('b')", ["a", "b"], 1, id="indexOf of a list"),
        pytest.param("sets.equivalent(self, [2, 1])", [1, 2, 2], True, id="sets ignore order and repetition"),
        pytest.param("self.split(',').join('-').upperAscii()", "a,b", "A-B", id="string extensions"),
        pytest.param("self.?a.orValue(3)", {}, 3, id="an optional member"),
        pytest.param("has(self.a.b)", {"a": {}}, False, id="has of an absent member"),
        pytest.param("self.n < 2.5", {"n": 1}, True, id="an int compares with a double"),
    ],
)
def test_values(expression: str, value: Any, expected: object) -> None:
    """Each expression gives what Kubernetes' libraries document."""
    assert compile_cel(expression, {"self": "dyn"}).evaluate({"self": value}) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("self ==", "Syntax error", id="half an expression"),
        pytest.param("nobody == 1", "undeclared reference to 'nobody'", id="an unknown name"),
        pytest.param("'\ud800'", "surrogates not allowed", id="half of a surrogate pair"),
        pytest.param("isURL(1)", "found no matching overload for 'isURL'", id="a wrong argument"),
    ],
)
def test_compile_errors(expression: str, message: str) -> None:
    """Errors in the text are found when it is compiled."""
    with pytest.raises(CelSyntaxError, match=message):
        compile_cel(expression, {"self": "dyn"})


def test_how_much_of_a_compile_error_is_told() -> None:
    """It quotes the expression: a status could not take it whole."""
    with pytest.raises(CelSyntaxError) as caught:
        compile_cel("self ==" + "self " * 19_000, {"self": "dyn"})
    assert str(caught.value).startswith("ERROR: <input>:1:")
    assert len(str(caught.value)) <= 4096


@pytest.mark.parametrize(
    ("expression", "value", "message"),
    [
        pytest.param("self.y", {"x": 1}, "no such key: y", id="a missing key"),
        pytest.param("1 / self", 0, "division by zero", id="a division by zero"),
        pytest.param("self + 1", "a", "no such overload", id="a sum of text and number"),
    ],
)
def test_evaluation_errors(expression: str, value: Any, message: str) -> None:
    """An expression without an answer is an error in cel-go's words, never false."""
    with pytest.raises(CelEvaluationError, match=message):
        compile_cel(expression, {"self": "dyn"}).evaluate({"self": value})


@pytest.mark.slow
def test_budget() -> None:
    """Running out of budget is a separate error: it says nothing about the object."""
    with pytest.raises(CelBudgetError):
        compile_cel("self.all(i, i < 20000)", {"self": "list"}).evaluate({"self": list(range(10_001))})


@pytest.mark.parametrize(("old", "expected"), [(None, True), (2, True), (5, False)])
def test_optional_variable(old: int | None, expected: bool) -> None:
    """An optional variable is none or a value, as `optionalOldSelf` needs it."""
    program = compile_cel("!old.hasValue() || old.value() <= self", {"self": "int", "old": "optional"})
    assert program.evaluate({"self": 3, "old": old}) is expected


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['expression'][:60]} of {row['s'][:20]!r}")
def test_as_kubernetes_answers(row: dict[str, Any]) -> None:
    """Patterns, texts and costs have the value, or the error, that Kubernetes' libraries have for them."""
    expression, text = row["expression"], row["s"] * row.get("repeat", 1)
    error = row.get("error", "")
    if (expression, row.get("repeat")) in DEARER:
        error = "operation cancelled: actual cost limit exceeded"
    if not error:
        # Go writes an empty list as null.
        assert compile_cel(expression, {"s": "string"}).evaluate({"s": text}) == (
            [] if row["value"] is None else row["value"]
        )
        return
    with pytest.raises(CelError) as raised:
        compile_cel(expression, {"s": "string"}).evaluate({"s": text})
    assert str(raised.value) == error or "invalid matches argument" in error


def nested(depth: int, step: str, first: str, result: str) -> str:
    """`result` of a value that `step` was applied to so often, each time to the last one, `V`."""
    expression = result.replace("V", f"v{depth}")
    for level in range(depth, 0, -1):
        expression = f"cel.bind(v{level}, {step.replace('V', f'v{level - 1}')}, {expression})"
    return f"cel.bind(v0, {first}, {expression})"


LONG, MANY = "a" * 20_000, [""] * 9000
GREEDY = {
    "26 doublings of a text": (nested(26, "V + V", "'a'", "size(V)"), {}),
    "26 doublings of a list": (nested(26, "V + V", "[1]", "size(V)"), {}),
    "a list in a list, 26 times twice": (nested(26, "[V, V]", "[1]", "V == V"), {}),
    "a map in a map, 26 times twice": (nested(26, "{'a': V, 'b': V}", "{'a': 1}", "V == V"), {}),
    "what is returned in a list, 26 times twice": (nested(26, "[V, V]", "[1]", "V"), {}),
    "a function of it": (nested(26, "[V, V]", "[1]", "V.isSorted()"), {}),
    "three levels of a thousand": (nested(3, f"[{', '.join(['V'] * 1000)}]", "[1]", "V == V"), {}),
    "replace": ("size(s.replace('a', s))", {"s": LONG}),
    "join": ("size(l.join(s))", {"s": LONG, "l": MANY}),
    "join of one text again and again": ("size(l.map(x, s).join())", {"s": LONG, "l": MANY}),
    "map to long texts": ("size(l.map(x, s + 'b'))", {"s": LONG, "l": MANY}),
    "split into characters": ("size(s.split(''))", {"s": "a" * 5_000_000}),
    "substrings": ("l.all(x, s.substring(1) != '')", {"s": "a" * 1_000_000, "l": MANY}),
    "lengths": ("l.all(x, size(s) > 0)", {"s": "a" * 1_000_000, "l": MANY}),
    "keys of a map in a loop": ("l.all(x, m.exists(k, true))", {"l": MANY, "m": {str(n): 1 for n in range(20_000)}}),
    "digits": (f"l.all(x, '{'%.1000f' * 100}'.format([{', '.join(['1.5'] * 100)}]) != '')", {"l": MANY}),
    "a large quantity": ("l.all(x, quantity('1e999999').sign() == 1)", {"l": MANY}),
    "a costly pattern": ("s.matches('(a{100}){9}b') || s.find('(a|b|c)*d') == ''", {"s": "a" * 1_000_000}),
    "a search for each match": ("size(s.findAll('a.*b|a'))", {"s": "a" * 1_000_000}),
    "a condition that goes on without it": ("size(s.replace('a', s)) > 0 || true", {"s": LONG}),
    "sums of lists": ("size(l.map(x, [1]).sum()) > 0 || sets.contains(l, l.map(x, 'a'))", {"l": MANY}),
}

# Each in a separate fork, whose peak of memory is of nothing else, and which has imported and begun already.
_IN_FORKS = """
import json, os, resource, sys
from kubekit.lang.cel import CelError, compile_cel
greedy = json.load(sys.stdin)
compile_cel("'a'.matches('a') && 'a'.find('a') == 'a'", {}).evaluate({})
for what, (expression, variables) in greedy.items():
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        outcome = repr(compile_cel(expression, {name: "dyn" for name in variables}).evaluate(variables))[:80]
    except CelError as error:
        outcome = type(error).__name__
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([what, outcome, (peak - before) / 1024]), flush=True)
    os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", first_and_rest(range(3)))
def test_greedy(part: int) -> None:
    """An expression that wants more than its budget ends by it, at once and with little memory."""
    greedy = dict(list(GREEDY.items())[part::3])
    done = subprocess.run(
        [sys.executable, "-c", _IN_FORKS], input=json.dumps(greedy), text=True, stdout=subprocess.PIPE, check=True
    )
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert {what: outcome for what, outcome, _mebibytes in shown} == dict.fromkeys(greedy, "CelBudgetError")
    assert {what: mebibytes for what, _outcome, mebibytes in shown if mebibytes >= 256} == {}


_MANY_NULLS = """
from kubekit.lang.cel import compile_cel
program = compile_cel("self", {"self": "dyn"})
for _ in range(20_000):
    assert program.evaluate({"self": {"a": None}}) == {"a": None}
"""


@pytest.mark.slow
def test_many_nulls() -> None:
    """A process in which many nulls became Python's continues: the engine frees None too often."""
    assert subprocess.run([sys.executable, "-c", _MANY_NULLS], check=False).returncode == 0


def test_optional_values_in_others() -> None:
    """An optional value in a list, or handed to a function, is refused: the engine would end the process."""
    for expression in ("[1].indexOf(optional.of(1))", "{'a': optional.none()}", "[1].map(x, optional.of(x))"):
        with pytest.raises(CelSyntaxError, match="an optional value cannot be used here"):
            compile_cel(expression, {})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("[?optional.of(1), ?optional.none(), 2]", [1, 2], id="a list of what there is"),
        pytest.param("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}, id="a map of what there is"),
        pytest.param("optional.of(2).optMap(x, x + 1).orValue(0)", 3, id="optMap"),
        pytest.param("self.?a.?b.or(optional.of(1)).value()", 1, id="a choice"),
        pytest.param("(true ? self.?a : optional.none()).hasValue()", False, id="a condition"),
        pytest.param("self.?a == optional.none()", True, id="a comparison"),
    ],
)
def test_optional_values(expression: str, expected: object) -> None:
    """Where an optional value is taken apart or compared, it can be used."""
    assert compile_cel(expression, {"self": "dyn"}).evaluate({"self": {}}) == expected


def test_budget_of_several() -> None:
    """Evaluations with one budget share it: the one that meets its end has no result, and none after it."""
    program, budget = compile_cel("s + s != ''", {"s": "string"}), Budget(1000)
    assert program.evaluate({"s": "a" * 2000}, budget) is True
    for text in ("a" * 4000, "a" * 4000):
        with pytest.raises(CelBudgetError):
            program.evaluate({"s": text}, budget)
    assert program.evaluate({"s": "a" * 2000}) is True
