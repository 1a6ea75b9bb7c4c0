"""CEL, the language of CRD rules and of declarative checks, behind one small interface.

    program = compile_cel("self.replicas <= self.max", {"self": "dyn"})
    program.evaluate({"self": {"replicas": 1, "max": 3}})            # True

In: an expression, the names it may use, plain dicts and lists. Out: a Python value (bool, int, float, str, bytes,
None, list, dict, datetime, timedelta). Syntax and unknown names fail at compile time, the rest at evaluation; running
out of budget is a separate error, because it says nothing about the object.

Besides CEL's standard library and its strings, math, encoders, bindings and optional extensions there are the
functions of Kubernetes' own libraries (k8s.io/apiserver/pkg/cel/library): `isURL url getScheme getHost getHostname
getPort getEscapedPath getQuery`, `isQuantity quantity isGreaterThan isLessThan compareTo add sub sign asInteger
asApproximateFloat isInteger`, `isIP ip family isUnspecified isLoopback isGlobalUnicast isLinkLocalUnicast
isLinkLocalMulticast ip.isCanonical`, `isCIDR cidr containsIP containsCIDR prefixLength masked`, `isSemver semver
major minor patch`, `find findAll`, those of `authorizer` (`kubekit.lang.cel_authorizer`), lists' `isSorted sum min
max indexOf lastIndexOf`, and `sets.contains sets.equivalent sets.intersects`.

The limits of this engine, and their consequences for a rule:
- Objects are not typed: `self.typo` compiles, and fails when evaluated (a real API server refuses the CRD).
- URL, quantity, IP, CIDR and semver values are maps inside (no opaque types): `type(x)` and `string(x)` of them
  differ.
- 10,000 iterations an evaluation are the engine's limit, besides the cost (`kubekit.lang.cel_cost`); there is no cost
  estimate at compile time. `map` and `filter` convert items to Python values and back: an unsigned integer
  becomes an integer, and a time is rounded to the microsecond.
- Optional values cannot be part of lists and maps.
- Two-variable comprehensions (`all(k, v, ...)`), `format` named `named.format`, and `jsonpatch` are absent."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kubekit.lang import cel_ast, cel_authorizer, cel_cost
from kubekit.lang.cel_cost import Budget as Budget
from kubekit.lang.cel_functions import GLOBAL_FUNCTIONS, MEMBER_FUNCTIONS
from kubekit.lang.text import cut

# The type of each variable: dyn, bool, int, double, string, bytes, list, map, timestamp, duration or optional.
TypeHints = Mapping[str, str]


class CelError(ValueError):
    """Base of this module's errors."""


class CelSyntaxError(CelError):
    """The expression does not compile; the message shows the place, as the API server does."""


class CelEvaluationError(CelError):
    """The expression has no value for these variables: a missing key, a wrong type, a division by zero."""


class CelBudgetError(CelEvaluationError):
    """The evaluation cost too much and has no result; the expression must range over less, or build less."""


_COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"
# The engine takes no optional values, so one is passed as a list of zero or one items under this name.
_OPTIONAL_LIST = "_optional_{}"


class Program:
    """A compiled expression, which can be evaluated any number of times."""

    __slots__ = ("_cost", "_error", "_expression", "_optionals", "expression", "result_type")

    def __init__(
        self, expression: str, *, compiled: Any, result_type: str, optionals: frozenset[str], cost: int
    ) -> None:
        self.expression = expression
        self.result_type = result_type  # bool, int, string, dyn, ...
        self._cost = cost
        self._error = _cel_library().Type.ERROR
        self._expression = compiled
        self._optionals = optionals

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Returns the expression's value for `variables`. Raises CelBudgetError and CelEvaluationError.

        Values are plain dicts and lists of JSON types. An absent optional variable is None. One evaluation costs
        `cel_cost.PER_CALL` at most, and takes what it costs from `budget`.
        """
        with cel_cost.count_cost(budget) as costs_too_much:
            try:
                cel_cost.pay_cost(self._cost)
                value = self._evaluate_plain(variables)
            except (CelEvaluationError, cel_cost.Exhausted) as error:
                if costs_too_much():
                    raise CelBudgetError(_COST_EXCEEDED) from error
                raise
            # A disjunction has a value also where one of its parts cost too much.
            if costs_too_much():
                raise CelBudgetError(_COST_EXCEEDED)
            return value

    def _evaluate_plain(self, variables: Mapping[str, Any]) -> Any:
        """Returns the value as plain Python data. Raises CelEvaluationError with the engine's reason."""
        data = dict(variables)
        for name in self._optionals:
            value = data.pop(name, None)
            data[_OPTIONAL_LIST.format(name)] = [] if value is None else [value]
        try:
            result = self._expression.eval(data=data)
            if result.type() != self._error:
                return result.plain_value()
            reason = str(result.plain_value())
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            reason = str(error)
        raise _evaluation_error(reason)


