"""Objects for the tests of validations: valid by default, so that a test names only what matters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.module_state import (
    Answer,
    Answers,
    AnswerValue,
    BuildInputs,
    BuildInputsQuestion,
    Image,
    ImageQuestion,
    Observed,
    Question,
)
from runup.kernelmodules.decide.reconcile import reconcile
from runup.kernelmodules.decide.runs import Run, Runner, RunState
from runup.process.plan import Apply, PatchStatus, Plan

JSON = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KERNEL = "5.14.0-427.50.1.el9_4.x86_64"
UID = "validation-uid"
BUILDER = Builder(image="builder:1", sign_image="signer:1")
BUILD: JSON = {"dockerfileConfigMap": {"name": "dockerfile"}}
SIGN: JSON = {"keySecret": {"name": "key"}, "certSecret": {"name": "cert"}, "filesToSign": ["/opt/lib/modules/a.ko"]}


def ago(seconds: float) -> datetime:
    """So long before `NOW`."""
    return NOW - timedelta(seconds=seconds)


def module(name: str = "kmod", *, image: str = "registry.example/kmod:v1", **changes: Any) -> Module:
    """A Module with one mapping for any kernel; `build` and `sign` go into its container."""
    container = {
        "modprobe": {"moduleName": name},
        "kernelMappings": [{"regexp": "^.+$", "containerImage": image}],
        **{key: changes.pop(key) for key in ("build", "sign") if key in changes},
    }
    metadata = {"name": name, "namespace": "drivers", "generation": 1, **changes.pop("metadata", {})}
    spec = {"moduleLoader": {"container": container}, "selector": {}, **changes}
    return codec.convert(Module, {"metadata": metadata, "spec": spec})


def validation(*said: JSON, generation: int = 1, observed: int = 1, **spec: Any) -> PreflightValidation:
    """A PreflightValidation; `said` are entries of its status."""
    status = {"modules": list(said), "observedGeneration": observed} if said else {}
    metadata = {"name": "preflight", "uid": UID, "generation": generation, "resourceVersion": "7"}
    document = {"metadata": metadata, "spec": {"kernelVersion": KERNEL, **spec}, "status": status}
    return codec.convert(PreflightValidation, document)


def ocp(**changes: Any) -> PreflightValidationOCP:
    """A PreflightValidationOCP for a release image."""
    spec = {"releaseImage": "registry.example/release@sha256:1", **changes.pop("spec", {})}
    metadata = {"name": "preflight", "uid": "ocp-uid", "generation": 1, "resourceVersion": "9"}
    return codec.convert(
        PreflightValidationOCP, {"metadata": metadata | changes.pop("metadata", {}), "spec": spec} | changes
    )


def entry(name: str = "kmod", **changes: Any) -> JSON:
    """An entry as it is stored: by default one that failed a minute ago."""
    return {
        "name": name,
        "namespace": "drivers",
        "verificationStatus": "Failure",
        "verificationStage": "Done",
        "statusReason": "gone",
        "lastTransitionTime": "2026-11-21T11:59:00Z",
        "observedGeneration": 1,
        **changes,
    }


def observed_with(*modules: Module, **changes: Any) -> Observed:
    """A validation and these Modules."""
    observed = Observed(name="preflight", validation=validation(), modules=modules, builder=BUILDER)
    return replace(observed, **changes)


class Story:
    """A world in which questions are answered and runs end, pass after pass, as the shell would have it."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.now = NOW
        self.plan: Plan[Question] = Plan()
        self._known: dict[Question, Answer] = {}

    def step(self) -> Story:
        """One pass: its status becomes the object's, its runs are there."""
        self.plan = reconcile(self.observed, now=self.now)
        for action in self.plan.actions:
            if isinstance(action, PatchStatus) and action.resource.kind == "PreflightValidation":
                assert self.observed.validation is not None
                changed = codec.convert(
                    PreflightValidation, {**_dict(self.observed.validation), "status": action.fields}
                )
                self.observed = replace(self.observed, validation=changed)
        return self

    def answer(self, image: Image | None = None, material: BuildInputs | None = None) -> Story:
        """Answer what was asked, then pass."""
        for question in self.plan.work:
            found: AnswerValue | None = image if isinstance(question, ImageQuestion) else None
            found = material if isinstance(question, BuildInputsQuestion) else found
            if found is not None:
                self._known[question] = Answer(found, self.now)
        self.observed = replace(self.observed, answers=Answers(dict(self._known)))
        return self.step()

    def run(self, state: RunState, detail: str = "") -> Story:
        """Let what was started come to `state`, then pass."""
        made = [_run_of(each, state, detail, self.now) for each in started(self.plan)]
        kept = [replace(each, state=state, detail=detail, ended_at=self.now) for each in self.observed.runs[-1:]]
        runs = (*self.observed.runs, *made) if made else (*self.observed.runs[:-1], *kept)
        self.observed = replace(self.observed, runs=runs)
        return self.step()

    def later(self, seconds: float) -> Story:
        """Pass again when so much time has passed."""
        self.now += timedelta(seconds=seconds)
        return self.step()

    def edit(self, *modules: Module) -> Story:
        """The Modules are these now."""
        self.observed = replace(self.observed, modules=modules)
        return self.step()

    @property
    def entries(self) -> tuple[ModuleStatus, ...]:
        """What the validation says by now."""
        assert self.observed.validation is not None
        return self.observed.validation.status.modules

    @property
    def results(self) -> list[tuple[str, str, str]]:
        """Status, stage and reason of every Module."""
        return [
            (each.verification_status, each.running_stage or each.verification_stage, each.status_reason)
            for each in self.entries
        ]


def started(plan: Plan[object]) -> list[JSON]:
    """The Jobs and Builds that a plan makes."""
    kinds = ("Job", "Build")
    return [each.object for each in plan.actions if isinstance(each, Apply) and each.resource.kind in kinds]


def _run_of(obj: JSON, state: RunState, detail: str, now: datetime) -> Run:
    metadata = obj["metadata"]
    return Run(
        key=NamespacedName(metadata["namespace"], metadata["name"]),
        uid=metadata["name"],
        runner=Runner.JOBS,
        module=metadata["annotations"]["kmm.node.kubernetes.io/module.name"],
        owner_uid=metadata["ownerReferences"][0]["uid"],
        state=state,
        detail=detail,
        ended_at=None if state is RunState.RUNNING else now,
    )


def _dict(obj: PreflightValidation) -> JSON:
    return codec.to_dict(obj)
