"""Finds the answers to questions of validations, a limited number at a time, each once for all Modules that ask it.

In: questions of a plan's work. Out: `known`, which the next pass observes, and a call of `told` (the callback) for each
answer. Inputs of builds and signatures are read here: the Dockerfile of a ConfigMap, and a hash of each Secret.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import Resource
from kubekit.kube import api_errors, calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.kernelmodules.decide import module_state, readiness
from runup.process.leader_election import cancel

SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
DOCKERFILE = "dockerfile"


async def read_build_inputs(client: Client, question: module_state.BuildInputsQuestion) -> module_state.BuildInputs:
    """Returns the inputs of the question; `problem` of the answer names missing ones."""
    dockerfile, versions = "", []
    if question.config_map:
        config_map_key = f"{question.namespace}/{question.config_map}"
        try:
            config_map = await client.send(calls.get(ConfigMap, question.config_map, question.namespace))
        # A ValueError is a name that would change the request's path.
        except (api_errors.KubeError, codec.DecodeError, ValueError) as error:
            return module_state.BuildInputs(problem=f"failed to get dockerfile ConfigMap {config_map_key}: {error}")
        dockerfile = config_map.data.get(DOCKERFILE) or ""
        if not dockerfile:
            problem = f"invalid Dockerfile ConfigMap {config_map_key} format, {DOCKERFILE} key is missing"
            return module_state.BuildInputs(problem=problem)
    for name, key in question.secrets:
        object_key = f"{question.namespace}/{name}"
        try:
            secret = await client.send(calls.get_raw(SECRETS, name, question.namespace))
        except (api_errors.KubeError, codec.DecodeError, ValueError) as error:
            return module_state.BuildInputs(problem=f"failed to get Secret {object_key}: {error}")
        data = secret.get("data") or {}
        if key and key not in data:
            return module_state.BuildInputs(problem=f"Secret {object_key} has no key {key}")
        # Sorted, so that only the content counts and not the order of the keys.
        versions.append(f"{name}:{hashlib.sha256(codec.encode(sorted(data.items()))).hexdigest()[:16]}")
    return module_state.BuildInputs(dockerfile, tuple(versions))


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
        self,
        answer: Callable[[module_state.Question], Awaitable[module_state.AnswerValue]],
        clock: Clock,
        on_answer: Callable[[], None],
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._told = on_answer
        self._places = asyncio.Semaphore(MAX_CONCURRENT_QUESTIONS)
        self._known: dict[module_state.Question, module_state.Answer] = {}
        self._tasks: dict[module_state.Question, asyncio.Task[None]] = {}
        # Questions under way whose answers will be old when they come.
        self._outdated: set[module_state.Question] = set()

    @property
    def known(self) -> module_state.Answers:
        """The answers by now."""
        return module_state.Answers(dict(self._known))

    @property
    def under_way(self) -> int:
        """The number of questions that wait for an answer."""
        return len(self._tasks)

    def ask(self, questions: Iterable[module_state.Question]) -> None:
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
        """The time of an answer that counts until there is a new one, which must be found at once."""
        return self._clock.now() - timedelta(seconds=readiness.RECHECK_INTERVAL_S)

    def _mark_outdated(self, question: module_state.Question) -> None:
        if question in self._tasks:
            self._outdated.add(question)

    async def close(self) -> None:
        """Cancels all questions under way."""
        await cancel(tuple(self._tasks.values()))

    async def _find_answer(self, question: module_state.Question) -> None:
        """Finds the answer to one question and keeps it; it is old at once if the question was outdated meanwhile."""
        try:
            async with self._places:
                answer = await self._answer_or_failure(question)
            outdated = question in self._outdated
            self._known[question] = module_state.Answer(answer, self._outdated_time if outdated else self._clock.now())
        finally:
            del self._tasks[question]
            self._outdated.discard(question)
        self._drop_old()
        self._told()

    async def _answer_or_failure(self, question: module_state.Question) -> module_state.AnswerValue:
        """Returns the answer; an exception becomes an answer that reports our own bug, not a verdict on a Module.

        A question without an answer would leave its Module pending for ever. It is asked again like any that failed.
        """
        try:
            return await self._answer(question)
        except Exception as error:
            log.exception("a question could not be answered", question=str(question))
            problem = f"it could not be found out, by an error of the operator: {type(error).__name__}: {error}"
        if isinstance(question, module_state.ImageQuestion):
            return module_state.Image(verified=False, reason=f"image {question.image}: {problem}")
        return (
            module_state.Kernels(problem=problem)
            if isinstance(question, module_state.ReleaseQuestion)
            else module_state.BuildInputs(problem=problem)
        )

    def _drop_old(self) -> None:
        oldest = self._clock.now() - ANSWER_TTL
        for question in [question for question, answer in self._known.items() if answer.at < oldest]:
            del self._known[question]


def _depends_on(question: module_state.Question, kind: str, object_key: NamespacedName) -> bool:
    """Returns whether the answer to `question` was made of the object (`kind`) of that name."""
    if kind == module_state.BUILDER_ACCOUNT:
        return isinstance(question, module_state.ImageQuestion) and (question.namespace, question.secret) == (
            object_key.namespace,
            "",
        )
    if isinstance(question, module_state.ImageQuestion):
        return kind == "Secret" and (question.namespace, question.secret) == (object_key.namespace, object_key.name)
    if not isinstance(question, module_state.BuildInputsQuestion) or question.namespace != object_key.namespace:
        return False
    names = [name for name, _ in question.secrets] if kind == "Secret" else [question.config_map]
    return object_key.name in names
