"""`python -m bench.hostile.cel COUNT SEED`: random expressions, many of them greedy, each evaluated; for the bench.

Any value and any CelError is as due; another error, more than two seconds, or a process that ends is a fault.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from bench.hostile.images import peak_kib
from bench.hostile.survey import Survey
from kubekit.lang.cel import CelBudgetError, CelError, CelSyntaxError, compile_cel

SLOW_S = 2.0
VARIABLES: dict[str, Any] = {
    "s": "ab\u00e9" * 300,
    "l": [str(number) for number in range(300)],
    "m": {str(number): {"a": [number, None, True]} for number in range(100)},
    "n": 7,
}
_LEAVES = (
    "s",
    "l",
    "m",
    "n",
    "'a'",
    "''",
    "[]",
    "{}",
    "0",
    "-1",
    "1.5",
    "null",
    "true",
    "b'a'",
    "1u",
    "m['1']",
    "l[0]",
)
_FORMS = (
    *("{0} + {1}", "[{0}, {1}]", "{{'a': {0}, 'b': {1}}}", "{0} == {1}", "{0} in {1}", "{0} < {1}", "{0} || {1}"),
    *("{0}.replace({1}, {0})", "{0}.join({1})", "{0}.split({1})", "{0}.matches({1})", "{0}.find({1})", "size({0})"),
    *("{0}.findAll({1})", "{0}.map(x, {1})", "{0}.filter(x, {1})", "{0}.all(x, {1})", "{0}.exists(x, x == {1})"),
    *("cel.bind(v, {0}, v + v)", "cel.bind(v, {0}, [v, v, v])", "cel.bind(v, {0}, {{'a': v, 'b': v}})", "string({0})"),
    *("{0}.indexOf({1})", "{0}.isSorted()", "{0}.sum()", "sets.contains({0}, {1})", "'%s'.format([{0}])", "dyn({0})"),
    *(
        "optional.of({0})",
        "{0}.?a",
        "{0}.orValue({1})",
        "[?{0}]",
        "quantity({0})",
        "{0} ? {1} : {0}",
        "{0}.substring(1)",
    ),
    *("type({0})", "base64.encode({0})", "bytes({0})", "{0}.reverse()", "{0}[{1}]", "has({0}.a)", "min({0}, {1})"),
)


def expression(drawn: random.Random, depth: int) -> str:
    """Returns an expression of at most that depth."""
    if depth == 0 or drawn.random() < 0.1:
        return drawn.choice(_LEAVES)
    return drawn.choice(_FORMS).format(expression(drawn, depth - 1), expression(drawn, depth - 1))


def outcome(text: str) -> tuple[str, str]:
    """Returns the kind of the outcome, and what is wrong with it."""
    started = time.perf_counter()
    try:
        compile_cel(text, dict.fromkeys(VARIABLES, "dyn")).evaluate(VARIABLES)
        kind = "evaluated"
    except CelSyntaxError:
        kind = "not compiled"
    except CelBudgetError:
        kind = "over budget"
    except CelError:
        kind = "without a value"
    except Exception as error:  # noqa: BLE001 -- that is what is looked for
        return "crashed", f"{type(error).__name__}: {error}"[:200]
    took_s = time.perf_counter() - started
    return kind, f"took {took_s:.1f} s" if took_s > SLOW_S else ""


def survey(count: int, seed: int) -> dict[str, Any]:
    """Evaluates every expression in this process; counts them by outcome."""
    drawn = random.Random(seed)
    seen = Survey()
    for _ in range(count):
        text = expression(drawn, drawn.randint(1, 5))
        # What ends the process is the last line that it wrote.
        print(text, file=sys.stderr, flush=True)
        started = time.perf_counter()
        kind, why = outcome(text)
        took_s = time.perf_counter() - started
        judged = "crashed" if kind == "crashed" else "wrong" if why else "as due"
        seen.take(kind, judged, took_s, what=text[:200], wrong=f"{text[:500]}: {why}" if why else "")
    return seen.found(20)


def main() -> None:
    """Prints what came of all of them, and the most memory that the process had."""
    found = survey(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(found | {"peak_mib": round(peak_kib() / 1024, 1)}))


if __name__ == "__main__":
    main()
