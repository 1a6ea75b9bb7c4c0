"""CEL, the language of CRD rules and of declarative checks, behind one small interface.

    program = compile_cel("self.replicas <= self.max", {"self": "dyn"})
    program.evaluate({"self": {"replicas": 1, "max": 3}})            # True

In: an expression, the names it may use, plain dicts and lists. Out: a Python value (bool, int, float, str, bytes,
None, list, dict, datetime, timedelta). Syntax and unknown names fail at compile time, the rest at evaluation; running
out of budget is an error of its own, because it says nothing about the object.

Besides CEL's standard library and its strings, math, encoders, bindings and optional extensions there are the
functions of Kubernetes' own libraries (k8s.io/apiserver/pkg/cel/library): `isURL url getScheme getHost getHostname
getPort getEscapedPath getQuery`, `isQuantity quantity isGreaterThan isLessThan compareTo add sub sign asInteger
asApproximateFloat isInteger`, `isIP ip family isUnspecified isLoopback isGlobalUnicast isLinkLocalUnicast
isLinkLocalMulticast ip.isCanonical`, `isCIDR cidr containsIP containsCIDR prefixLength masked`, `isSemver semver
major minor patch`, `find findAll`, lists' `isSorted sum min max indexOf lastIndexOf`, and `sets.contains
sets.equivalent sets.intersects`.

What cannot be done with this engine, and what it means for a rule:
- Objects are not typed: `self.typo` compiles, and fails when evaluated (a real API server refuses the CRD).
- URL, quantity, IP, CIDR and semver values are maps inside (no opaque types): `type(x)` and `string(x)` of them
  differ.
- 10,000 iterations an evaluation are the budget; there is no cost estimate at compile time.
- Two-variable comprehensions (`all(k, v, ...)`), `format` named `named.format`, `authorizer` and `jsonpatch` are
  absent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kubekit.lang.cel_functions import FUNCTIONS, Function, Kind

__all__ = ["CelBudgetError", "CelError", "CelEvaluationError", "CelSyntaxError", "Function", "Program", "compile_cel"]

Hints = Mapping[str, str]  # variable -> dyn, bool, int, double, string, bytes, list, map, timestamp, duration, optional


class CelError(ValueError):
    """What every error of this module is."""


class CelSyntaxError(CelError):
    """The expression does not compile; the message shows the place, as the API server shows it."""


class CelEvaluationError(CelError):
    """The expression cannot be answered for these values: a missing key, a wrong type, a division by zero."""


class CelBudgetError(CelEvaluationError):
    """More than 10,000 iterations. Not an answer: range over fewer objects."""


# An optional cannot be handed in, so it travels as a list of none or one under this name.
_CARRIER = "_optional_{}"


class Program:
    """A compiled expression; evaluate it as often as needed."""

    __slots__ = ("_error", "_expression", "_optionals", "expression", "result_type")

    def __init__(self, expression: str, compiled: Any, optionals: frozenset[str]) -> None:
        self.expression = expression
        self.result_type: str = compiled.return_type().name().lower()  # bool, int, string, dyn, ...
        self._error = _engine().Type.ERROR
        self._expression = compiled
        self._optionals = optionals

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The expression's value for `variables`; raises CelBudgetError and CelEvaluationError.

        Values are real dicts and lists of JSON's types. An optional variable is None for none.
        """
        data = dict(variables)
        for name in self._optionals:
            value = data.pop(name, None)
            data[_CARRIER.format(name)] = [] if value is None else [value]
        try:
            result = self._expression.eval(data=data)
            if result.type() != self._error:
                return result.plain_value()
            reason = str(result.plain_value())
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            reason = str(error)
        raise _evaluation_error(reason)


def compile_cel(expression: str, variables: Hints, functions: tuple[Function, ...] = ()) -> Program:
    """Compile `expression` for `variables` (name -> type hint) and further `functions`; raises CelSyntaxError."""
    optionals = frozenset(name for name, hint in variables.items() if hint == "optional")
    source = _with_optionals(expression, optionals)
    env = _environment(tuple(sorted(variables.items())), functions)
    try:
        compiled = env.compile(source)
    except (RuntimeError, ValueError) as error:
        raise CelSyntaxError(_tidy(str(error))) from error
    return Program(expression, compiled, optionals)


