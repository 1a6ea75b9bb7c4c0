"""The state machine that carries out random operations on two servers, for the test and for the bench.

In: a `Pair`, and what to do with a difference. Out: hypothesis' own verdict, and how many sequences and operations ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.contract.api import JSON
from tests.contract.operations import Operation, Pair, operations

STEPS = 8


@dataclass
class Difference:
    """The operations up to the one whose answers differ, and both answers."""

    history: tuple[Operation, ...]
    first: JSON
    second: JSON

    def __str__(self) -> str:
        steps = "\n".join(f"  {step}" for step in self.history)
        return f"{steps}\n  first:  {self.first}\n  second: {self.second}"


# Called at each difference; raising ends all.
Found = Callable[[Difference], None]


@dataclass
class Counts:
    """How much ran."""

    sequences: int = 0
    operations: int = 0
    codes: dict[int, int] = field(default_factory=dict)


def run(pair: Pair, sequences: int, found: Found, *, number: int | None = None, shrink: bool = False) -> Counts:
    """Run that many sequences of up to STEPS operations; `shrink` looks for a shorter one.

    The same `number` makes the same sequences; without one they are always the same.
    """
    counts = Counts()

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.namespace = pair.namespace()
            self.history: list[Operation] = []
            self.over = False
            counts.sequences += 1

        @rule(operation=operations())
        def operate(self, operation: Operation) -> None:
            if self.over:
                return
            self.history.append(operation)
            first, second = pair.do(operation, self.namespace)
            counts.operations += 1
            counts.codes[first["code"]] = counts.codes.get(first["code"], 0) + 1
            if first != second:
                # What follows would only report the same difference.
                self.over = True
                found(Difference(tuple(self.history), first, second))

    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    run_state_machine_as_test(
        Machine if number is None else seed(number)(Machine),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize=number is None,
            suppress_health_check=list(HealthCheck),
            phases=phases,
            print_blob=False,
        ),
    )
    return counts
