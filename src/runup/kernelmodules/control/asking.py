"""Questions of validations, answered so many at a time, each only once however many Modules ask it.

In: questions of a plan's work. Out: `known`, which is observed like anything else, and a word to whoever waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta

import structlog

from kubekit.kube.clock import Clock
from runup.kernelmodules.decide.asked import (
    Answer,
    Answers,
    Found,
    Image,
    ImageQuestion,
    Kernels,
    Material,
    Question,
    ReleaseQuestion,
)
from runup.process.leading import cancel

log = structlog.get_logger("kernelmodules")
# Layers are streamed, so this is a bound for registries and memory rather than for the processor.
AT_A_TIME = 8
# A question that nobody has asked again for so long is of an object that is gone, or verified.
KEPT = timedelta(hours=1)


class Asking:
    """See the module. `answer` never raises for what a registry or the cluster may say."""

    def __init__(self, answer: Callable[[Question], Awaitable[Found]], clock: Clock, told: Callable[[], None]) -> None:
        self._answer = answer
        self._clock = clock
        self._told = told
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._known: dict[Question, Answer] = {}
        self._tasks: dict[Question, asyncio.Task[None]] = {}

    @property
    def known(self) -> Answers:
        """All answers by now."""
        return Answers(dict(self._known))

    @property
    def under_way(self) -> int:
        """How many questions wait for an answer."""
        return len(self._tasks)

    def ask(self, questions: Iterable[Question]) -> None:
        """See to it that these are answered; one that is under way is not asked twice."""
        for question in questions:
            if question not in self._tasks:
                self._tasks[question] = asyncio.create_task(self._find(question))

    def forget(self) -> None:
        """Whoever asks anew wants to know how it is now: images come and go."""
        self._known.clear()

    async def close(self) -> None:
        """Ask nothing more."""
        await cancel(tuple(self._tasks.values()))

    async def _find(self, question: Question) -> None:
        try:
            async with self._places:
                found = await self._found(question)
            self._known[question] = Answer(found, self._clock.now())
        finally:
            del self._tasks[question]
        self._drop_old()
        self._told()

    async def _found(self, question: Question) -> Found:
        try:
            return await self._answer(question)
        except Exception as error:
            log.exception("a question could not be answered", question=str(question))
            return _failed(question, f"{type(error).__name__}: {error}")

    def _drop_old(self) -> None:
        oldest = self._clock.now() - KEPT
        for question in [each for each, answer in self._known.items() if answer.at < oldest]:
            del self._known[question]


def _failed(question: Question, problem: str) -> Found:
    """Our own bug is no verdict about a Module, and must not look like one; it is asked again like any failure."""
    text = f"it could not be found out, by an error of the operator: {problem}"
    if isinstance(question, ImageQuestion):
        return Image(verified=False, reason=f"image {question.image}: {text}")
    return Kernels(problem=text) if isinstance(question, ReleaseQuestion) else Material(problem=text)
