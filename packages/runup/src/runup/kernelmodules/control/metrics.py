"""Metrics of the kernel-module preflight. Names with `kmm_` are those of Kernel Module Management."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kubekit.kube.clock import Clock
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide.external_queries import AnswerValue, Question

_STATUS = ("preflight", "namespace", "name", "status")


class Metrics:
    """The metrics of one controller, in their own registry, because a process may have several controllers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge(
            "kernel_module_preflight_leading", "1 while this process holds the lease.", registry=self.registry
        )
        self.modules = Gauge("kmm_module_num", "Modules in the cluster.", registry=self.registry)
        self.builds = Gauge("kmm_in_cluster_build_num", "Modules with a build section.", registry=self.registry)
        self.signs = Gauge("kmm_in_cluster_sign_num", "Modules with a sign section.", registry=self.registry)
        self.preflights = Gauge("kmm_preflight_num", "Preflight validations in the cluster.", registry=self.registry)
        self.statuses = Gauge(
            "kmm_preflight_module_status",
            "1 for what a validation says of a Module: its status, or Build or Sign while that runs.",
            _STATUS,
            registry=self.registry,
        )
        self.writes = Counter(
            "kernel_module_preflight_writes", "Writes to the cluster, by kind.", ("kind",), registry=self.registry
        )
        self.answers = Histogram(
            "kernel_module_preflight_answer_seconds",
            "Finding out about an image, a release, or what a build is made of.",
            ("question",),
            buckets=(0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
            registry=self.registry,
        )

    def timed(
        self, answer: Callable[[Question], Awaitable[AnswerValue]], clock: Clock
    ) -> Callable[[Question], Awaitable[AnswerValue]]:
        """Returns `answer` wrapped so that the duration of each call is recorded."""

        async def answer_timed(question: Question) -> AnswerValue:
            """Answers the question and records how many seconds that took."""
            started = clock.monotonic()
            try:
                return await answer(question)
            finally:
                kind = type(question).__name__.removesuffix("Question").lower()
                self.answers.labels(kind).observe(clock.monotonic() - started)

        return answer_timed

    def see(
        self,
        modules: Iterable[Module],
        validations: Iterable[PreflightValidation],
        ocps: Iterable[PreflightValidationOCP],
    ) -> None:
        """Sets the gauges from the current objects; series of deleted objects are removed."""
        modules, validations = tuple(modules), tuple(validations)
        self.modules.set(len(modules))
        self.builds.set(sum(_has_section(module, "build") for module in modules))
        self.signs.set(sum(_has_section(module, "sign") for module in modules))
        # A PreflightValidationOCP counts only while it has no PreflightValidation of its own.
        owned = {
            owner.name
            for validation in validations
            for owner in validation.metadata.owner_references
            if owner.controller
        }
        self.preflights.set(len(validations) + sum(ocp.metadata.name not in owned for ocp in ocps))
        self.statuses.clear()
        for validation in validations:
            for entry in validation.status.modules:
                status = entry.running_stage or entry.verification_status
                self.statuses.labels(validation.metadata.name, entry.namespace, entry.name, status).set(1)


def _has_section(module: Module, section: str) -> bool:
    """Reports whether the Module has `section` (build, sign) for any of its kernels."""
    loader = module.spec.module_loader
    if loader is None:
        return False
    parts = (loader.container, *loader.container.kernel_mappings)
    return any(getattr(part, section) is not None for part in parts)
