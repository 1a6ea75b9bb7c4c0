"""Finds the answers to questions of validations, a limited number at a time, each once for all Modules that ask it.

In: questions of a plan's work. Out: `known`, which the next pass observes, and a call of `told` (the callback) for each
answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from kubekit.api.meta_v1 import NamespacedName
from kubekit.kube.clock import Clock
from runup.kernelmodules.decide.external_queries import (
    BUILDER_ACCOUNT,
    Answer,
    Answers,
    AnswerValue,
    BuildInputs,
    BuildInputsQuestion,
    Image,
    ImageQuestion,
    Kernels,
    Question,
    ReleaseQuestion,
)
from runup.kernelmodules.decide.readiness import RECHECK_INTERVAL_S
from runup.process.leader_election import cancel

log = structlog.get_logger("kernelmodules")
# The most questions at a time. Layers are streamed, so this limits the load on registries and memory, not on the CPU.
MAX_CONCURRENT_QUESTIONS = 8
# How long an answer is kept: a question that was not asked again by then is of an object that is gone or verified.
ANSWER_TTL = timedelta(hours=1)


class AnswerCache:
    """The answers by now, and the questions under way.

    `answer` raises no error for what a registry or the cluster may say.
    """

    def __init__(
        self, answer: Callable[[Question], Awaitable[AnswerValue]], clock: Clock, on_answer: Callable[[], None]
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._told = on_answer
        self._places = asyncio.Semaphore(MAX_CONCURRENT_QUESTIONS)
        self._known: dict[Question, Answer] = {}
        self._tasks: dict[Question, asyncio.Task[None]] = {}
        # Questions under way whose answers will be old when they come.
        self._outdated: set[Question] = set()

    @property
    def known(self) -> Answers:
        """The answers by now."""
        return Answers(dict(self._known))

    @property
    def under_way(self) -> int:
        """The number of questions that wait for an answer."""
        return len(self._tasks)

    def ask(self, questions: Iterable[Question]) -> None:
        """Starts to find answers to `questions`, except those that are under way."""
        for question in questions:
            if question not in self._tasks:
                self._tasks[question] = asyncio.create_task(self._find_answer(question))

    def forget(self, namespaces: Container[str] | None = None) -> None:
        """Drops all answers, because a new request needs current ones: images may have been added or deleted.

        With `namespaces`, drops those about Modules there.
        """
        for question in (*self._known, *self._tasks):
            if namespaces is None or getattr(question, "namespace", "") in namespaces:
                self._known.pop(question, None)
                self._mark_outdated(question)

    def expire(self, kind: str, object_key: NamespacedName) -> bool:
        """Makes the answers old that depend on this object; returns whether there are any. They count until then."""
        affected = [question for question in (*self._known, *self._tasks) if _depends_on(question, kind, object_key)]
        for question in affected:
            if question in self._known:
                self._known[question] = replace(self._known[question], at=self._outdated_time)
            self._mark_outdated(question)
        return bool(affected)

    @property
    def _outdated_time(self) -> datetime:
        """The time of an answer that counts until there is a new one, which is to be found at once."""
        return self._clock.now() - timedelta(seconds=RECHECK_INTERVAL_S)

    def _mark_outdated(self, question: Question) -> None:
        if question in self._tasks:
            self._outdated.add(question)

    async def close(self) -> None:
        """Cancels all questions under way."""
        await cancel(tuple(self._tasks.values()))

    async def _find_answer(self, question: Question) -> None:
        """Finds the answer to one question and keeps it; it is old at once if the question was outdated meanwhile."""
        try:
            async with self._places:
                answer = await self._answer_or_failure(question)
            outdated = question in self._outdated
            self._known[question] = Answer(answer, self._outdated_time if outdated else self._clock.now())
        finally:
            del self._tasks[question]
            self._outdated.discard(question)
        self._drop_old()
        self._told()

    async def _answer_or_failure(self, question: Question) -> AnswerValue:
        """Returns the answer; an exception becomes an answer that reports it."""
        try:
            return await self._answer(question)
        except Exception as error:
            # A question without an answer would leave its Module pending for ever.
            log.exception("a question could not be answered", question=str(question))
            return _answer_about_bug(question, f"{type(error).__name__}: {error}")

    def _drop_old(self) -> None:
        oldest = self._clock.now() - ANSWER_TTL
        for question in [question for question, answer in self._known.items() if answer.at < oldest]:
            del self._known[question]


def _depends_on(question: Question, kind: str, object_key: NamespacedName) -> bool:
    """Returns whether the answer to `question` was made of the object (`kind`) of that name."""
    if kind == BUILDER_ACCOUNT:
        return isinstance(question, ImageQuestion) and (question.namespace, question.secret) == (
            object_key.namespace,
            "",
        )
    if isinstance(question, ImageQuestion):
        return kind == "Secret" and (question.namespace, question.secret) == (object_key.namespace, object_key.name)
    if not isinstance(question, BuildInputsQuestion) or question.namespace != object_key.namespace:
        return False
    names = [name for name, _ in question.secrets] if kind == "Secret" else [question.config_map]
    return object_key.name in names


def _answer_about_bug(question: Question, problem: str) -> AnswerValue:
    """Returns an answer that reports our own bug, which must not look like a verdict on a Module.

    The question is asked again like any that failed.
    """
    text = f"it could not be found out, by an error of the operator: {problem}"
    if isinstance(question, ImageQuestion):
        return Image(verified=False, reason=f"image {question.image}: {text}")
    return Kernels(problem=text) if isinstance(question, ReleaseQuestion) else BuildInputs(problem=text)