# Words of CEL that name no variable, but may name a field (k8s.io/apiserver/pkg/cel/escaping.go). Since Kubernetes
# 1.31, rules may write `self.namespace` as well as `self.__namespace__`.
RESERVED_WORDS = frozenset({"as", "break", "const", "continue", "else", "for", "function", "if", "import"}) | frozenset(
    {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_TEXT = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_ESCAPED_WORD = re.compile(rf"{_TEXT}|(?<=[.?])(\s*)__({'|'.join(sorted(RESERVED_WORDS))})__\b")


def compile_cel(expression: str, variables: TypeHints) -> Program:
    """Compiles `expression` for `variables` (name -> type hint). Raises CelSyntaxError.

    A field `__namespace__` is the field `namespace`, and so for each of RESERVED_WORDS.
    """
    optionals = frozenset(name for name, hint in variables.items() if hint == "optional")
    source = _ESCAPED_WORD.sub(lambda found: f"{found[1]}{found[2]}" if found[2] else found[0], expression)
    for name in sorted(optionals):
        # Makes an optional of the list that is passed in its place.
        as_list = _OPTIONAL_LIST.format(name)
        value = f"(size({as_list}) == 0 ? optional.none() : optional.of({as_list}[0]))"
        source = f"cel.bind({name}, {value}, {source})"
    hints = tuple(sorted(variables.items()))
    try:
        source.encode()  # the engine's own error for half of a surrogate pair is a TypeError
        compiled = engine_environment(hints).compile(source)
        tree = cel_ast.parse_tree(compiled.serialize())
        cost = cel_cost.add_cost_hooks(tree, _FUNCTION_NAMES)
        counting = engine_environment(hints, counts=True).deserialize(cel_ast.serialize_tree(tree))
    except (RuntimeError, ValueError) as error:
        raise CelSyntaxError(tidy_message(str(error))) from error
    return Program(
        expression,
        compiled=counting,
        result_type=compiled.return_type().name().lower(),
        optionals=optionals,
        cost=cost,
    )


def paths_read(expression: str, variables: TypeHints) -> frozenset[cel_ast.Path]:
    """Returns the paths of variables that an expression reads (`cel_ast.paths_read`). Raises CelSyntaxError."""
    try:
        compiled = engine_environment(tuple(sorted(variables.items()))).compile(expression)
        return frozenset(cel_ast.paths_read(cel_ast.parse_tree(compiled.serialize()).root))
    except (RuntimeError, ValueError) as error:
        raise CelSyntaxError(tidy_message(str(error))) from error


_MEMBERS = (*MEMBER_FUNCTIONS, *cel_authorizer.FUNCTIONS)
_FUNCTION_NAMES = frozenset(function.name for function in (*GLOBAL_FUNCTIONS, *_MEMBERS))


@cache
def _cel_library() -> Any:
    """Returns the CEL library, imported on first use: it takes 18 MiB, which an operator without CEL rules saves."""
    from cel_expr_python import cel

    # The engine (0.1.3) gives one reference to None back too many for each null that becomes Python's: after some
    # thousand of them the interpreter ends the process ("deallocating None"). From 3.12 on, Python never frees it.
    if sys.version_info < (3, 12):
        # The count is the first field of every object.
        ctypes.c_ssize_t.from_address(id(None)).value += 1 << 40
    return cel


@cache
def _engine_types() -> dict[str, Any]:
    """Returns the engine's types by the names that declarations use."""
    types = _cel_library().Type
    return {
        "dyn": types.DYN,
        "bool": types.BOOL,
        "int": types.INT,
        "double": types.DOUBLE,
        "string": types.STRING,
        "bytes": types.BYTES,
        "list": types.List(types.DYN),
        "strings": types.List(types.STRING),
        "map": types.Map(types.STRING, types.DYN),
        "timestamp": types.TIMESTAMP,
        "duration": types.DURATION,
    }


@cache
def engine_environment(variables: tuple[tuple[str, str], ...], *, counts: bool = False) -> Any:
    """Returns the engine's environment for variables with type hints; with `counts` it has the cost hooks, too."""
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    cel, types = _cel_library(), _engine_types()
    # Overloads of one name keep the order of the tables.
    overloads: dict[str, list[Any]] = {}
    for functions, is_member in ((GLOBAL_FUNCTIONS, False), (_MEMBERS, True)):
        for function in functions:
            name, kinds = function.name, function.parameters
            identity = "_".join(("runup", name.replace(".", "_"), *kinds, "member" if is_member else "global"))
            parameters = [types[kind] for kind in kinds]
            overload = cel.Overload(identity, types[function.result], parameters, is_member, _with_costs(function.call))
            overloads.setdefault(name, []).append(overload)
    for name, hook_kinds, result, call in cel_cost.HOOKS if counts else ():
        parameters = [types[kind] for kind in hook_kinds]
        overload = cel.Overload("_".join((name, *hook_kinds)), types[result], parameters, False, call)
        overloads.setdefault(name, []).append(overload)
    extensions = [
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_encoders.ExtEncoders(),
        ext_bindings.ExtBindings(),
        ext_optional.ExtOptional(),
        # An extension, and the last one: only then may a function add overloads to an existing one, such as indexOf.
        cel.CelExtension("kubernetes", [cel.FunctionDecl(name, same_name) for name, same_name in overloads.items()]),
    ]
    given = {
        _OPTIONAL_LIST.format(name) if hint == "optional" else name: types["list" if hint == "optional" else hint]
        for name, hint in variables
    }
    return cel.NewEnv(variables=given, extensions=extensions)


def _with_costs(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `call`, charging the size of its arguments and its result to the evaluation's budget."""

    def paid_call(*arguments: Any) -> Any:
        for argument in arguments:
            cel_cost.pay_for(argument)
        result = call(*arguments)
        cel_cost.pay_for(result)
        return result

    return paid_call


# Bytes of the engine's text that are reported; each line of an expression of a check or a rule has a hundred or two.
_LONGEST_MESSAGE = 4096
_STATUS = re.compile(r"^[A-Z_]+: ")
_MISSING_KEY = re.compile(r'Key not found in map : "(.*)"', re.DOTALL)


def tidy_message(text: str) -> str:
    """Returns the engine's text without the status codes around it; it quotes the expression, however long that is."""
    return cut(re.sub(r" \[[A-Z_]+\]$", "", _STATUS.sub("", text)), _LONGEST_MESSAGE)


def _evaluation_error(reason: str) -> CelEvaluationError:
    """Returns the error for the engine's reason, in the words of cel-go, which users of Kubernetes know."""
    text = tidy_message(reason)
    if "teration budget exceeded" in text or "iteration limit" in text.lower():
        return CelBudgetError("operation cancelled: actual cost limit exceeded (10000 iterations)")
    if (missing := _MISSING_KEY.search(text)) is not None:
        return CelEvaluationError(f"no such key: {missing.group(1)}")
    if "divide by zero" in text:
        return CelEvaluationError("division by zero")
    if "Applying SELECT to non-message type" in text or "No matching overloads" in text:
        return CelEvaluationError("no such overload")
    return CelEvaluationError(text)
