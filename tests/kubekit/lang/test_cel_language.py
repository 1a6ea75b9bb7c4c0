"""CEL as Kubernetes has it: values, extension functions, and which error means what."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.lang.cel import CelBudgetError, CelEvaluationError, CelSyntaxError, compile_cel


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
        pytest.param("isURL(1)", "found no matching overload for 'isURL'", id="a wrong argument"),
    ],
)
def test_compile_errors(expression: str, message: str) -> None:
    """What is wrong with the text shows when it is compiled."""
    with pytest.raises(CelSyntaxError, match=message):
        compile_cel(expression, {"self": "dyn"})


@pytest.mark.parametrize(
    ("expression", "value", "message"),
    [
        pytest.param("self.y", {"x": 1}, "no such key: y", id="a missing key"),
        pytest.param("1 / self", 0, "division by zero", id="a division by zero"),
        pytest.param("self + 1", "a", "no such overload", id="a sum of text and number"),
    ],
)
def test_evaluation_errors(expression: str, value: Any, message: str) -> None:
    """What cannot be answered is an error in cel-go's words, never false."""
    with pytest.raises(CelEvaluationError, match=message):
        compile_cel(expression, {"self": "dyn"}).evaluate({"self": value})


def test_budget() -> None:
    """Running out of budget is an error of its own: it says nothing about the object."""
    with pytest.raises(CelBudgetError):
        compile_cel("self.all(i, i < 20000)", {"self": "list"}).evaluate({"self": list(range(10_001))})


@pytest.mark.parametrize(("old", "expected"), [(None, True), (2, True), (5, False)])
def test_optional_variable(old: int | None, expected: bool) -> None:
    """An optional variable is none or a value, as `optionalOldSelf` needs it."""
    program = compile_cel("!old.hasValue() || old.value() <= self", {"self": "int", "old": "optional"})
    assert program.evaluate({"self": 3, "old": old}) is expected
