"""Questions: each asked once, so many at a time, and an error of ours is no verdict that stays."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from structlog.testing import capture_logs

from kubekit.api.meta_v1 import NamespacedName
from kubekit.kube.clock import ManualClock
from runup.api.kmm_v1beta1 import TLSOptions
from runup.kernelmodules.control.answer_cache import ANSWER_TTL, MAX_CONCURRENT_QUESTIONS, AnswerCache
from runup.kernelmodules.decide.module_state import (
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


def image(name: str) -> ImageQuestion:
    return ImageQuestion(
        image=name, kernel="6.1.0-1", dir_name="/opt", module_names=("kmod",), tls=TLSOptions(), namespace="drivers"
    )


class Source:
    """Answers when it is let; counts what it is asked."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.asked: list[Question] = []
        self.at_a_time = 0
        self.most = 0

    async def answer(self, question: Question) -> AnswerValue:
        self.asked.append(question)
        self.at_a_time += 1
        self.most = max(self.most, self.at_a_time)
        await self.open.wait()
        self.at_a_time -= 1
        return Image(verified=question != image("bad"), reason="r")


async def settled(asking: AnswerCache) -> None:
    async with asyncio.timeout(90):
        while True:
            if not asking.under_way:
                return
            await asyncio.sleep(0)


def test_each_question_is_asked_once_and_so_many_at_a_time() -> None:
    """Fifty images of fifty Modules, asked by three validations."""

    async def story() -> None:
        source = Source()
        shown: list[int] = []
        asking = AnswerCache(source.answer, ManualClock(), lambda: shown.append(1))
        questions = [image(f"i{at}") for at in range(50)]
        for _ in range(3):
            asking.ask(questions)
        for _ in range(10):
            await asyncio.sleep(0)
        assert asking.known.of_image(questions[0]) is None
        source.open.set()
        await settled(asking)
        assert source.asked == questions
        assert (source.most, len(shown)) == (MAX_CONCURRENT_QUESTIONS, 50)
        assert asking.known.of_image(questions[49]) is not None

    asyncio.run(story())


def test_an_error_of_ours_is_told_as_one() -> None:
    """It is a failure that is asked again, not a Module that is bad, nor one that is good."""

    async def story() -> None:
        async def broken(_question: Question) -> AnswerValue:
            raise RuntimeError("oops")

        asking = AnswerCache(broken, ManualClock(), lambda: None)
        release, material = ReleaseQuestion("r"), BuildInputsQuestion("drivers")
        with capture_logs() as logs:
            asking.ask([image("i"), release, material])
            await settled(asking)
        assert [line["event"] for line in logs] == ["a question could not be answered"] * 3
        text = "it could not be found out, by an error of the operator: RuntimeError: oops"
        known = asking.known
        assert (known.of_image(image("i")) or ())[0] == Image(verified=False, reason=f"image i: {text}")
        assert (known.of_release(release) or ())[0] == Kernels(problem=text)
        assert (known.of_material(material) or ())[0] == BuildInputs(problem=text)

    asyncio.run(story())


def test_answers_are_forgotten_when_somebody_asks_anew_and_after_an_hour() -> None:
    """An image that existed then may be gone now."""

    async def story() -> None:
        source, clock = Source(), ManualClock()
        source.open.set()
        asking = AnswerCache(source.answer, clock, lambda: None)
        asking.ask([image("good"), image("bad")])
        await settled(asking)
        assert set(asking.known.known) == {image("good"), image("bad")}
        asking.forget()
        assert asking.known.known == {}
        asking.ask([image("good")])
        await settled(asking)
        await clock.advance(ANSWER_TTL.total_seconds() + 1)
        asking.ask([image("other")])
        await settled(asking)
        assert list(asking.known.known) == [image("other")]

    asyncio.run(story())


def test_a_stop_waits_for_no_registry() -> None:
    """The running request is cancelled."""

    async def story() -> None:
        asking = AnswerCache(Source().answer, ManualClock(), lambda: None)
        asking.ask([image("slow")])
        await asyncio.sleep(0)
        async with asyncio.timeout(90):
            await asking.close()
        assert asking.under_way == 0

    asyncio.run(story())


def test_what_changed_is_asked_again_and_nothing_else() -> None:
    """An old answer counts until there is a new one; one under way was made before the change, and is as old."""

    async def story() -> None:
        source, clock = Source(), ManualClock()
        asking = AnswerCache(source.answer, clock, lambda: None)
        plain = image("i")
        pulled, elsewhere = replace(plain, secret="pull"), replace(plain, secret="pull", namespace="shop")
        built = BuildInputsQuestion("drivers", "recipe", (("key", "key"), ("pull", "")))
        every = (plain, pulled, elsewhere, built)
        source.open.set()
        asking.ask(every)
        await settled(asking)

        def due() -> set[Question]:
            now = clock.now()
            known = asking.known.known
            return {each for each, answer in known.items() if (now - answer.at).total_seconds() >= RECHECK_INTERVAL_S}

        assert not asking.expire("Secret", NamespacedName("drivers", "other"))
        assert not asking.expire("ConfigMap", NamespacedName("drivers", "pull"))
        assert not asking.expire("ConfigMap", NamespacedName("shop", "recipe"))
        assert due() == set()
        assert asking.expire("ConfigMap", NamespacedName("drivers", "recipe"))
        assert due() == {built}
        assert asking.expire("Secret", NamespacedName("drivers", "pull"))
        assert due() == {built, pulled}
        assert not asking.expire("ServiceAccount", NamespacedName("shop", "builder"))
        assert asking.expire("ServiceAccount", NamespacedName("drivers", "builder"))
        assert due() == {built, pulled, plain}
        assert set(asking.known.known) == set(every)
        source.open.clear()
        asking.ask(every)
        await asyncio.sleep(0)
        asking.expire("Secret", NamespacedName("shop", "pull"))
        source.open.set()
        await settled(asking)
        assert due() == {elsewhere}
        # An answer that was asked for after the change is not as old.
        asking.ask([elsewhere])
        await settled(asking)
        assert due() == set()
        asking.forget({"drivers"})
        assert set(asking.known.known) == {elsewhere}

    asyncio.run(story())