@cache
def _engine() -> Any:
    """The library, read when something is compiled: 18 MiB, which an operator that compiles nothing does without."""
    from cel_expr_python import cel

    return cel


@cache
def _types() -> dict[str, Any]:
    known = _engine().Type
    return {
        "dyn": known.DYN,
        "bool": known.BOOL,
        "int": known.INT,
        "double": known.DOUBLE,
        "string": known.STRING,
        "bytes": known.BYTES,
        "list": known.List(known.DYN),
        "strings": known.List(known.STRING),
        "map": known.Map(known.STRING, known.DYN),
        "timestamp": known.TIMESTAMP,
        "duration": known.DURATION,
    }


def _with_optionals(expression: str, names: frozenset[str]) -> str:
    for name in sorted(names):
        carrier = _CARRIER.format(name)
        value = f"(size({carrier}) == 0 ? optional.none() : optional.of({carrier}[0]))"
        expression = f"cel.bind({name}, {value}, {expression})"
    return expression


@cache
def _environment(variables: tuple[tuple[str, str], ...], functions: tuple[Function, ...]) -> Any:
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    cel, known = _engine(), _types()
    types: dict[str, Any] = {}
    for name, hint in variables:
        if hint == "optional":
            types[_CARRIER.format(name)] = known["list"]
        else:
            types[name] = known[hint]
    extensions = [
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_encoders.ExtEncoders(),
        ext_bindings.ExtBindings(),
        ext_optional.ExtOptional(),
        # As an extension and last: only so may a function add overloads to one that exists, such as indexOf.
        cel.CelExtension("kubernetes", _declarations((*FUNCTIONS, *functions))),
    ]
    return cel.NewEnv(variables=types, extensions=extensions)


def _declarations(functions: tuple[Function, ...]) -> list[Any]:
    """One declaration a name; the overloads keep the order of the table."""
    overloads: dict[str, list[Any]] = {}
    for function in functions:
        overloads.setdefault(function.name, []).append(_overload(function))
    return [_engine().FunctionDecl(name, found) for name, found in overloads.items()]


def _overload(function: Function) -> Any:
    kinds: tuple[Kind, ...] = function.parameters
    identity = "_".join(("runup", function.name.replace(".", "_"), *kinds, "member" if function.member else "global"))
    known = _types()
    return _engine().Overload(
        identity, known[function.result], [known[kind] for kind in kinds], function.member, _guarded(function.call)
    )


def _guarded(call: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*arguments: Any) -> Any:
        return call(*(_plain(argument) for argument in arguments))

    return guarded


def _plain(value: Any) -> Any:
    """Arguments arrive as lists and dicts of engine values: make them Python's own."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return _plain(value.plain_value()) if hasattr(value, "plain_value") else value


_STATUS = re.compile(r"^[A-Z_]+: ")
_MISSING_KEY = re.compile(r'Key not found in map : "(.*)"', re.DOTALL)


def _tidy(text: str) -> str:
    """The compiler's text without the status codes that wrap it."""
    return re.sub(r" \[[A-Z_]+\]$", "", _STATUS.sub("", text))


def _evaluation_error(reason: str) -> CelEvaluationError:
    """The engine's reason in the words of cel-go, which users of Kubernetes know."""
    text = _tidy(reason)
    if "teration budget exceeded" in text or "iteration limit" in text.lower():
        return CelBudgetError("operation cancelled: actual cost limit exceeded (10000 iterations)")
    if (missing := _MISSING_KEY.search(text)) is not None:
        return CelEvaluationError(f"no such key: {missing.group(1)}")
    if "divide by zero" in text:
        return CelEvaluationError("division by zero")
    if "Applying SELECT to non-message type" in text or "No matching overloads" in text:
        return CelEvaluationError("no such overload")
    return CelEvaluationError(text)
